"""Times that intervals cover, by arithmetic on sorted arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpubench.devices.records import RecordArray

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals that neither touch nor overlap, in order; `union` makes them.

    Attributes
    ----------
    start, end : ndarray of int64, shape (n,)
        Nanoseconds.
    """

    start: Integers
    end: Integers

    @property
    def total(self) -> int:
        """Nanoseconds that they cover."""
        return int((self.end - self.start).sum())

    def within(self, start: Integers, end: Integers) -> Integers:
        """Return the nanoseconds that they cover of each time from `start` to `end`.

        Parameters
        ----------
        start, end : ndarray of int64, shape (n,)
            A time that ends before it starts has nothing covered.
        """
        return self._covered_until(np.maximum(start, end)) - self._covered_until(start)

    def overlap(self, other: Intervals) -> int:
        """Return the nanoseconds that both cover."""
        return int(self.within(other.start, other.end).sum())

    @cached_property
    def _totals(self) -> Integers:
        return np.concatenate([[0], np.cumsum(self.end - self.start)])

    def _covered_until(self, time: Integers) -> Integers:
        n_begun = np.searchsorted(self.start, time, side="right")
        last_end = np.concatenate([[np.iinfo(np.int64).min], self.end])[n_begun]
        to_come = np.where(last_end > time, last_end - time, 0)
        return np.asarray(self._totals[n_begun] - to_come, np.int64)


def covered_time(rows: RecordArray) -> float:
    """Return the seconds that at least one of the records covers."""
    return union(rows["start"], rows["end"]).total * 1e-9


def union(start: Integers, end: Integers) -> Intervals:
    """Return what at least one of these intervals covers.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,)
        Nanoseconds, in any order; an interval that doesn't end after it starts counts for nothing.
    """
    there = end > start
    order = np.argsort(start[there], kind="stable")
    start, end = start[there][order], end[there][order]
    reached = np.maximum.accumulate(end)
    is_first = np.concatenate([[True], start[1:] > reached[:-1]])[: len(start)]
    is_last = np.concatenate([is_first[1:], [True]])[: len(start)]
    return Intervals(start[is_first], reached[is_last])
