"""A finished recording: the records of one block, sorted, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpubench.devices.records import ACTIVITY_KINDS, CALL_KINDS, RecordArray

KINDS = (*ACTIVITY_KINDS, *CALL_KINDS, "range", "compilation")
"""What can be recorded."""


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """What ran while a block did.

    Times are nanoseconds on the clock of the records' source: CUPTI's, or, of a simulated GPU,
    `time.perf_counter_ns`.

    Attributes
    ----------
    begin, end : int
        When the block began and ended, with its synchronizations.
    kinds : tuple of str
        What was recorded, of `KINDS`.
    activities : ndarray of `ACTIVITY`, shape (n,)
        What the devices did, by start.
    calls : ndarray of `CALL`, shape (n,)
        What the host asked of CUDA, by start.
    ranges : ndarray of `RANGE`, shape (n,)
        Ranges and marks, by start; of two that start together, the longer first.
    compilations : ndarray of `RANGE`, shape (n,)
        What CuPy compiled; the domain is the source, as in `Compilation`.
    names : tuple of str
        What ``name`` and ``domain`` are indices into. Kernels' are demangled.
    devices : mapping of int to str
        The devices' names.
    threads : mapping of int to str
        The names of the host's threads, as far as Python knows them.
    n_dropped : int
        How many records were lost for want of room.
    launch_time, recorded_launch_time : float or None
        Seconds that the host takes to launch an empty kernel, without and with recording; None
        if that wasn't measured.
    delivery_time : float
        Seconds that the interpreter was busy with taking records over.
    """

    begin: int
    end: int
    kinds: tuple[str, ...]
    activities: RecordArray
    calls: RecordArray
    ranges: RecordArray
    compilations: RecordArray
    names: Sequence[str]
    devices: Mapping[int, str] = field(default_factory=dict)
    threads: Mapping[int, str] = field(default_factory=dict)
    n_dropped: int = 0
    launch_time: float | None = None
    recorded_launch_time: float | None = None
    delivery_time: float = 0.0

    @property
    def duration(self) -> int:
        """Nanoseconds from beginning to end."""
        return self.end - self.begin

    def of_kind(self, kind: str) -> RecordArray:
        """Return the activities of one of `ACTIVITY_KINDS`."""
        is_wanted = self.activities["kind"] == ACTIVITY_KINDS.index(kind)
        chosen: RecordArray = self.activities[is_wanted]
        return chosen

    def launches(self) -> RecordArray:
        """Return for each activity the index in `calls` of the call that launched it.

        Returns
        -------
        ndarray of int, shape (n_activities,)
            -1 where the call wasn't recorded.
        """
        if not len(self.calls):
            return np.full(len(self.activities), -1)
        order = np.argsort(self.calls["correlation_id"], kind="stable")
        sorted_ids = self.calls["correlation_id"][order]
        wanted = self.activities["correlation_id"]
        place = np.minimum(np.searchsorted(sorted_ids, wanted), len(order) - 1)
        # What has no id has 0.
        return np.where((sorted_ids[place] == wanted) & (wanted != 0), order[place], -1)


def busy_time(intervals: RecordArray) -> int:
    """Return the nanoseconds that at least one of the intervals covers.

    Parameters
    ----------
    intervals : ndarray, shape (n,)
        Rows with ``start`` and ``end``, in any order.
    """
    if not len(intervals):
        return 0
    order = np.argsort(intervals["start"], kind="stable")
    start, end = intervals["start"][order], intervals["end"][order]
    reached = np.maximum.accumulate(end)
    # An interval adds what lies beyond everything before it.
    added = reached[1:] - np.maximum(start[1:], reached[:-1])
    return int(end[0] - start[0] + np.maximum(added, 0).sum())
