"""Copies that the host waits for, and what that costs a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpubench.activity.intervals import Integers, union
from gpubench.activity.recording import Recording
from gpubench.devices.records import MEMCPY, MEMORY_KINDS, RecordArray


def blocking_copies(recording: Recording, launches: Integers) -> npt.NDArray[np.bool_]:
    """Tell for each activity whether it is a copy that the host waited for.

    One between host and device is if it wasn't asynchronous, or if pageable memory made it wait:
    then its call lasted until the copy's end, or longer. Those of graphs are not.
    """
    rows = recording.activities
    on_device = [MEMORY_KINDS.index(kind) for kind in ("device", "array", "static")]
    inside = np.isin(rows["source_memory"], on_device) & np.isin(rows["target_memory"], on_device)
    copies = (rows["kind"] == MEMCPY) & ~inside & (rows["graph_id"] == 0)
    waited = ~rows["is_async"]
    known = launches >= 0
    lasted = recording.calls["end"][launches[known]] >= rows["end"][known]
    waited[known] |= lasted & pageable(rows[known])
    return np.asarray(copies & waited)


def pageable(activities: RecordArray) -> npt.NDArray[np.bool_]:
    """Tell for each activity whether it reads or writes pageable memory of the host."""
    kind = MEMORY_KINDS.index("pageable")
    return np.asarray((activities["source_memory"] == kind) | (activities["target_memory"] == kind))


@dataclass(frozen=True, eq=False)
class CopyWaits:
    """The host's waits for copies of one device.

    Attributes
    ----------
    rows : ndarray of int, shape (n,)
        The copies' rows in the recording's activities.
    wait_ns : ndarray of int, shape (n,)
        Nanoseconds that each of them cost: from its call until that returned or, if the device had
        run dry for it, until that had something to do again; without the time in which the
        device did something else than copies that the host waits for.
    total : int
        Nanoseconds that all of them cost together.
    """

    rows: Integers
    wait_ns: Integers
    total: int


def copy_waits(
    recording: Recording, launches: Integers, gaps: RecordArray, device: int
) -> CopyWaits:
    """Find out what waits for copies cost a device.

    Parameters
    ----------
    recording : Recording
        What lies outside of its block counts for nothing.
    launches : ndarray of int, shape (n_activities,)
        The row of the call that launched each activity, or -1; such a copy costs its own time.
    gaps : ndarray of `GAP`, shape (n,)
        The times in which devices were idle for such waits.
    device : int
        The device's id.
    """
    activities, calls = recording.activities, recording.calls
    of_device = activities["device"] == device
    waited = blocking_copies(recording, launches)
    rows = np.flatnonzero(of_device & waited)
    start, end = (activities[side][rows] for side in ("start", "end"))
    known = launches[rows] >= 0
    call = launches[rows][known]
    start[known] = calls["start"][call]
    end[known] = np.maximum(calls["end"][call], _resumed(recording, gaps, device)[call])
    start, end = (np.clip(side, recording.begin, recording.end) for side in (start, end))
    rest = activities[of_device & ~waited]
    others, waits = union(rest["start"], rest["end"]), union(start, end)
    return CopyWaits(
        rows=rows,
        wait_ns=end - start - others.within(start, end),
        total=waits.total - others.overlap(waits),
    )


def _resumed(recording: Recording, gaps: RecordArray, device: int) -> Integers:
    """Return for each call when the device went on that had been idle for it, or 0."""
    resumed = np.zeros(len(recording.calls), np.int64)
    own = gaps[gaps["device"] == device]
    np.maximum.at(resumed, own["wait"], own["start"] + own["lost"])
    return resumed
