"""Configurations and measurements as plain values, for strict JSON, and back again."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from types import ModuleType
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from gpubench.arguments import finite_number, one_of, text, whole_number
from gpubench.errors import ArgumentError
from gpubench.reading import mapping
from gpubench.result import BenchmarkResult
from gpubench.stats import FloatArray
from gpubench.sweeps.cells import cell
from gpubench.sweeps.measurement import Measurement, Status


@dataclass(frozen=True)
class Described:
    """Stands for a value that JSON can't hold, in a configuration that was read back.

    Attributes
    ----------
    type : str
        The value's type, with its module.
    identity : str
        What tells it from others: of an array a digest, of a function its full name, else what
        `repr` made of it, without addresses in memory.
    shown : str
        How it is shown in a table.
    """

    type: str
    identity: str
    shown: str

    def __str__(self) -> str:
        return self.shown


def plain(value: object) -> Any:
    """Return a value of a configuration as JSON can hold it.

    Numbers, strings, None, and lists, tuples and dicts of them are kept; NumPy's numbers become
    Python's. Anything else is described. The same value makes the same JSON in another process,
    unless its `repr` is another one there.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    object
        What strict JSON can hold; `from_plain` reads it.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) in (list, tuple):
        return [plain(item) for item in value]  # type: ignore[attr-defined]
    if type(value) is dict and all(type(key) is str for key in value) and not _is_described(value):
        return {key: plain(item) for key, item in value.items()}
    return asdict(value if isinstance(value, Described) else _described(value))


def from_plain(value: Any) -> object:
    """Return a value that equals the one of which `plain` made this.

    Lists come back as tuples, so that they can be hashed; what JSON can't hold, as `Described`.
    """
    if isinstance(value, list):
        return tuple(map(from_plain, value))
    if not isinstance(value, Mapping):
        return value
    if not _is_described(value):
        return {key: from_plain(item) for key, item in value.items()}
    described = Described(**{key: text(key, part) for key, part in value.items()})
    if described.type == "builtins.float":
        return _NOT_FINITE.get(described.identity, described)
    return described


def canonical(values: Mapping[str, object]) -> str:
    """Return named values as JSON, the same whatever order the names are in."""
    return json.dumps(_each_plain(values), allow_nan=False, sort_keys=True)


def has_identity(value: object) -> bool:
    """Whether what JSON makes of a value tells it from others, in another process too.

    It doesn't for functions that are made on the way, for objects that only their place in memory
    tells apart, and for arrays that lie on a GPU.
    """
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(has_identity, value))
    if isinstance(value, Mapping):
        return all(map(has_identity, value.values()))
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        owner = getattr(value, "__self__", None)
        return "<" not in name and (owner is None or isinstance(owner, ModuleType))
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject
    return _ADDRESS.search(repr(value)) is None


def _each_plain(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: plain(value) for name, value in values.items()}


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
        "config": _each_plain(measurement.config),
        "region": measurement.region,
        "status": measurement.status,
        "error": measurement.error,
        "result": None if result is None else result.to_dict(),
        "entries": _number_to_plain(measurement.entries),
        "throttled": [bool(each) for each in measurement.throttled],
        "n_discarded": int(measurement.n_discarded),
        "collected": {
            name: [_number_to_plain(value) for value in values]
            for name, values in measurement.collected.items()
        },
        "labels": dict(measurement.labels),
        "counters": {name: _number_to_plain(value) for name, value in measurement.counters.items()},
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
        entries=_number("entries", values.get("entries", 1.0)),
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
            name: _number(f"counters: {name}", value)
            for name, value in mapping("counters", known.get("counters", {})).items()
        },
        units={
            name: text(f"units: {name}", unit)
            for name, unit in mapping("units", known.get("units", {})).items()
        },
    )


_NOT_FINITE = {str(number): number for number in (math.inf, -math.inf, math.nan)}


def _is_described(value: Mapping[str, Any]) -> bool:
    return value.keys() == {field.name for field in fields(Described)}


def _described(value: object) -> Described:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return Described(name, _text_of(_identity, value), _text_of(cell, value))


def _text_of(describe: Callable[[object], object], value: object) -> str:
    """Return a description without addresses in memory."""
    try:
        return _ADDRESS.sub("", str(describe(value)))
    except Exception:  # noqa: BLE001  # of a class that gpubench doesn't know
        return f"<{type(value).__name__}>"


def _identity(value: object) -> str:
    name = getattr(value, "__qualname__", None)  # of a class or a function
    if isinstance(name, str):
        return f"{getattr(value, '__module__', None)}.{name}"
    if isinstance(value, np.ndarray):
        digest = ""
        if not value.dtype.hasobject:
            digest = f", sha256={hashlib.sha256(value.tobytes()).hexdigest()[:16]}"
        return f"ndarray(shape={value.shape}, dtype={value.dtype}{digest})"
    if hasattr(value, "shape") and hasattr(value, "dtype"):  # another framework's array
        return f"{type(value).__name__}(shape={tuple(value.shape)}, dtype={value.dtype})"
    return repr(value)


_ADDRESS = re.compile(" at 0x[0-9a-fA-F]+")


def _number_to_plain(value: float) -> float | str | None:
    number = float(value)
    if math.isnan(number):
        return None
    return number if math.isfinite(number) else str(number)


def _number(key: str, value: Any) -> float:
    if value is None:
        return math.nan
    known = _NOT_FINITE.get(value) if isinstance(value, str) else None
    return finite_number(key, value) if known is None else known


def _numbers(key: str, values: Any) -> FloatArray:
    return np.array([_number(key, value) for value in _list(key, values)], np.float64)


def _flags(values: Any) -> npt.NDArray[np.bool_]:
    flags = _list("throttled", values)
    wrong = [flag for flag in flags if not isinstance(flag, bool)]
    if wrong:
        raise ArgumentError(f"throttled must hold true and false, got {wrong[0]!r}")
    return np.array(flags, np.bool_)


def _list(key: str, value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{key} must be a list, got {value!r}")
    return list(value)


def _status(value: Any) -> Status:
    status: Any = one_of("status", value, get_args(Status))
    return cast(Status, status)
