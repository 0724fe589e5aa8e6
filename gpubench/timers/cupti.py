"""Timing by the device's own records of what it did for a call: no floor, and no launch gaps.

Another timer makes the calls, behind its gate where there is one. Around each, an external id is
pushed that is nobody else's; CUPTI links it to what the call launches. So whatever else the
device does meanwhile, the timer's own gate included, isn't counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gpubench.devices.base import Device
from gpubench.devices.records import ACTIVITY_KINDS, RecordArray, Records
from gpubench.devices.sharing import Share
from gpubench.stats import FloatArray
from gpubench.timers.base import Samples, Timer

RECORDED = (*ACTIVITY_KINDS, "link")
"""What has to be recorded for this timer."""

_SAMPLES_PER_COLLECTION = 64

_external_ids = itertools.count(1)


def next_external_id() -> int:
    """Return an external id that is nobody else's in this process."""
    return next(_external_ids)


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
        samples = self._read(self._share.collect(), np.array(ids))
        return replace(
            samples,
            cpu=np.concatenate([take.cpu for take in takes]),
            valid=all(take.valid for take in takes),
        )

    def _read(self, records: Records, ids: npt.NDArray[np.int64]) -> Samples:
        linked = _external_ids_of(records)
        ours = records.activities[np.isin(linked, ids)]
        place = np.searchsorted(ids, linked[np.isin(linked, ids)])
        gpu = np.zeros((len(self._devices), len(ids)))
        busy = np.zeros_like(gpu)
        for row, device in enumerate(self._devices):
            is_here = ours["device"] == device.id
            gpu[row], busy[row] = _spans(ours[is_here], place[is_here], len(ids))
        is_kernel = ours["kind"] == ACTIVITY_KINDS.index("kernel")
        return Samples(
            cpu=np.empty(0),
            gpu=gpu,
            busy=busy,
            kernels=_durations(ours[is_kernel], records.names),
            n_unattributed=int(np.sum(linked == 0)),
        )


def _external_ids_of(records: Records) -> npt.NDArray[np.int64]:
    """Return the external id of each activity, 0 where there is none."""
    links = records.links[np.argsort(records.links["correlation_id"], kind="stable")]
    wanted = records.activities["correlation_id"]
    if not len(links):
        return np.zeros(len(wanted), np.int64)
    place = np.minimum(np.searchsorted(links["correlation_id"], wanted), len(links) - 1)
    found = links["correlation_id"][place] == wanted
    return np.where(found, links["external_id"][place].astype(np.int64), 0)


def _spans(
    activities: RecordArray, place: npt.NDArray[np.int64], n: int
) -> tuple[FloatArray, FloatArray]:
    """Return the seconds from first to last of each call's activities, and of their union.

    Parameters
    ----------
    activities : ndarray of `ACTIVITY`, shape (n_activities,)
        Of one device.
    place : ndarray of int, shape (n_activities,)
        Which call each belongs to, below `n`.
    """
    span, busy = np.zeros(n), np.zeros(n)
    if not len(activities):
        return span, busy
    order = np.lexsort((activities["start"], place))
    place = place[order]
    # Far enough apart, calls can't overlap, and all are looked at in one go.
    origin = activities["start"].min()
    apart = (activities["end"].max() - origin + 1) * place
    start, end = (activities[edge][order] - origin + apart for edge in ("start", "end"))
    reached = np.maximum.accumulate(end)
    added = end - start
    added[1:] = np.maximum(reached[1:] - np.maximum(start[1:], reached[:-1]), 0)
    np.add.at(busy, place, added * 1e-9)
    is_first = np.append(True, place[1:] != place[:-1])
    is_last = np.append(is_first[1:], True)
    span[place[is_first]] = (reached[is_last] - start[is_first]) * 1e-9
    return span, busy


def _durations(kernels: RecordArray, names: Sequence[str]) -> dict[str, FloatArray]:
    seconds = (kernels["end"] - kernels["start"]) * 1e-9
    return {
        names[index]: seconds[kernels["name"] == index]
        for index in dict.fromkeys(kernels["name"].tolist())
    }
