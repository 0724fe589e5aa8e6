"""Timing by the host's clock alone: the only way without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np

from gpubench.devices.base import Device, Work
from gpubench.timers.base import Samples


class HostTimer:
    """Read `time.perf_counter_ns` before and after each call.

    Parameters
    ----------
    devices : sequence of Device
        Synchronized after each call, untimed, so that their queues never fill.
    go_home : callable
        Makes the caller's device current again after that.
    """

    method = "host"
    samples_per_gate = 1
    samples_per_take = 1

    def __init__(self, devices: Sequence[Device] = (), go_home: Work = lambda: None) -> None:
        self._devices = devices
        self._go_home = go_home

    def take(self, call: Callable[[], object], n: int) -> Samples:
        """Call `call` `n` times and return the host's times; there are no GPU times."""
        nanoseconds = []
        for _ in range(n):
            begin = perf_counter_ns()
            call()
            nanoseconds.append(perf_counter_ns() - begin)
            for device in self._devices:
                device.synchronize()
            self._go_home()
        return Samples(cpu=np.array(nanoseconds) * 1e-9, gpu=np.empty((0, n)))
