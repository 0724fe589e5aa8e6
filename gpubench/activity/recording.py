"""A finished recording: the records of one block, sorted, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpubench.devices.records import ACTIVITY_KINDS, CALL_KINDS, RecordArray, rows_by_id

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

    def launches(self) -> npt.NDArray[np.int64]:
        """Return for each activity the index in `calls` of the call that launched it.

        Returns
        -------
        ndarray of int, shape (n_activities,)
            -1 where the call wasn't recorded.
        """
        return rows_by_id(self.calls["correlation_id"], self.activities["correlation_id"])
