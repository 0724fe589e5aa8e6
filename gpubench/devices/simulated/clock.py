"""The clock of a simulated device: how fast its kernels run."""

from __future__ import annotations

import math
import threading

IDLE_CLOCK = 345 / 1980
"""Clock of an idle device relative to that of a busy one, as on an H200."""

IDLE_AFTER = 0.2
"""Seconds without work after which a device is idle."""


class Clock:
    """A clock that falls while the device is idle and rises evenly with its work.

    Parameters
    ----------
    full : float
        Where it rises to, relative to the clock for which kernels' durations are given.
    ramp_time : float
        Seconds of work from an idle device's clock to the full one; with 0 it never falls.
    """

    def __init__(self, full: float, ramp_time: float) -> None:
        self._full = full
        self._ramp_time = ramp_time
        self._worked = 0.0  # seconds since the device was idle
        self._busy_until = -math.inf
        self._lock = threading.Lock()  # each stream has a thread of its own

    def duration(self, seconds: float, start: float) -> float:
        """Return how long a kernel takes that begins at `start` and needs `seconds` by rights.

        It keeps the clock with which it begins.
        """
        with self._lock:
            if start - self._busy_until > IDLE_AFTER:
                self._worked = 0.0
            duration = seconds / self._speed()
            self._worked += duration
            self._busy_until = max(self._busy_until, start + duration)
        return duration

    def _speed(self) -> float:
        if not self._ramp_time:
            return self._full
        risen = min(1.0, self._worked / self._ramp_time)
        return self._full * (IDLE_CLOCK + (1 - IDLE_CLOCK) * risen)
