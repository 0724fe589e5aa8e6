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

_MAX_SAMPLES_PER_COLLECTION = 64

_COLLECTION_SPAN = 0.05
"""Seconds of calls between two collections at most: so much is lost to Ctrl-C."""


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
    samples_per_take : int
        How many calls there may be between two collections of records.

    Attributes
    ----------
    n_streams : int
        On how many streams of one device the last calls worked.
    """

    method = "cupti"

    def __init__(
        self, timer: Timer, share: Share, devices: Sequence[Device], samples_per_take: int = 1
    ) -> None:
        self.samples_per_gate = timer.samples_per_gate
        self.samples_per_take = samples_per_take
        self.n_streams = 0
        self._timer = timer
        self._share = share
        self._devices = devices

    def with_calls_by(self, timer: Timer) -> CuptiTimer:
        """Return a timer for which another one makes the calls."""
        return CuptiTimer(timer, self._share, self._devices, self.samples_per_take)

    def for_calls_of(self, call_time: float) -> CuptiTimer:
        """Return a timer that collects so rarely as is right for calls of so many seconds."""
        n = int(_COLLECTION_SPAN / max(call_time, 1e-9))
        n = min(max(n, 1), _MAX_SAMPLES_PER_COLLECTION)
        return CuptiTimer(self._timer, self._share, self._devices, n)

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
            # An expired gate takes long, so one is enough.
            while len(ids) < n and all(take.valid for take in takes):
                size = min(self._timer.samples_per_take, n - len(ids))
                takes.append(self._timer.take(linked, size))
            for device in self._devices:
                device.synchronize()
        finally:
            source.pop()
        calls = {external_id: call for call, external_id in enumerate(ids)}
        records = self._share.collect()
        caused = attribute(records, calls, self._devices)
        self.n_streams = caused.n_streams
        return Samples(
            cpu=np.concatenate([take.cpu for take in takes]),
            gpu=caused.span,
            busy=caused.busy,
            kernels=caused.kernels,
            n_unattributed=caused.n_unattributed,
            n_dropped=records.n_dropped,
            valid=all(take.valid for take in takes),
        )
