"""What a block of Python spends its time on, by cProfile, for blocks that nest and overlap.

Since Python 3.12 a process has room for one cProfile only. So the blocks of a thread share one:
what it counted between a block's beginning and its end is the block's. (That one sees all threads
and takes their calls for one another's, so it is to be relied on where one thread works alone.)
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class HostProfile:
    """A profile of what the calling thread does from `start` to `stop`.

    Attributes
    ----------
    reason : str
        Why there is none; empty if there is one.
    """

    def __init__(self) -> None:
        self.reason = ""
        self._profiler = _threads.profiler
        self._readings: list[_Reading] = []

    def start(self) -> None:
        """Begin; where another profiler is at work already, nothing will be profiled."""
        try:
            self._profiler.join(self._readings)
        except ValueError as error:
            self.reason = str(error)

    def stop(self) -> None:
        """End."""
        if not self.reason:
            self._profiler.leave(self._readings)

    def show(self) -> None:
        """Print the profile to stdout, the functions that took longest by themselves first."""
        with self._profiler.unseen():
            stats: Any = pstats.Stats(*self._readings)
            stats.stats = {
                function: (n_outermost, n, max(0.0, own_time), max(0.0, time), callers)
                for function, (n_outermost, n, own_time, time, callers) in stats.stats.items()
                if n
            }
            stats.strip_dirs().sort_stats("tottime").print_stats()


class _Reading(cProfile.Profile):
    """What a profiler has counted by now, with a sign: pstats adds such readings up."""

    def __init__(self, profiler: cProfile.Profile, sign: int) -> None:
        super().__init__()
        self._sign = sign
        self._entries = profiler.getstats()

    def getstats(self) -> list[Any]:
        """Return what was counted by then."""
        return self._entries

    def create_stats(self) -> None:
        """Make the attribute that pstats reads."""
        self.snapshot_stats()
        self.stats: dict[Any, Any] = {
            function: (
                *(self._sign * figure for figure in figures),
                {c: tuple(self._sign * figure for figure in each) for c, each in callers.items()},
            )
            for function, (*figures, callers) in self.stats.items()
        }


class _Profiler:
    """The one profiler of a thread: it runs while any block wants it."""

    def __init__(self) -> None:
        self._profiler = cProfile.Profile()
        self._displaced: Any = None
        self._open: list[list[_Reading]] = []

    def join(self, readings: list[_Reading]) -> None:
        """Begin to count for a block."""
        if not self._open:
            self._displaced = sys.getprofile()
            self._profiler = cProfile.Profile()
            self._profiler.enable()
        self._open.append(readings)
        readings.append(_Reading(self._profiler, -1))

    def leave(self, readings: list[_Reading]) -> None:
        """Count no more for a block."""
        readings.append(_Reading(self._profiler, +1))
        self._open = [others for others in self._open if others is not readings]
        if not self._open:
            self._profiler.disable()
            self._put_back()

    def _put_back(self) -> None:
        """Let the profiler go on whose place this one took, as it can before Python 3.12."""
        if sys.getprofile() is self._displaced:
            return
        if isinstance(self._displaced, cProfile.Profile):
            self._displaced.enable()
        else:
            sys.setprofile(self._displaced)

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Leave what happens inside out of the profiles of the blocks that are open."""
        before = _Reading(self._profiler, +1)
        yield
        after = _Reading(self._profiler, -1)
        for readings in self._open:
            readings += [before, after]


class _Threads(threading.local):
    def __init__(self) -> None:
        self.profiler = _Profiler()


_threads = _Threads()
