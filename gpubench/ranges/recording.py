"""Ranges and marks kept in memory, for recordings that no profiler's NVTX reaches."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from gpubench.devices.names import NameTable
from gpubench.devices.records import RANGE, RecordArray
from gpubench.ranges.backends import Annotation, backend
from gpubench.ranges.label import Label

_OPEN = -1
_N_COLUMNS = 5


class RangeLog:
    """The ranges and marks of a block, one row each in the order of their beginning.

    Parameters
    ----------
    now : callable
        Returns the time in nanoseconds.

    Attributes
    ----------
    names : NameTable
        The names of ranges and domains.
    threads : dict of int to str
        The names of the threads that were in one, by their native ids.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.names = NameTable()
        self._rows = array("q")
        self._lock = threading.Lock()
        self._thread = threading.local()
        self.threads: dict[int, str] = {}

    def around(self, annotation: Annotation, label: Label) -> Annotation:
        """Return an annotation that is logged here too."""
        place = self.names[label.message], self.names[label.domain]
        return Annotation(
            push=partial(self._push, annotation, place),
            pop=partial(self._pop, annotation),
            start=partial(self._start, annotation, place),
            end=partial(self._end, annotation),
            mark=partial(self._mark, annotation, place),
        )

    def _begin(self, place: tuple[int, int], end: int = _OPEN) -> int:
        now = self._now()
        row = (*place, now, end or now, threading.get_native_id())
        with self._lock:
            self._rows.extend(row)
            return len(self._rows) // _N_COLUMNS - 1

    def _finish(self, number: int) -> None:
        self._rows[number * _N_COLUMNS + 3] = self._now()

    def _open(self) -> list[int]:
        if not hasattr(self._thread, "open"):
            self._thread.open = []
            self.threads[threading.get_native_id()] = threading.current_thread().name
        numbers: list[int] = self._thread.open
        return numbers

    def _push(self, annotation: Annotation, place: tuple[int, int]) -> None:
        annotation.push()
        self._open().append(self._begin(place))

    def _pop(self, annotation: Annotation) -> None:
        # Without one open, the range began before the log did.
        if numbers := self._open():
            self._finish(numbers.pop())
        annotation.pop()

    def _start(self, annotation: Annotation, place: tuple[int, int]) -> tuple[Any, int]:
        return annotation.start(), self._begin(place)

    def _end(self, annotation: Annotation, numbers: tuple[Any, int]) -> None:
        outer, own = numbers
        self._finish(own)
        annotation.end(outer)

    def _mark(self, annotation: Annotation, place: tuple[int, int]) -> None:
        annotation.mark()
        self._begin(place, end=0)

    def ranges(self, until: int) -> RecordArray:
        """Return what was logged so far; what is still open ends at `until`."""
        with self._lock:
            rows = np.array(self._rows, np.int64).reshape(-1, _N_COLUMNS)
        table = np.zeros(len(rows), RANGE)
        for field, column in zip(("name", "domain", "start", "end", "thread"), rows.T, strict=True):
            table[field] = column
        table["end"][table["end"] == _OPEN] = until
        return table


logs: tuple[RangeLog, ...] = ()
"""Those that are being kept now."""

_lock = threading.RLock()


def annotate(label: Label) -> Annotation:
    """Return what shows a label to profilers and to the logs that are kept now."""
    annotation = backend().annotate(label)
    for log in logs:
        annotation = log.around(annotation, label)
    return annotation


@contextmanager
def logged(log: RangeLog) -> Iterator[None]:
    """Keep a log of the ranges and marks of all threads while the block runs."""
    global logs  # noqa: PLW0603
    backend()  # which the first range would otherwise import, at the log's expense
    with _lock:
        logs = (*logs, log)
    try:
        yield
    finally:
        with _lock:
            logs = tuple(other for other in logs if other is not log)
