"""Totals of a recording: by name, by device and by range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpubench.activity.intervals import covered_time
from gpubench.activity.recording import Recording
from gpubench.devices.records import ACTIVITY_KINDS, CALL_KINDS, RecordArray

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NameTotal:
    """What all records of one name took together.

    Attributes
    ----------
    name : str
        Of a kernel, copy, set, function of CUDA's API, range or compilation.
    kind : str
        One of `ACTIVITY_KINDS` or `CALL_KINDS`; the domain of a range; the source of a
        compilation.
    n_calls : int
        How many records there are.
    total_time, mean_time, min_time, max_time : float
        Seconds. The total may exceed the recording, as records may overlap.
    std_time : float or None
        Standard deviation of the population in seconds; None for one record.
    share : float
        `total_time` as a part of the recording's duration.
    total_bytes : int
        What was copied or set.
    """

    name: str
    kind: str
    n_calls: int
    total_time: float
    mean_time: float
    std_time: float | None
    min_time: float
    max_time: float
    share: float
    total_bytes: int


@dataclass(frozen=True)
class DeviceTotal:
    """What one device did.

    Attributes
    ----------
    device : int
        Its id.
    busy_time : float
        Seconds in which it did at least one thing.
    share : float
        `busy_time` as a part of the recording's duration.
    activities : tuple of NameTotal
        The longest first.
    """

    device: int
    busy_time: float
    share: float
    activities: tuple[NameTotal, ...]


@dataclass(frozen=True)
class RangeTotal:
    """All ranges of one name and domain, and what was launched in them.

    Attributes
    ----------
    host : NameTotal
        The time on the host, from each range's begin to its end.
    busy_time : float
        Seconds in which at least one device did something that was launched in these ranges.
    share : float
        `busy_time` as a part of the recording's duration.
    activities : tuple of NameTotal
        What was launched in these ranges, the longest first; once, however often such ranges
        are nested in one another.
    """

    host: NameTotal
    busy_time: float
    share: float
    activities: tuple[NameTotal, ...]


@dataclass(frozen=True)
class RangeSummary:
    """The ranges of a recording.

    Attributes
    ----------
    ranges : tuple of RangeTotal
        The longest on the host first.
    n_outside : int
        How many activities belong to no range, or to an unknown one for want of the call that
        launched them.
    """

    ranges: tuple[RangeTotal, ...]
    n_outside: int


def activity_totals(recording: Recording) -> tuple[NameTotal, ...]:
    """Return what the devices did, by name, the longest first."""
    return _activity_totals(recording.activities, recording)


def call_totals(recording: Recording) -> tuple[NameTotal, ...]:
    """Return what the host called of CUDA's API, by name, the longest first."""
    return _longest_first(_totals(recording.calls, "kind", CALL_KINDS, recording))


def range_totals(recording: Recording) -> tuple[NameTotal, ...]:
    """Return the ranges' time on the host, by name and domain, the longest first."""
    return _longest_first(_totals(recording.ranges, "domain", recording.names, recording))


def compilation_totals(recording: Recording) -> tuple[NameTotal, ...]:
    """Return what CuPy compiled, by name and source, the longest first."""
    return _longest_first(_totals(recording.compilations, "domain", recording.names, recording))


def device_totals(recording: Recording) -> tuple[DeviceTotal, ...]:
    """Return what each device did that did anything, by the devices' ids."""
    totals = []
    for device in np.unique(recording.activities["device"]).tolist():
        rows = recording.activities[recording.activities["device"] == device]
        busy = covered_time(rows)
        names = _activity_totals(rows, recording)
        totals.append(DeviceTotal(device, busy, share(busy, recording), names))
    return tuple(totals)


def call_time(recording: Recording) -> float:
    """Return the seconds in which at least one thread was in a call of CUDA's API.

    A call of the driver that the runtime makes lies inside the runtime's own.
    """
    return covered_time(recording.calls)


def share(seconds: float, recording: Recording) -> float:
    """Return a time as a part of the recording's duration."""
    return seconds * 1e9 / max(recording.duration, 1)


def range_summary(recording: Recording) -> RangeSummary:
    """Return the ranges by name and domain, and what was launched in each.

    An activity belongs to every range that was open, on the thread that launched it, when the
    launching call began.
    """
    ranges = recording.ranges
    if not len(ranges):
        return RangeSummary((), len(recording.activities))
    launched, first, last = _launched_in_ranges(recording)
    edges = np.bincount(first, minlength=len(launched) + 1)
    edges -= np.bincount(last, minlength=len(launched) + 1)
    n_covered = int(np.count_nonzero(np.cumsum(edges)))
    # Sorted by group, then place, each slice of a group gives what those before it didn't reach.
    keys = _group_keys(ranges, "domain", recording)
    order = np.lexsort((first, keys))
    starts = _group_starts(keys[order])
    totals = []
    for host, group in zip(
        _totals(ranges, "domain", recording.names, recording),
        np.split(order, starts[1:]),
        strict=True,
    ):
        rows = recording.activities[launched[_union(first[group], last[group])]]
        busy = covered_time(rows)
        totals.append(
            RangeTotal(host, busy, share(busy, recording), _activity_totals(rows, recording))
        )
    totals.sort(key=lambda total: -total.host.total_time)
    return RangeSummary(tuple(totals), len(recording.activities) - n_covered)


def _launched_in_ranges(recording: Recording) -> tuple[IntArray, IntArray, IntArray]:
    """Return what was launched, by thread and time, and which slice of it each range holds.

    Returns
    -------
    launched : ndarray, shape (n,)
        Indices of the activities whose call is known.
    first, last : ndarray, shape (n_ranges,)
        ``launched[first[i] : last[i]]`` is what was launched in range i.
    """
    launches = recording.launches()
    known = np.flatnonzero(launches >= 0)
    calls = recording.calls[launches[known]]
    order = np.lexsort((calls["start"], calls["thread"]))
    times, threads = calls["start"][order], calls["thread"][order]
    first = np.zeros(len(recording.ranges), np.int64)
    last = np.zeros_like(first)
    for thread in np.unique(recording.ranges["thread"]):
        of_thread = np.flatnonzero(recording.ranges["thread"] == thread)
        rows = recording.ranges[of_thread]
        begin, end = np.searchsorted(threads, thread), np.searchsorted(threads, thread, "right")
        first[of_thread] = begin + np.searchsorted(times[begin:end], rows["start"])
        last[of_thread] = begin + np.searchsorted(times[begin:end], rows["end"])
    return known[order], first, last


def _union(first: IntArray, last: IntArray) -> IntArray:
    """Return each place that lies in one of the slices, once; the slices are sorted."""
    reached = np.maximum.accumulate(last)
    first = np.maximum(first, np.concatenate(([0], reached[:-1])))
    counts = np.maximum(last - first, 0)
    offsets = first - (np.cumsum(counts) - counts)
    places: IntArray = np.arange(counts.sum()) + np.repeat(offsets, counts)
    return places


def _activity_totals(rows: RecordArray, recording: Recording) -> tuple[NameTotal, ...]:
    return _longest_first(_totals(rows, "kind", ACTIVITY_KINDS, recording))


def _longest_first(totals: Iterable[NameTotal]) -> tuple[NameTotal, ...]:
    return tuple(sorted(totals, key=lambda total: -total.total_time))


def _totals(
    rows: RecordArray, column: str, labels: Sequence[str], recording: Recording
) -> Iterator[NameTotal]:
    """Yield the total of each name and value of `column`, in the order of `_group_keys`."""
    if not len(rows):
        return
    keys = _group_keys(rows, column, recording)
    order = np.argsort(keys, kind="stable")
    starts = _group_starts(keys[order])
    counts = np.diff(starts, append=len(rows))
    times = (rows["end"] - rows["start"])[order]
    total = np.add.reduceat(times, starts)
    mean = total / counts
    # Squares of deviations: those of the times themselves would lose the digits that differ.
    variance = np.add.reduceat((times - np.repeat(mean, counts)) ** 2, starts) / counts
    sizes = rows["bytes"] if "bytes" in (rows.dtype.names or ()) else np.zeros(len(rows), np.int64)
    yield from map(
        NameTotal,
        [recording.names[name] for name in rows["name"][order[starts]].tolist()],
        [labels[label] for label in rows[column][order[starts]].tolist()],
        counts.tolist(),
        (total / 1e9).tolist(),
        (mean / 1e9).tolist(),
        map(_spread, (np.sqrt(variance) / 1e9).tolist(), counts.tolist()),
        (np.minimum.reduceat(times, starts) / 1e9).tolist(),
        (np.maximum.reduceat(times, starts) / 1e9).tolist(),
        (total / max(recording.duration, 1)).tolist(),
        np.add.reduceat(sizes[order], starts).tolist(),
    )


def _spread(std_time: float, n: int) -> float | None:
    return std_time if n > 1 else None


def _group_keys(rows: RecordArray, column: str, recording: Recording) -> IntArray:
    """Return a number for each row that tells its name and its value of `column`."""
    keys: IntArray = rows[column].astype(np.int64) * len(recording.names) + rows["name"]
    return keys


def _group_starts(sorted_keys: IntArray) -> IntArray:
    return np.flatnonzero(np.diff(sorted_keys, prepend=-1))
