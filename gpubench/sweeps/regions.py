"""`annotate`: the regions of a function that a sweep times by themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from gpubench.arguments import text
from gpubench.errors import ArgumentError
from gpubench.ranges.annotation import time_range
from gpubench.ranges.covering import settle


class RegionClock(Protocol):
    """What times regions while a function runs."""

    def enter(self, region: annotate, name: str) -> None:
        """Begin to time a region, in the thread that calls."""
        ...

    def leave(self, region: annotate) -> None:
        """End the innermost entry of this region in the thread that calls, if there is one."""
        ...


_clock: RegionClock | None = None


@contextmanager
def timing(clock: RegionClock) -> Iterator[None]:
    """Let a clock time the regions that any thread enters while the block runs."""
    global _clock  # noqa: PLW0603
    outer, _clock = _clock, clock
    try:
        yield
    finally:
        _clock = outer


class annotate(time_range):  # noqa: N801  # the name that users know
    """Mark a region that `sweep` times by itself; elsewhere it is a `time_range` of that name.

    Use it as a context manager or as a decorator. Regions may nest, be entered many times in a
    run, in some configurations only, and from other threads. Each is known by its name.

    Parameters
    ----------
    name : str, optional
        Name of the region; a decorated function's own, if it isn't given.

    Raises
    ------
    ArgumentError
        If the name isn't a string with something in it.

    Examples
    --------
    >>> with annotate("load"):
    ...     pass
    >>> @annotate()
    ... def solve():
    ...     pass
    """

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not text("name", name):
            raise ArgumentError("name must not be empty; it is what a region is known by")
        super().__init__(name)

    def __enter__(self) -> annotate:
        name = self._label.message
        if not name:
            raise ArgumentError("a region in a with block needs a name: annotate('load')")
        self._open(sys._getframe(1))
        if _clock is not None:
            _clock.enter(self, name)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        frame = sys._getframe(1)
        if _clock is not None:
            settle(lambda: _clock.leave(self), error)
        settle(lambda: self._close(frame), error)

    def _is_idle(self) -> bool:
        return False
