"""The one figure of a record that a table has room for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpubench.render.content import Series, longest, median_text, series
from gpubench.render.units import common_unit, format_time, format_value
from gpubench.storage import Record


@dataclass(frozen=True)
class Figure:
    """A figure as it is shown.

    Attributes
    ----------
    value : float
        To sort by: seconds, or what the benchmark returned.
    text : str
        With its unit.
    interval : str
        Its 95 % interval; empty if there is none.
    clock : str
        Whose time it is, ``"CPU"`` or ``"GPU-0"``; empty if it is no time, or that isn't known.
    """

    value: float
    text: str
    interval: str = ""
    clock: str = ""


def figure(record: Record | None) -> Figure | None:
    """Return the busiest device's median, or the CPU's; else what else there is."""
    if record is None:
        return None
    return gpu_figure(record) or cpu_figure(record) or other_figure(record)


def gpu_figure(record: Record) -> Figure | None:
    """Return the busiest device's median."""
    if record.result is None or not record.result.devices:
        return None
    return _median(longest(record.result))


def cpu_figure(record: Record) -> Figure | None:
    """Return the CPU's median."""
    return None if record.result is None else _median(series(record.result)[0])


def other_figure(record: Record) -> Figure | None:
    """Return what a benchmark without samples returned, or another tool kept of it."""
    if record.result is not None:
        return None
    if record.value is not None:
        return Figure(record.value, format_value(record.value, record.unit))
    return _summary(record.summary)


def _median(samples: Series) -> Figure:
    median = samples.statistics.median
    text, _, interval = median_text(samples.statistics, common_unit(median)).partition(" [")
    return Figure(median, text, f"[{interval}" if interval else "", samples.label)


def _summary(summary: Mapping[str, float]) -> Figure | None:
    times = {name: value for name, value in summary.items() if name.endswith("_s")}
    for statistic in ("median", "mean", ""):
        for name, seconds in times.items():
            if statistic in name:
                return Figure(seconds, format_time(seconds))
    return None
