"""`annotate`: the regions of a function that a sweep times by themselves."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from gpubench.arguments import text
from gpubench.errors import ArgumentError
from gpubench.ranges.annotation import time_range
from gpubench.ranges.covering import settle


class RegionClock(Protocol):
    """What times regions while a function runs."""

    def enter(self, name: str, outer: tuple[Any, ...]) -> Any:
        """Begin to time a region, in the thread that calls.

        Parameters
        ----------
        name : str
            The region's.
        outer : tuple
            What this returned for the regions around it in its thread, the innermost last.

        Returns
        -------
        object
            What `leave` is to be given.
        """
        ...

    def leave(self, entry: Any) -> None:
        """End what `enter` began, in the same thread."""
        ...


@dataclass(eq=False)
class _Timing:
    """A clock, for as long as it times regions."""

    clock: RegionClock
    is_over: bool = False


@dataclass(frozen=True, eq=False)
class _Entered:
    """A region that a thread is in."""

    region: annotate
    timing: _Timing
    entry: Any


_timing: _Timing | None = None
_local = threading.local()


@contextmanager
def timing(clock: RegionClock) -> Iterator[None]:
    """Let a clock time the regions that any thread enters while the block runs."""
    global _timing  # noqa: PLW0603
    outer, _timing = _timing, _Timing(clock)
    this = _timing
    try:
        yield
    finally:
        this.is_over = True
        _timing = outer


def _entered() -> list[_Entered]:
    """Return the regions that this thread is in, and that are still timed."""
    stack: list[_Entered] = getattr(_local, "stack", [])
    _local.stack = [entered for entered in stack if not entered.timing.is_over]
    return _local.stack  # type: ignore[no-any-return]


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
        current = _timing
        if current is not None:
            stack = _entered()
            outer = tuple(each.entry for each in stack if each.timing is current)
            stack.append(_Entered(self, current, current.clock.enter(name, outer)))
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        frame = sys._getframe(1)
        settle(self._leave, error)
        settle(lambda: self._close(frame), error)

    def _leave(self) -> None:
        stack = _entered()
        # Blocks of coroutines may end in another order than they began.
        entered = next((each for each in reversed(stack) if each.region is self), None)
        if entered is not None:
            stack.remove(entered)
            entered.timing.clock.leave(entered.entry)

    def _is_idle(self) -> bool:
        return False
