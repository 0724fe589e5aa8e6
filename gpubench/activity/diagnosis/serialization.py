"""What the null stream and other streams keep from running beside each other.

On CUDA the null stream waits for all that was queued before on other streams, and they for what
was queued before on it, unless they were made non-blocking.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpubench.activity.intervals import Integers, Intervals, union
from gpubench.activity.recording import Recording

_JITTER = 1000
"""Nanoseconds by which activities may seem to overlap that don't."""


@dataclass(frozen=True, eq=False)
class Serialization:
    """How the null stream of one device and its other streams held each other up.

    Attributes
    ----------
    rows : ndarray of int, shape (n,)
        The rows in the recording's activities of those on the null stream that took part.
    held_ns : ndarray of int, shape (n,)
        Nanoseconds for which each of them ran while others were ready, or was ready while others
        ran.
    total : int
        Nanoseconds in which the null stream ran alone while another stream's next activity was
        ready, or the other way round. An activity is ready once it is queued, that is, the call
        that launched it has returned, and the one before it on its stream has ended. What it
        really waits for isn't recorded; so this is what could be gained at most.
    """

    rows: Integers
    held_ns: Integers
    total: int


def serialization(recording: Recording, launches: Integers, device: int) -> Serialization:
    """Find out what a device's null stream and its other streams cost each other.

    Streams of which an activity overlaps with the null stream's are not held up by it, and left
    out.

    Parameters
    ----------
    recording : Recording
        Its activities.
    launches : ndarray of int, shape (n_activities,)
        The row of the call that launched each activity, or -1; those count as never ready.
    device : int
        The device's id.
    """
    rows = recording.activities
    of_device = np.flatnonzero(rows["device"] == device)
    is_null = rows["is_null_stream"][of_device]
    null, others = of_device[is_null], of_device[~is_null]
    if not len(null) or not len(others):
        return Serialization(null[:0], null[:0], 0)

    null_runs = _runs(recording, null)
    overlaps = null_runs.within(rows["start"][others], rows["end"][others]) > _JITTER
    beside = np.unique(rows["stream"][others][overlaps])
    others = others[~np.isin(rows["stream"][others], beside)]
    other_runs = _runs(recording, others)

    null_ready = _ready(recording, launches, null)
    other_waits = union(_ready(recording, launches, others), rows["start"][others])
    null_waits = union(null_ready, rows["start"][null])
    held = other_waits.within(rows["start"][null], rows["end"][null]) + other_runs.within(
        null_ready, rows["start"][null]
    )
    return Serialization(
        rows=null[held > 0],
        held_ns=held[held > 0],
        total=other_waits.overlap(null_runs) + null_waits.overlap(other_runs),
    )


def _runs(recording: Recording, rows: Integers) -> Intervals:
    start, end = (
        np.clip(recording.activities[side][rows], recording.begin, recording.end)
        for side in ("start", "end")
    )
    return union(start, end)


def _ready(recording: Recording, launches: Integers, rows: Integers) -> Integers:
    """Return when each of one device's activities was ready to run."""
    activities = recording.activities[rows]
    ready = activities["start"].copy()
    known = launches[rows] >= 0
    ready[known] = recording.calls["end"][launches[rows][known]]
    order = np.argsort(activities["stream"], kind="stable")
    stream, end = activities["stream"][order], activities["end"][order]
    follows = np.flatnonzero(stream[1:] == stream[:-1])
    later = order[follows + 1]
    ready[later] = np.maximum(ready[later], end[follows])
    return np.asarray(np.minimum(ready, activities["start"]), np.int64)
