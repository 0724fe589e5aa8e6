"""Figures that depend on parameters, whether a suite measured them or a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.reading import mapping
from gpubench.render.content import longest
from gpubench.render.sweep import TIME_NAMES
from gpubench.storage import Record
from gpubench.sweeps.cells import Cell, cell
from gpubench.sweeps.metrics import BUSY_TIME, CPU_TIME, GPU_TIME, SECONDS

REGION = "region"


@dataclass(frozen=True)
class Observation:
    """One figure, with where it was taken.

    Attributes
    ----------
    name : str
        Of the benchmark or the sweep.
    metric, unit : str
        What was measured, and in what; the unit is empty for multiples.
    place : mapping of str to Cell
        Values by the parameters' names.
    value, low, high : float
        The figure, and the ends of its error; of times the median, and its 95 % interval or, of
        fewer than six samples, their range.
    """

    name: str
    metric: str
    unit: str
    place: Mapping[str, Cell]
    value: float
    low: float
    high: float


def of_records(records: Iterable[Record]) -> Iterator[Observation]:
    """Yield what each record measured: the busiest device's time, the CPU's, or its value."""
    for record in records:
        place = {name: cell(value) for name, value in record.params.items()}
        if record.value is not None and math.isfinite(record.value):
            values = (record.value,) * 3
            yield Observation(record.name, "value", record.unit, place, *values)
        if record.result is None:
            continue
        statistics = longest(record.result).statistics
        low, high = statistics.ci95 or (statistics.min, statistics.max)
        metric = TIME_NAMES[GPU_TIME if record.result.devices else CPU_TIME]
        yield Observation(record.name, metric, SECONDS, place, statistics.median, low, high)


def of_sweep(sweep: Mapping[str, Any]) -> Iterator[Observation]:
    """Yield the metrics of a sweep's measurements, as `SweepResult.to_dict` has them.

    Of several devices the busiest one's; the busy times, and the CPU's where a GPU was timed, are
    left out.
    """
    measurements = [mapping("a measurement", each) for each in sweep["measurements"]]
    regions = {each.get("region") for each in measurements}
    name = str(sweep.get("name", "sweep"))
    for each in measurements:
        place = {key: cell(value) for key, value in mapping("config", each["config"]).items()}
        if len(regions) > 1:
            place = {REGION: cell(each.get("region")), **place}
        for metric in _chosen(each.get("metrics") or ()):
            found = _of_metric(name, place, metric)
            if math.isfinite(found.low) and math.isfinite(found.high):
                yield found


def _chosen(metrics: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    known = [metric for metric in metrics if metric.get("statistics")]
    names = dict.fromkeys(metric["name"] for metric in known)
    hidden = {BUSY_TIME, CPU_TIME} if GPU_TIME in names else {BUSY_TIME}
    for name in names:
        if name not in hidden:
            mine = (metric for metric in known if metric["name"] == name)
            yield max(mine, key=lambda metric: float(metric["statistics"]["median"]))


def _of_metric(name: str, place: Mapping[str, Cell], metric: Mapping[str, Any]) -> Observation:
    statistics = metric["statistics"]
    low, high = statistics.get("ci95_low"), statistics.get("ci95_high")
    if low is None or high is None:
        low, high = statistics["min"], statistics["max"]
    title = TIME_NAMES.get(metric["name"], str(metric["name"]).replace("_", " "))
    if metric.get("baseline"):
        title += f" relative to {metric['baseline']}"
    values = (float(statistics["median"]), float(low), float(high))
    return Observation(name, title, str(metric.get("unit") or ""), place, *values)
