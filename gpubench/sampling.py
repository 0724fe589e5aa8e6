"""Samples are collected until a rule says that there are enough."""

from __future__ import annotations

import gc
import math
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from gpubench.activity.demangling import demangled
from gpubench.kernel_time import KernelTime
from gpubench.result import StoppedBy
from gpubench.session import Budget, Session
from gpubench.stats import FloatArray, median_interval
from gpubench.timers.base import Samples

PRECISION = 0.005
"""An adaptive run ends when the median's interval lies this near to it, relatively."""

MIN_ADAPTIVE_SAMPLES = 10


@dataclass(frozen=True)
class Goal:
    """When there are enough samples.

    Attributes
    ----------
    n_repeat : int or None
        At that many; None: when every device's median is known to within `PRECISION`, but not
        below `MIN_ADAPTIVE_SAMPLES`.
    limit : Budget
        Or when this is spent.
    at_least : int
        But not below this many.
    anywhere : callable
        Tells whether something holds in any of the processes that measure together; they stop at
        once. For a single process it is what holds there.
    """

    n_repeat: int | None
    limit: Budget
    at_least: int = 1
    anywhere: Callable[[bool], bool] = bool


@dataclass
class Collected:
    """Samples in the order in which they were taken.

    Attributes
    ----------
    stopped_by : str
        Why there are no more, as in `BenchmarkResult`.
    n_unattributed : int
        How much the devices did meanwhile for threads that made none of the calls.
    n_dropped : int
        How many records of what they did were lost.
    """

    stopped_by: StoppedBy = "n_repeat"
    _cpu: array[float] = field(default_factory=lambda: array("d"))
    _gpu: list[array[float]] = field(default_factory=list)
    _busy: list[array[float]] = field(default_factory=list)
    _kernels: dict[str, array[float]] = field(default_factory=dict)
    n_unattributed: int = 0
    n_dropped: int = 0

    def add(self, samples: Samples) -> None:
        """Append samples."""
        self._cpu.frombytes(samples.cpu.tobytes())
        if not self._gpu:
            self._gpu = [array("d") for _ in samples.gpu]
            self._busy = [array("d") for _ in samples.busy]
        for row, times in zip(
            (*self._gpu, *self._busy), (*samples.gpu, *samples.busy), strict=True
        ):
            row.frombytes(times.tobytes())
        for name, times in samples.kernels.items():
            self._kernels.setdefault(name, array("d")).frombytes(times.tobytes())
        self.n_unattributed += samples.n_unattributed
        self.n_dropped += samples.n_dropped

    @property
    def n(self) -> int:
        """How many; Ctrl-C may have come while some were being added, which don't count."""
        return min(map(len, (self._cpu, *self._gpu, *self._busy)))

    def arrays(self) -> tuple[FloatArray, FloatArray]:
        """All CPU times, shape (n,), and all GPU times, shape (n_devices, n)."""
        return np.array(self._cpu[: self.n]), self._rows(self._gpu)

    def busy(self) -> FloatArray:
        """Return the times that the devices were busy, shape (n_devices, n), or (0, n)."""
        return self._rows(self._busy)

    def _rows(self, rows: list[array[float]]) -> FloatArray:
        return np.array([row[: self.n] for row in rows]).reshape(len(rows), self.n)

    def kernels(self) -> tuple[KernelTime, ...]:
        """Return the kernels that the timer saw, in the order in which they first ran."""
        return tuple(
            KernelTime(demangled(name), len(times) / self.n, float(np.median(times)))
            for name, times in self._kernels.items()
        )

    def is_precise(self) -> bool:
        """Whether every median is known to `PRECISION`."""
        cpu, gpu = self.arrays()
        for row in gpu if len(gpu) else cpu[np.newaxis]:
            interval = median_interval(row)
            if interval is None:
                return False
            median = float(np.median(row))
            if max(interval[1] - median, median - interval[0]) > PRECISION * median:
                return False
        return True


def collect(session: Session, goal: Goal, advance: Callable[[int], object]) -> Collected:
    """Take samples until the goal is reached or Ctrl-C pressed.

    Parameters
    ----------
    session : Session
        Takes them; its timer is chosen.
    goal : Goal
        When to stop.
    advance : callable
        Told how many samples have been added.

    Raises
    ------
    KeyboardInterrupt
        If there was no sample yet.
    """
    collected = Collected()
    next_check = MIN_ADAPTIVE_SAMPLES
    try:
        while True:
            samples = session.take(goal.n_repeat - collected.n if goal.n_repeat else 1)
            if goal.anywhere(session.waits_often):
                session.leave_gate()
                collected, next_check = Collected(), MIN_ADAPTIVE_SAMPLES
                continue
            collected.add(samples)
            advance(samples.cpu.size)
            if collected.n == goal.n_repeat:
                return collected
            if goal.n_repeat is None and collected.n >= next_check:
                if not goal.anywhere(not collected.is_precise()):
                    collected.stopped_by = "converged"
                    return collected
                next_check = math.ceil(1.1 * collected.n)
            if goal.anywhere(goal.limit.is_spent()) and collected.n >= goal.at_least:
                collected.stopped_by = "max_duration"
                return collected
    except KeyboardInterrupt:
        if not collected.n:
            raise
        collected.stopped_by = "interrupted"
        return collected


@contextmanager
def collection_off() -> Iterator[None]:
    """Keep the garbage collector from running inside the block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
