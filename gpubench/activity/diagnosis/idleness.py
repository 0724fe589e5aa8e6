"""When the devices had nothing to do, and what kept them from going on.

A gap is a time between two activities of a device in which none runs on any of its streams. The
call that launched the activity behind it tells why: had the host made it before the gap began,
the device had all it needed; otherwise the host was late, for a reason that its thread shows.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from gpubench.activity.diagnosis.copies import blocking_copies
from gpubench.activity.intervals import Integers, Intervals
from gpubench.activity.recording import Recording
from gpubench.devices.records import RecordArray

CAUSES = ("device", "launch", "copy", "call", "host", "compilation")
"""Why a device was idle; the column ``cause`` of `GAP` is an index into this.

``"device"``: what followed was queued already, or it isn't known when. In all others the host was
late. ``"compilation"``: it compiled for at least half of the gap. ``"host"``: it made no call that
waits or launches for `LONG_GAP` or more. ``"copy"``, ``"call"``: it waited for a copy, or in a call
that synchronizes, when the device ran dry, or for at least half of the gap. ``"launch"``: none of
these; it was on its way to the launch.
"""

LONG_GAP = 1_000_000
"""Nanoseconds; launching one activity doesn't take the host that long."""

GAP = np.dtype(
    [
        ("start", "i8"),
        ("end", "i8"),
        ("device", "i4"),
        ("activity", "i8"),
        ("wait", "i8"),
        ("cause", "u1"),
        ("lost", "i8"),
    ]
)
"""A time in which a device was idle. ``activity`` is the row of what ended it, ``wait`` the row of
the call in which the host waited, or -1. ``lost`` is the gap's length in nanoseconds, without what
recording adds to a launch if the host was late."""

_BLOCKING_NAME = re.compile(
    r"cu(da)?(?!\w*Async)(\w*Synchronize|Memcpy|Malloc|Free|HostAlloc|Mem(Host)?(Alloc|Free))"
)
_NOT, _CALL, _COPY = 0, CAUSES.index("call"), CAUSES.index("copy")


def idle_gaps(recording: Recording, launches: Integers, compiled: Intervals) -> RecordArray:
    """Return the gaps between activities, device by device, in order.

    Parameters
    ----------
    recording : Recording
        What lies outside of its block counts for nothing.
    launches : ndarray of int, shape (n_activities,)
        The row of the call that launched each activity, or -1.
    compiled : Intervals
        When the host compiled.

    Returns
    -------
    ndarray of `GAP`, shape (n,)
    """
    devices = np.unique(recording.activities["device"]).tolist()
    every = [np.empty(0, GAP), *(_gaps_of(recording, device) for device in devices)]
    gaps = np.concatenate(every)
    _tell_causes(gaps, recording, launches, compiled)
    return gaps


def _gaps_of(recording: Recording, device: int) -> RecordArray:
    rows = np.flatnonzero(recording.activities["device"] == device)
    start, end = (
        np.clip(recording.activities[side][rows], recording.begin, recording.end)
        for side in ("start", "end")
    )
    reached = np.maximum.accumulate(end)
    before = np.flatnonzero(start[1:] > reached[:-1])
    gaps = np.zeros(len(before), GAP)
    gaps["start"], gaps["end"] = reached[before], start[before + 1]
    gaps["device"], gaps["activity"] = device, rows[before + 1]
    return gaps


def _tell_causes(
    gaps: RecordArray, recording: Recording, launches: Integers, compiled: Intervals
) -> None:
    """Fill the columns ``wait``, ``cause`` and ``lost``."""
    length = gaps["end"] - gaps["start"]
    gaps["wait"], gaps["lost"] = -1, length
    launch = launches[gaps["activity"]]
    late = np.flatnonzero(launch >= 0)
    late = late[recording.calls["end"][launch[late]] > gaps["start"][late]]
    gap, call, length = gaps[late], recording.calls[launch[late]], length[late]

    blocking = _blocking(recording, launches)
    wait = _waits(gap, length, call, recording, blocking)
    # A copy that the host waited for and had asked for in time: its call alone tells.
    own = (blocking[launch[late]] == _COPY) & (call["start"] < gap["start"])
    wait = np.where(own, launch[late], wait)

    waited_until = np.where(wait >= 0, _column(recording.calls, "end", wait), gap["start"])
    is_host = call["start"] - np.maximum(waited_until, gap["start"]) >= LONG_GAP
    is_compilation = 2 * compiled.within(gap["start"], gap["end"]) >= length
    cause = np.where(wait >= 0, blocking[wait], CAUSES.index("launch"))
    cause = np.where(is_host, CAUSES.index("host"), cause)
    gaps["cause"][late] = np.where(is_compilation, CAUSES.index("compilation"), cause)
    gaps["wait"][late] = wait
    gaps["lost"][late] = np.where(own, length, np.maximum(length - added_time(recording), 0))


def added_time(recording: Recording) -> int:
    """Return the nanoseconds that recording adds to a launch; 0 if they aren't known."""
    without, recorded = recording.launch_time, recording.recorded_launch_time
    return 0 if without is None or recorded is None else max(round((recorded - without) * 1e9), 0)


def _blocking(recording: Recording, launches: Integers) -> npt.NDArray[np.uint8]:
    """Return for each call the index of the cause that it may be, or 0."""
    by_name = np.array([bool(_BLOCKING_NAME.match(name)) for name in recording.names], bool)
    blocking = np.full(len(recording.calls) + 1, _NOT, np.uint8)  # the last is that of no call
    blocking[:-1][by_name[recording.calls["name"]]] = _CALL
    launched = launches[blocking_copies(recording, launches)]
    blocking[launched[launched >= 0]] = _COPY
    return blocking


def _waits(
    gap: RecordArray,
    length: Integers,
    launch: RecordArray,
    recording: Recording,
    blocking: npt.NDArray[np.uint8],
) -> Integers:
    """Return the row of the blocking call that made the launch late, or -1, for each gap."""
    calls = recording.calls
    wait = np.full(len(gap), -1)
    for thread in np.unique(launch["thread"]):
        mine = launch["thread"] == thread
        blocks = np.flatnonzero((blocking[:-1] != _NOT) & (calls["thread"] == thread))
        if not len(blocks):
            continue
        # The runtime's calls make the driver's; the outermost is what the user knows.
        reached = np.maximum.accumulate(calls["end"][blocks])
        outermost = np.concatenate([[True], calls["start"][blocks][1:] >= reached[:-1]])
        blocks = blocks[outermost]
        at_start, at_launch = (
            _last_before(blocks, calls["start"], time[mine])
            for time in (gap["start"], launch["start"])
        )
        begin, end, half = gap["start"][mine], gap["end"][mine], length[mine] / 2
        covered = np.minimum(_column(calls, "end", at_launch), end) - np.maximum(
            _column(calls, "start", at_launch), begin
        )
        was_waiting = (at_start >= 0) & (_column(calls, "end", at_start) >= begin)
        found = np.where((at_launch >= 0) & (covered >= half), at_launch, -1)
        wait[mine] = np.where(was_waiting, at_start, found)
    return wait


def _last_before(rows: Integers, start: Integers, time: Integers) -> Integers:
    """Return the last of the rows that starts before each time, or -1."""
    place = np.searchsorted(start[rows], time) - 1
    return np.where(place >= 0, rows[place], -1)


def _column(calls: RecordArray, field: str, rows: Integers) -> Integers:
    """Return a field of these rows; of row -1, whatever."""
    return np.asarray(calls[field][rows], np.int64)
