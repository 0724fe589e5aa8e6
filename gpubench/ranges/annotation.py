"""Named ranges and marks."""

from __future__ import annotations

import copy
import sys
from functools import partial
from types import FrameType
from typing import SupportsIndex

from gpubench.arguments import callable_name
from gpubench.devices import current_platform
from gpubench.errors import ArgumentError
from gpubench.ranges import recording, suspension
from gpubench.ranges.backends import SILENT, Annotation
from gpubench.ranges.covering import Covering, F, settle
from gpubench.ranges.label import argb, checked_label


class time_range(Covering):  # noqa: N801  # CuPy's name
    """Show a block of code, or each call of a function, as a range on a profiler's timeline.

    Use it as a context manager or as a decorator; one object may be nested in itself and shared
    by threads and tasks. The body of a coroutine function, a generator or an asynchronous
    generator is covered from its first step to its end.

    Code that may be suspended half-way (these three kinds; a ``with`` block in one of them;
    any ``with`` block while an asyncio event loop runs in the thread, as in a notebook) opens
    NVTX process ranges, which may overlap. All other code opens ranges that nest.

    `gpubench.ranges.backend` says what carries ranges to the profiler; with none, they do
    nothing.

    Parameters
    ----------
    message : str, optional
        Name of the range. If not given or empty, a decorated function's own name, and in a
        ``with`` block none.
    color_id : int, optional
        Number of a color in CuPy's palette of ten, round and round; -1 is no color.
    argb_color : int, optional
        Color as 0xAARRGGBB.
    sync : bool, optional
        Whether to wait until the current GPU is idle, before the range opens and before it
        closes.
    color : str or int, optional
        Color by the nvtx package's name for it, or as 0xAARRGGBB. Give at most one of the three.
    domain : str, optional
        Whose range this is; profilers show and filter by domain.
    category : str or int, optional
        A group within the domain.
    payload : int or float, optional
        A number to show with the range.

    Raises
    ------
    ArgumentError
        If an argument can't be used, or more than one color is given.

    Examples
    --------
    >>> with time_range("load", color="green"):
    ...     pass
    >>> @time_range()
    ... def solve():
    ...     pass
    """

    _annotation: Annotation | None = None
    _logs: object = None  # those for which the annotation was made
    _idle_with: object = None  # those with which entering and leaving do nothing

    def __init__(
        self,
        message: str | None = None,
        color_id: SupportsIndex | None = None,
        argb_color: SupportsIndex | None = None,
        sync: bool = False,
        *,
        color: str | int | None = None,
        domain: str = "gpubench",
        category: str | int | None = None,
        payload: int | float | None = None,
    ) -> None:
        if message is None:
            message = ""
        elif callable(message):
            raise ArgumentError(f"message must be a str, got {message!r}: write @time_range()")
        if not isinstance(sync, bool):
            raise ArgumentError(f"sync must be True or False, got {sync!r}")
        shade = argb(color_id, argb_color, color)
        self._label = checked_label(message, shade, domain, category, payload)
        self._sync = sync

    def __enter__(self) -> time_range:
        if self._idle_with is not recording.logs:  # otherwise this look is the whole cost
            self._open(sys._getframe(1))
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._idle_with is not recording.logs:
            settle(partial(self._close, sys._getframe(1)), error)

    def __call__(self, func: F) -> F:
        """Return `func` with a range around the body of each call."""
        named = copy.copy(self)
        if not self._label.message:
            named._label = self._label._replace(message=callable_name(func))
        return super(time_range, named).__call__(func)

    def __getstate__(self) -> dict[str, object]:
        # Decorated functions travel to other processes; what the back end made can't.
        return {"_label": self._label, "_sync": self._sync}

    def _is_idle(self) -> bool:
        return self._idle_with is recording.logs

    def _annotated(self) -> Annotation:
        if self._annotation is None or self._logs is not recording.logs:
            self._logs = recording.logs
            self._annotation = recording.annotate(self._label)
            is_idle = self._annotation is SILENT and not self._sync
            self._idle_with = self._logs if is_idle else None
        return self._annotation

    def _open(self, frame: FrameType) -> None:
        annotation = self._annotated()
        if self._is_idle():
            return
        if self._sync:
            _synchronize()
        owner = suspension.owner(frame)
        if owner is None:
            annotation.push()
        else:
            suspension.remember(self, owner, partial(annotation.end, annotation.start()))

    def _close(self, frame: FrameType) -> None:
        try:
            if self._sync:
                _synchronize()
        finally:
            owner = suspension.owner(frame)
            close = None if owner is None else suspension.recall(self, owner)
            # A block that a coroutine closes may have been opened where nothing could suspend it.
            (close or self._annotated().pop)()


def mark(
    message: str,
    color: str | int | None = None,
    *,
    domain: str = "gpubench",
    category: str | int | None = None,
    payload: int | float | None = None,
) -> None:
    """Show an instant on a profiler's timeline.

    Parameters
    ----------
    message : str
        Name of the mark.
    color : str or int, optional
        Color by the nvtx package's name for it, or as 0xAARRGGBB.
    domain, category, payload
        As for `time_range`.

    Raises
    ------
    ArgumentError
        If an argument can't be used.
    """
    label = checked_label(message, argb(color=color), domain, category, payload)
    recording.annotate(label).mark()


def _synchronize() -> None:
    platform = current_platform()
    if platform.device_count():
        platform.device(platform.current_device()).synchronize()
