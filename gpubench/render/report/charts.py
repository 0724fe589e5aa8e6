"""What the page's script draws of one benchmark, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpubench.render.content import Series, longest, series
from gpubench.render.report.elements import shown
from gpubench.render.report.rows import Row
from gpubench.render.report.runs import Run
from gpubench.render.report.samples import Axis, axis_for, histogram, run_order
from gpubench.render.units import common_unit
from gpubench.storage import Record

_ALL_POINTS = 400_000
"""Of all series together: more would make a page of many megabytes."""

_FEWEST_POINTS, _MOST_POINTS = 100, 400

_Timed = tuple[str, Record, Series]
"""A run's label, what it has of a benchmark, and the samples of one clock in it."""


def points_a_series(rows: Sequence[Row]) -> int:
    """Return how many points each series of samples may have: the fewer, the more there are."""
    results = (each.result for row in rows for each in row.records if each and each.result)
    n_series = sum(1 + len(result.devices) for result in results)
    return max(_FEWEST_POINTS, min(_MOST_POINTS, _ALL_POINTS // max(n_series, 1)))


def charts(runs: Sequence[Run], row: Row, most: int) -> list[dict[str, Any]]:
    """Return the charts of each clock that timed a benchmark, the busiest device's first.

    Parameters
    ----------
    runs : sequence of Run
        All of the report.
    row : Row
        The benchmark.
    most : int
        How many points each series of samples may have.
    """
    found: dict[str, list[_Timed]] = {}
    first = next((each.result for each in row.records if each and each.result), None)
    if first is not None:
        found[longest(first).label] = []
    for run, record in zip(runs, row.records, strict=True):
        if record is not None and record.result is not None:
            for each in series(record.result):
                found.setdefault(each.label, []).append((run.label, record, each))
    return [_of_clock(clock, group, most) for clock, group in found.items() if group]


def _of_clock(clock: str, group: Sequence[_Timed], most: int) -> dict[str, Any]:
    unit = common_unit(*(each.statistics.median for _, _, each in group))
    series_of_times = [each.times for _, _, each in group]
    axis = axis_for(series_of_times, unit.per_second)
    steps = [record.result.clock_step or 0.0 for _, record, _ in group if record.result]
    step = max(steps) if clock != "CPU" else 0.0
    return {
        "clock": clock,
        "unit": unit.symbol,
        "runs": [shown(label) for label, _, _ in group],
        "histogram": histogram(series_of_times, step, axis),
        "order": [run_order(times, axis, most) for times in series_of_times],
        "medians": [axis.number(each.statistics.median) for _, _, each in group],
        "blocks": [_block_starts(record) for _, record, _ in group],
        "marks": [list(_marks(record, each, axis)) for _, record, each in group],
        "notes": [_codes(record, each) for _, record, each in group],
    }


def _block_starts(record: Record) -> list[int]:
    """Return the first sample of each block but the first."""
    return (np.flatnonzero(np.diff(record.blocks)) + 1).tolist() if record.blocks else []


def _codes(record: Record, samples: Series) -> list[str]:
    """Return the codes of the notes on these samples, which are those on the longest times."""
    result = record.result
    if result is None or longest(result).label != samples.label:
        return []
    return list(dict.fromkeys(shown(note.code) for note in result.notes))


def _marks(record: Record, samples: Series, axis: Axis) -> Iterator[dict[str, Any]]:
    """Yield where in the run order a note's reason can be seen: a stretch, and times."""
    times, n = samples.times, len(samples.times)
    statistics, third = samples.statistics, len(times) // 3
    floor = record.result.floor if record.result else None
    for code in _codes(record, samples):
        spans: list[tuple[int, int, float, float]] = []
        if code == "unstable":
            spans = [(0, n - 1, statistics.q1, statistics.q3)]
        elif code == "drifting" and third:
            thirds = ((0, times[:third]), (n - third, times[-third:]))
            spans = [
                (start, start + third - 1, float(np.median(part)), float(np.median(part)))
                for start, part in thirds
            ]
        elif code in ("near-floor", "no-gpu-work") and floor and floor > statistics.min / 2:
            spans = [(0, n - 1, floor, floor)]  # a lower one would flatten all else
        elif code == "interrupted":
            spans = [(n - 1, n - 1, statistics.min, statistics.max)]
        for start, end, low, high in spans:
            ends = {"low": axis.number(low), "high": axis.number(high)}
            yield {"code": code, "from": start, "to": end, **ends}
