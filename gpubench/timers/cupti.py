"""Timing by the device's own records of what it did for a call: no floor, and no launch gaps.

Another timer makes the calls, behind its gate where there is one. Around each, an external id is
pushed that is nobody else's; CUPTI links it to what the call launches. So whatever else the
device does meanwhile, the timer's own gate included, isn't counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gpubench.devices.base import Device
from gpubench.devices.records import ACTIVITY_KINDS
from gpubench.devices.sharing import Share
from gpubench.timers.attribution import attribute, next_external_id
from gpubench.timers.base import Samples, Timer

RECORDED = (*ACTIVITY_KINDS, "link")
"""What has to be recorded for this timer."""

_SAMPLES_PER_COLLECTION = 64


class CuptiTimer:
    """Read the times of calls that another timer makes from the records of what they caused.

    Parameters
    ----------
    timer : Timer
        Makes the calls.
    share : Share
        Its source records `RECORDED`.
    devices : sequence of Device
        Which to time, in the order of the samples' rows.
    is_fixed : bool
        Whether one call can follow another with nothing to be prepared between them.
    """

    method = "cupti"

    def __init__(
        self, timer: Timer, share: Share, devices: Sequence[Device], is_fixed: bool
    ) -> None:
        self.samples_per_gate = timer.samples_per_gate
        self.samples_per_take = _SAMPLES_PER_COLLECTION if is_fixed else 1
        self._timer = timer
        self._share = share
        self._devices = devices
        self._is_fixed = is_fixed

    def instead_of(self, timer: Timer) -> CuptiTimer:
        """Return a timer for which another one makes the calls."""
        return CuptiTimer(timer, self._share, self._devices, self._is_fixed)

    def take(self, call: Callable[[], object], n: int) -> Samples:
        """Call `call` `n` times, or until a gate has expired, and return the times."""
        source = self._share.source
        ids: list[int] = []

        def linked() -> None:
            ids.append(next_external_id())
            source.push(ids[-1])
            try:
                call()
            finally:
                source.pop()

        self._share.collect()
        source.push(next_external_id())  # for what is launched around the calls
        try:
            takes: list[Samples] = []
            while len(ids) < n and all(
                take.valid for take in takes
            ):  # each expired gate takes long
                size = min(self._timer.samples_per_take, n - len(ids))
                takes.append(self._timer.take(linked, size))
            for device in self._devices:
                device.synchronize()
        finally:
            source.pop()
        calls = {external_id: call for call, external_id in enumerate(ids)}
        caused = attribute(self._share.collect(), calls, self._devices)
        return Samples(
            cpu=np.concatenate([take.cpu for take in takes]),
            gpu=caused.span,
            busy=caused.busy,
            kernels=caused.kernels,
            n_unattributed=caused.n_unattributed,
            valid=all(take.valid for take in takes),
        )
