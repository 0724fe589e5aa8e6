"""The gate of a simulated GPU."""

from __future__ import annotations

import math
import threading
import time

from gpubench.devices.base import GATE_DEADLINE


class _Closing:
    """One closing of a gate: what the streams held by it wait for."""

    def __init__(self, gate: SimulatedGate, number: int) -> None:
        self._gate = gate
        self._number = number
        self.opened = threading.Event()
        self.opened_time = math.inf

    def wait(self, begin: float) -> float:
        """Block a worker from `begin` until the host opens or the deadline passes."""
        deadline = begin + GATE_DEADLINE
        self.opened.wait(max(0.0, deadline - time.perf_counter()))
        if self.opened_time <= deadline:
            return max(begin, self.opened_time)
        self._gate.last_expired = max(self._gate.last_expired, self._number)
        return deadline


class SimulatedGate:
    """A gate that any number of simulated streams can be held by.

    That it has been opened takes as long to reach the device as a launch does.
    """

    def __init__(self, launch_latency: float) -> None:
        self.last_expired = 0
        self._launch_latency = launch_latency
        self._n_closings = 0
        self.close()
        self.open()

    def close(self) -> int:
        """Close the gate for the streams that are held from now on."""
        self._n_closings += 1
        self.closing = _Closing(self, self._n_closings)
        return self._n_closings

    def open(self) -> None:
        """Release every stream that the gate holds."""
        if not self.closing.opened.is_set():
            self.closing.opened_time = time.perf_counter() + self._launch_latency
            self.closing.opened.set()

    def has_expired(self, closing: int) -> bool:
        """Whether the deadline released a stream held at that closing or a later one."""
        return self.last_expired >= closing
