"""A sweep as a long table: one row for each metric of each measurement, or for each sample.

Columns of the aggregated table; what isn't known, or doesn't apply, is empty:

``region``
    Name of the region.
(parameters)
    One column for each, with numbers, strings and booleans as they are and texts for the rest.
``metric``, ``unit``
    What the statistics are of; the unit is empty for multiples.
``baseline``
    Of what they are multiples.
``n_samples``
    Number of samples.
``mean``, ``std``, ``min``, ``q1``, ``median``, ``q3``, ``max``, ``ci95_low``, ``ci95_high``
    See `Statistics`.
``relative_std``
    Standard deviation over mean.
``stable``, ``why_unstable``
    Whether the samples are steady, by the result's notes and the throttled samples; unknown for
    other times than the busiest device's, and below six samples, which tell no interval.
``<collector>_mean``, ``_std``, ``_min``, ``_max``; or ``<collector>``
    Numbers, or the text, of each collector.
``<counter>``
    Hardware counters, one column for each.
``roofline``
    Which ceiling the measurement comes nearest to, and how near.
``kernels``
    Names of the kernels that ran, as far as they are known.
``host``
    Where it was measured.
``device``, ``device_name``, ``device_uuid``
    Whose time it is, or is computed from; empty for the host's.
``sm_clock_hz``, ``memory_clock_hz``, ``temperature_c``
    As NVML measured them on that device right after the samples.
``entries``
    How often a run entered the region, on average.
``n_throttled``, ``n_discarded``
    Samples taken while the GPU was slowed down, kept and thrown away.
``method``
    How the times were taken.
``status``, ``error``
    Whether it failed, and why.
``notes``
    Codes of the result's notes.

Where a parameter has the name of another column, ``config_`` is put before it; where a collector
has, ``collected_``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpubench.result import BenchmarkResult
from gpubench.stats import FloatArray
from gpubench.sweeps.cells import Cell, cell
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.metrics import Metric
from gpubench.sweeps.rows import Row

if TYPE_CHECKING:
    from gpubench.sweeps.outcome import SweepResult

Record = dict[str, Cell]
"""One row, by column."""

_FLOAT, _INTEGER, _BOOLEAN, _TEXT = "float64", "Int64", "boolean", "object"

_OF_METRIC = {
    "metric": _TEXT,
    "unit": _TEXT,
    "baseline": _TEXT,
    "n_samples": _INTEGER,
    "mean": _FLOAT,
    "std": _FLOAT,
    "min": _FLOAT,
    "q1": _FLOAT,
    "median": _FLOAT,
    "q3": _FLOAT,
    "max": _FLOAT,
    "ci95_low": _FLOAT,
    "ci95_high": _FLOAT,
    "relative_std": _FLOAT,
    "stable": _BOOLEAN,
    "why_unstable": _TEXT,
}
_OF_MEASUREMENT = {
    "roofline": _TEXT,
    "kernels": _TEXT,
    "host": _TEXT,
    "device": _INTEGER,
    "device_name": _TEXT,
    "device_uuid": _TEXT,
    "sm_clock_hz": _FLOAT,
    "memory_clock_hz": _FLOAT,
    "temperature_c": _FLOAT,
    "entries": _FLOAT,
    "n_throttled": _INTEGER,
    "n_discarded": _INTEGER,
    "method": _TEXT,
    "status": _TEXT,
    "error": _TEXT,
    "notes": _TEXT,
}
OF_SAMPLE = ("metric", "unit", "baseline", "device", "sample", "value", "throttled")

_STATE = ("sm_clock_hz", "memory_clock_hz", "temperature_c")
"""Columns that bear the names of an environment's entries."""

_SPREAD: dict[str, Callable[[FloatArray], Any]] = {
    "mean": np.mean,
    "std": np.std,
    "min": np.min,
    "max": np.max,
}
"""What becomes of a collector's numbers."""

_UNSTEADY = ("unstable", "drifting", "autocorrelated", "throttled", "clock-changed")
"""Codes of the notes that say that samples aren't steady."""


def parameter_columns(result: SweepResult) -> dict[str, str]:
    """Return the column of each parameter."""
    taken = {"region", *_OF_METRIC, *_OF_MEASUREMENT, *OF_SAMPLE}
    return {name: f"config_{name}" if name in taken else name for name in result.parameters}


def records(result: SweepResult) -> list[Record]:
    """Return one row for each metric of each measurement, and for each without any.

    All rows have the same columns in the same order.
    """
    columns = columns_of(result)
    collectors = _collector_names(result)
    table = []
    for row in result.rows:
        common = {
            **_head(result, row.measurement),
            **_collected(row.measurement, collectors),
            **{name: number_or_none(value) for name, value in row.measurement.counters.items()},
        }
        for metric in row.metrics or (None,):
            cells = {**common, **_of_metric(row, metric), **_rest(row, metric)}
            table.append({name: cells.get(name) for name in columns})
    return table


def sample_records(result: SweepResult) -> Iterator[Record]:
    """Yield one row for each sample of each metric, in the order in which they were taken."""
    for row in result.rows:
        head = _head(result, row.measurement)
        throttled = row.measurement.throttled.tolist()
        for metric in row.metrics:
            for index, value in enumerate(metric.samples.tolist()):
                yield {
                    **head,
                    "metric": metric.name,
                    "unit": metric.unit,
                    "baseline": metric.baseline,
                    "device": metric.device,
                    "sample": index,
                    "value": number_or_none(value),
                    "throttled": throttled[index] if throttled else None,
                }


def number_or_none(value: float) -> float | None:
    """Return a finite number as it is, and None for NaN and infinities."""
    return value if math.isfinite(value) else None


def columns_of(result: SweepResult) -> dict[str, str | None]:
    """Return all columns with their types; None where the values decide."""
    columns: dict[str, str | None] = {"region": _TEXT}
    of_parameters = None if result.measurements else _TEXT  # without a value to decide
    columns.update(dict.fromkeys(parameter_columns(result).values(), of_parameters))
    columns.update(_OF_METRIC)
    for name, column in _collector_names(result).items():
        if any(name in each.collected for each in result.measurements):
            columns.update({f"{column}_{statistic}": _FLOAT for statistic in _SPREAD})
        if any(name in each.labels for each in result.measurements):
            columns[column] = _TEXT
    columns.update({name: _FLOAT for each in result.measurements for name in each.counters})
    return columns | _OF_MEASUREMENT


def _collector_names(result: SweepResult) -> dict[str, str]:
    """Return what the columns of each collector are called."""
    taken = {"region", *parameter_columns(result).values(), *_OF_METRIC, *_OF_MEASUREMENT}
    names = dict.fromkeys(
        name for each in result.measurements for name in (*each.collected, *each.labels)
    )
    return {
        name: f"collected_{name}"
        if taken & {name, *(f"{name}_{statistic}" for statistic in _SPREAD)}
        else name
        for name in names
    }


def _head(result: SweepResult, measurement: Measurement) -> Record:
    """Return which region and configuration it is."""
    values = {
        column: cell(measurement.config.get(name))
        for name, column in parameter_columns(result).items()
    }
    return {"region": measurement.region, **values}


def _of_metric(row: Row, metric: Metric | None) -> Record:
    if metric is None:
        return {}
    named: Record = {"metric": metric.name, "unit": metric.unit, "baseline": metric.baseline}
    if metric.statistics is None:
        return {**named, "n_samples": 0}
    mean, std = metric.statistics.mean, metric.statistics.std
    statistics = metric.statistics.to_dict()
    return {
        **{name: value for name, value in statistics.items() if name in _OF_METRIC},
        **named,
        "n_samples": metric.statistics.n,
        "relative_std": std / abs(mean) if std is not None and mean else None,
        **(_stability(row.measurement) if row.time and row.time.device == metric.device else {}),
    }


def _stability(measurement: Measurement) -> Record:
    """Return whether the samples are steady, and if not, why."""
    notes = measurement.result.notes if measurement.result else ()
    reasons = [note.message for note in notes if note.code in _UNSTEADY]
    n_throttled = int(measurement.throttled.sum())
    if n_throttled:
        reasons.append(
            f"{n_throttled} of {measurement.throttled.size} samples were taken while the GPU was "
            "slowed down."
        )
    if reasons:
        return {"stable": False, "why_unstable": " ".join(reasons)}
    if measurement.result is None or measurement.result.cpu.ci95 is None:
        return {"stable": None, "why_unstable": "Too few samples to tell."}
    return {"stable": True, "why_unstable": ""}


def _collected(measurement: Measurement, names: Mapping[str, str]) -> Record:
    cells: Record = {names[name]: text for name, text in measurement.labels.items()}
    for name, values in measurement.collected.items():
        known = values[np.isfinite(values)]
        for statistic, function in _SPREAD.items():
            cells[f"{names[name]}_{statistic}"] = float(function(known)) if known.size else None
    return cells


def _rest(row: Row, metric: Metric | None) -> Record:
    """Return what a measurement has beside its statistics."""
    measurement, result = row.measurement, row.measurement.result
    cells: Record = {
        "roofline": str(row.roofline) if row.roofline else None,
        "entries": number_or_none(measurement.entries),
        "n_throttled": int(measurement.throttled.sum()),
        "n_discarded": measurement.n_discarded,
        "status": measurement.status,
        "error": measurement.error,
    }
    if result is None:
        return cells
    cells |= {
        "kernels": "; ".join(kernel.name for kernel in result.kernels),
        "host": cell(result.environment.get("host")),
        "method": result.method,
        "notes": ", ".join(note.code for note in result.notes),
    }
    if metric is None or metric.device is None:
        return cells
    return {**cells, "device": metric.device, **_device(result, metric.device)}


def _device(result: BenchmarkResult, device: int) -> Record:
    """Return a device's name, and its state right after the samples, as far as it is known."""
    environment: Mapping[str, Any] = result.environment
    described = {each.get("id"): each for each in environment.get("devices", ())}
    known = described.get(device, {})
    states = dict(zip(result.devices, environment.get("device_states", ()), strict=False))
    before, after = states.get(device) or (None, None)
    state: Mapping[str, Any] = after or before or {}
    return {
        "device_name": known.get("name"),
        "device_uuid": known.get("uuid"),
        **{key: state.get(key) for key in _STATE},
    }
