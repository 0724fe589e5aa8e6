"""What a picture of a sweep shows: the points, and where each belongs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpubench.arguments import one_of
from gpubench.errors import ArgumentError
from gpubench.render.sweep import TIME_NAMES, computed_names
from gpubench.render.units import common_unit
from gpubench.stats import Statistics
from gpubench.sweeps.cells import Cell, cell
from gpubench.sweeps.metrics import CPU_TIME, GPU_TIME, PEAK_SHARE, SECONDS, Metric

if TYPE_CHECKING:
    from gpubench.sweeps.outcome import SweepResult
    from gpubench.sweeps.rows import Row

REGION, DEVICE = "region", "device"


@dataclass(frozen=True)
class Point:
    """A median, its error, and where it belongs.

    Attributes
    ----------
    value, low, high : float
        Median and the ends of its 95 % interval, or of the range where that is unknown, in the
        unit of the axis.
    x, row, col : str, number, bool or None
        The place along the axis, and the panel.
    hue : str
        Tells it from the others at the same place; empty if there are none.
    """

    value: float
    low: float
    high: float
    x: Cell
    row: Cell
    col: Cell
    hue: str


@dataclass(frozen=True)
class Points:
    """All that a picture shows.

    Attributes
    ----------
    points : tuple of Point
        In the order of the measurements.
    places : mapping of str to str
        What ``x``, ``hue``, ``row`` and ``col`` stand for; empty for nothing.
    y_label : str
        The metric with its unit.
    caption : str
        What else a reader has to know.
    baseline : bool
        Whether values are multiples of a baseline.
    """

    points: tuple[Point, ...]
    places: Mapping[str, str]
    y_label: str
    caption: str
    baseline: bool

    def at(self, row: Cell, col: Cell) -> list[Point]:
        """Return the points of one panel."""
        return [point for point in self.points if (point.row, point.col) == (row, col)]


def points_of(result: SweepResult, asked: Mapping[str, str | None], y: str | None) -> Points:
    """Choose what to show.

    Parameters
    ----------
    result : SweepResult
        What was measured.
    asked : mapping of str to (str or None)
        What ``x``, ``hue``, ``row`` and ``col`` are to stand for; None to choose.
    y : str or None
        Name of the metric; None to choose.

    Raises
    ------
    ArgumentError
        If there is no metric or column by that name, or nothing to be shown.
    """
    name = _metric_name(result.rows, y)
    for place, column in asked.items():
        if column is not None:
            one_of(place, column, (*result.parameters, REGION, DEVICE))
    by_device = DEVICE in asked.values()
    found = [pair for row in result.rows for pair in _metrics_of(row, name, by_device)]
    if not found:
        raise ArgumentError(f"y={name!r} has no value in any measurement of {result.name}")
    shown = _comparable(found)
    keys = [_columns(row, metric, result.parameters, by_device) for row, metric in shown]
    places = _places(keys, asked, result.parameters)
    metrics = [metric for _, metric in shown]
    scale, label = _axis(name, metrics)
    return Points(
        tuple(
            _point(metric.statistics, key, places, scale)
            for metric, key in zip(metrics, keys, strict=True)
            if metric.statistics
        ),
        {place: ", ".join(names) for place, names in places.items()},
        label,
        _caption(metrics, len(found) - len(shown)),
        bool(metrics[0].baseline),
    )


def _metric_name(rows: Sequence[Row], y: str | None) -> str:
    names = list(dict.fromkeys(metric.name for row in rows for metric in row.metrics))
    if not names:
        raise ArgumentError("there is nothing to plot: no measurement has a sample")
    if y is not None:
        return one_of("y", y, names)
    computed = [name for name in computed_names(rows) if name != PEAK_SHARE]
    return next(iter([*computed, *(name for name in (GPU_TIME, CPU_TIME) if name in names)]))


def _metrics_of(row: Row, name: str, by_device: bool) -> list[tuple[Row, Metric]]:
    """Return the metric; of several devices all, or the busiest one's."""
    found = [metric for metric in row.metrics if metric.name == name and metric.statistics]
    if row.time and not by_device:
        busiest = row.time.device
        found = sorted(found, key=lambda metric: metric.device != busiest)[:1]
    return [(row, metric) for metric in found]


def _comparable(found: Sequence[tuple[Row, Metric]]) -> list[tuple[Row, Metric]]:
    """Return those in the same unit: the multiples of a baseline if there are any."""
    first = next((metric for _, metric in found if metric.baseline), found[0][1])
    wanted = first.unit, first.baseline
    return [(row, metric) for row, metric in found if (metric.unit, metric.baseline) == wanted]


def _columns(
    row: Row, metric: Metric, parameters: Sequence[str], by_device: bool
) -> dict[str, Cell]:
    config = row.measurement.config
    own: dict[str, Cell] = {REGION: row.measurement.region}
    if by_device:
        own[DEVICE] = metric.device
    # A parameter goes before a column of gpubench's own by the same name.
    return own | {name: cell(config.get(name)) for name in parameters}


def _places(
    keys: Sequence[Mapping[str, Cell]], asked: Mapping[str, str | None], parameters: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the columns that decide each place, so that no two points share all places."""
    values = {name: list(dict.fromkeys(key[name] for key in keys)) for name in keys[0]}
    varying = [name for name, each in values.items() if len(each) > 1]
    given = [name for name in asked.values() if name]
    free = [name for name in (*parameters, REGION) if name not in given]
    x = asked["x"] or _default_x(values, free)
    hue = [asked["hue"]] if asked["hue"] else []
    placed = {x, *given}
    hue += [name for name in varying if name not in placed]
    return {
        "x": (x,),
        "hue": tuple(hue),
        "row": (asked["row"],) if asked["row"] else (),
        "col": (asked["col"],) if asked["col"] else (),
    }


def _default_x(values: Mapping[str, Sequence[Cell]], free: Sequence[str]) -> str:
    """Return the first column with numbers, of those that vary if there are any."""
    order = sorted(
        free, key=lambda name: (len(values[name]) == 1, not all(map(is_number, values[name])))
    )
    return next(iter(order), REGION)


def is_number(value: Cell) -> bool:
    """Whether a value has a place on an axis of numbers, as integers beyond floats haven't."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max


def _axis(name: str, metrics: Sequence[Metric]) -> tuple[float, str]:
    """Return by what to multiply values for the axis, and its label."""
    title = TIME_NAMES.get(name, name.replace("_", " "))
    unit, baseline = metrics[0].unit, metrics[0].baseline
    if baseline:
        return 1.0, f"{title} relative to {baseline}"
    if unit != SECONDS:
        return 1.0, f"{title} ({unit})" if unit else title
    seconds = common_unit(max(each.statistics.median for each in metrics if each.statistics))
    return seconds.per_second, f"{title} ({seconds.symbol})"


def _point(
    statistics: Statistics,
    key: Mapping[str, Cell],
    places: Mapping[str, tuple[str, ...]],
    scale: float,
) -> Point:
    low, high = statistics.ci95 or (statistics.min, statistics.max)
    row, col = (key[places[each][0]] if places[each] else None for each in ("row", "col"))
    return Point(
        value=scale * statistics.median,
        low=scale * low,
        high=scale * high,
        x=key[places["x"][0]],
        row=row,
        col=col,
        hue=", ".join(str(key[name]) for name in places["hue"]),
    )


def _caption(metrics: Sequence[Metric], n_left_out: int) -> str:
    """Return what the bars mean, and what isn't shown."""
    known = [bool(each.statistics and each.statistics.ci95) for each in metrics]
    if all(known):
        error = "median and its 95 % interval"
    elif any(known):
        error = "median and its 95 % interval, or the range of fewer than 6 samples"
    else:
        error = "median and range"
    return f"{error}; {n_left_out} without a baseline not shown" if n_left_out else error
