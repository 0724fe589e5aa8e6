"""Activity records as arrays: what devices did, and what the host asked of them.

Times are integers, nanoseconds on the clock of the source that the records come from; names are
indices into a table of strings. So a record is a row of 30 to 100 bytes, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

RecordArray = npt.NDArray[Any]
"""A structured array, shape (n,)."""

ACTIVITY_KINDS = ("kernel", "memcpy", "memset")
"""What a device does; the column ``kind`` of `ACTIVITY` is an index into this."""

KERNEL, MEMCPY, MEMSET = range(len(ACTIVITY_KINDS))

CALL_KINDS = ("runtime", "driver")
"""Whose function the host called; the column ``kind`` of `CALL` is an index into this."""

MEMORY_KINDS = ("", "pageable", "pinned", "device", "array", "managed", "static", "static managed")
"""Where a copy reads and writes; the empty one is unknown."""

ACTIVITY = np.dtype(
    [
        ("kind", "u1"),
        ("name", "i4"),
        ("start", "i8"),
        ("end", "i8"),
        ("device", "i4"),
        ("stream", "u4"),
        ("is_null_stream", "?"),
        ("correlation_id", "u4"),
        ("graph_id", "u4"),
        ("bytes", "i8"),
        ("source_memory", "u1"),
        ("target_memory", "u1"),
        ("is_async", "?"),
        ("grid", "i4", (3,)),
        ("block", "i4", (3,)),
        ("registers", "u2"),
        ("shared_bytes", "i4"),
    ]
)
"""One thing that a device did. ``graph_id`` is 0 outside graphs; ``source_memory`` and
``target_memory`` are indices into `MEMORY_KINDS`; what doesn't apply to a kind is 0."""

CALL = np.dtype(
    [
        ("kind", "u1"),
        ("name", "i4"),
        ("start", "i8"),
        ("end", "i8"),
        ("thread", "u8"),
        ("correlation_id", "u4"),
        ("status", "i4"),
    ]
)
"""One call of CUDA's API. Its correlation id is that of the activities that it launched."""

RANGE = np.dtype(
    [("name", "i4"), ("domain", "i4"), ("start", "i8"), ("end", "i8"), ("thread", "u8")]
)
"""One named range of a host thread; a mark if it ends as it starts."""

LINK = np.dtype([("correlation_id", "u4"), ("external_id", "u8")])
"""Which external id was on top of the thread's stack at a call of CUDA's API."""


def no_records(dtype: np.dtype[Any]) -> RecordArray:
    """Return an array of no rows."""
    return np.empty(0, dtype)


def rows_by_id(ids: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return for each wanted id the place of its first record.

    Parameters
    ----------
    ids : ndarray of int, shape (n_records,)
        The records' correlation ids, in any order; 0 is none.
    wanted : ndarray of int, shape (n,)
        Correlation ids.

    Returns
    -------
    ndarray of int64, shape (n,)
        -1 where there is no such record.
    """
    if not len(ids):
        return np.full(len(wanted), -1)
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids[order], wanted), len(order) - 1)
    is_there = (ids[order][place] == wanted) & (wanted != 0)
    return np.where(is_there, order[place], -1)


_TABLES = {"activities": ACTIVITY, "calls": CALL, "ranges": RANGE, "links": LINK}


@dataclass(frozen=True)
class Records:
    """Some records, in the order in which they were delivered.

    Attributes
    ----------
    activities : ndarray of `ACTIVITY`, shape (n,)
    calls : ndarray of `CALL`, shape (n,)
    ranges : ndarray of `RANGE`, shape (n,)
    links : ndarray of `LINK`, shape (n,)
    names : sequence of str
        What the columns ``name`` and ``domain`` are indices into.
    n_dropped : int
        How many records were lost for want of room.
    """

    activities: RecordArray
    calls: RecordArray
    ranges: RecordArray
    links: RecordArray
    names: Sequence[str]
    n_dropped: int = 0

    @classmethod
    def joined(cls, chunks: Sequence[Records], names: Sequence[str], n_dropped: int) -> Records:
        """Return the records of several deliveries, with names and a number for all of them."""
        tables = {
            table: np.concatenate([no_records(dtype), *(getattr(c, table) for c in chunks)])
            for table, dtype in _TABLES.items()
        }
        return cls(**tables, names=names, n_dropped=n_dropped)
