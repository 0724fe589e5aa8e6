"""Measurements as plain values, for strict JSON, and back again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from gpubench.arguments import one_of, shown, text, whole_number
from gpubench.errors import ArgumentError
from gpubench.plain import each_plain, from_plain, number_from_plain, number_to_plain
from gpubench.reading import mapping
from gpubench.result import BenchmarkResult
from gpubench.stats import FloatArray
from gpubench.sweeps.measurement import Measurement, Status


def measurement_to_dict(measurement: Measurement) -> dict[str, Any]:
    """Return a measurement as plain values, under the same keys whatever was measured.

    Returns
    -------
    dict
        What strict JSON can hold: a missing number is None, an infinity ``"inf"`` or ``"-inf"``.
        ``result`` is `BenchmarkResult.to_dict` or None; the configuration as `plain` makes it.
    """
    result = measurement.result
    return {
        "config": each_plain(measurement.config),
        "region": measurement.region,
        "status": measurement.status,
        "error": measurement.error,
        "result": None if result is None else result.to_dict(),
        "entries": number_to_plain(measurement.entries),
        "throttled": [bool(each) for each in measurement.throttled],
        "n_discarded": int(measurement.n_discarded),
        "collected": {
            name: [number_to_plain(value) for value in values]
            for name, values in measurement.collected.items()
        },
        "labels": dict(measurement.labels),
        "counters": {name: number_to_plain(value) for name, value in measurement.counters.items()},
        "units": dict(measurement.units),
    }


def measurement_from_dict(values: Mapping[str, Any]) -> Measurement:
    """Return the measurement of which `measurement_to_dict` made these values.

    Parameters
    ----------
    values : mapping
        As `measurement_to_dict` makes them, also after a trip through JSON. Keys that it doesn't
        know are ignored; of those that it does, only ``config`` and ``region`` have to be there.

    Raises
    ------
    ArgumentError
        If one of those two is missing, or a value is of the wrong kind; the message names the key.
    """
    values = mapping("a measurement", values)
    known = {key: value for key, value in values.items() if value is not None}
    for key in ("config", "region"):
        if key not in known:
            raise ArgumentError(f"{key} is missing, and a measurement can't do without")
    return Measurement(
        config={
            text("config", name): from_plain(value)
            for name, value in mapping("config", known["config"]).items()
        },
        region=text("region", known["region"]),
        status=_status(known.get("status", "ok")),
        error=text("error", known.get("error", "")),
        result=BenchmarkResult.from_dict(known["result"]) if "result" in known else None,
        entries=number_from_plain("entries", values.get("entries", 1.0)),
        throttled=_flags(known.get("throttled", [])),
        n_discarded=whole_number("n_discarded", known.get("n_discarded", 0), at_least=0),
        collected={
            name: _numbers(f"collected: {name}", series)
            for name, series in mapping("collected", known.get("collected", {})).items()
        },
        labels={
            name: text(f"labels: {name}", label)
            for name, label in mapping("labels", known.get("labels", {})).items()
        },
        counters={
            name: number_from_plain(f"counters: {name}", value)
            for name, value in mapping("counters", known.get("counters", {})).items()
        },
        units={
            name: text(f"units: {name}", unit)
            for name, unit in mapping("units", known.get("units", {})).items()
        },
    )


def _numbers(key: str, values: Any) -> FloatArray:
    return np.array([number_from_plain(key, value) for value in _list(key, values)], np.float64)


def _flags(values: Any) -> npt.NDArray[np.bool_]:
    flags = _list("throttled", values)
    wrong = [flag for flag in flags if not isinstance(flag, bool)]
    if wrong:
        raise ArgumentError(f"throttled must hold true and false, got {wrong[0]!r}")
    return np.array(flags, np.bool_)


def _list(key: str, value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{key} must be a list, got {shown(value)}")
    return list(value)


def _status(value: Any) -> Status:
    status: Any = one_of("status", value, get_args(Status))
    return cast(Status, status)
