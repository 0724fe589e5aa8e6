"""Plain values, as a result writes them, read back into the fields of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpubench.arguments import finite_number, shown, text, whole_number
from gpubench.compilation import Compilation
from gpubench.errors import ArgumentError
from gpubench.kernel_time import KernelTime
from gpubench.notes import Note
from gpubench.stats import FloatArray, finite_array


def result_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of the result that wrote `values`.

    Parameters
    ----------
    values : mapping
        As `BenchmarkResult.to_dict` makes them. What is absent or None is unknown.

    Raises
    ------
    ArgumentError
        If the name or the CPU's times are absent, or a value is of the wrong kind.
    """
    values = mapping("a result", values)
    known = {key: value for key, value in values.items() if value is not None}
    for key in ("name", "cpu_times_s"):
        if key not in known:
            raise ArgumentError(f"{key} is missing, and a result can't do without")
    cpu_times = finite_array(known["cpu_times_s"], "cpu_times_s")
    gpu_times, busy_times = (_rows(known, key, cpu_times.size) for key in _DEVICE_TIMES)
    return {
        "name": text("name", known["name"]),
        "cpu_times": cpu_times,
        "gpu_times": gpu_times,
        "busy_times": busy_times,
        "kernels": tuple(map(_kernel, values_of(known, "kernels"))),
        "devices": _device_ids(known, gpu_times),
        "method": text("method", known.get("method", "unknown")),
        "cache": text("cache", known.get("cache", "warm")),
        "samples_per_gate": whole_number(
            "samples_per_gate", known.get("samples_per_gate", 1), at_least=1
        ),
        "floor": _time(known, "floor_s"),
        "clock_step": _time(known, "clock_step_s"),
        "n_warmup": whole_number("n_warmup", known.get("n_warmup", 0), at_least=0),
        "first_call_time": _time(known, "first_call_time_s"),
        "first_call_compile_time": _time(known, "first_call_compile_time_s"),
        "compilations": tuple(map(_compilation, values_of(known, "compilations"))),
        "stopped_by": text("stopped_by", known.get("stopped_by", "n_repeat")),
        "notes": tuple(map(_note, values_of(known, "notes"))),
        "environment": mapping("environment", known.get("environment", {})),
    }


_DEVICE_TIMES = ("gpu_times_s", "busy_times_s")


def _rows(known: Mapping[str, Any], key: str, n: int) -> FloatArray:
    rows = finite_array(known.get(key, ()), key)
    return rows if rows.size else np.empty((0, n))


def mapping(key: str, value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{key} must be a mapping, got {shown(value)}")
    return value


def values_of(known: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list at `key`; an empty one if there is none."""
    value = known.get(key)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{key} must be a list, got {shown(value)}")
    return list(value)


def _device_ids(known: Mapping[str, Any], gpu_times: FloatArray) -> tuple[int, ...]:
    ids = values_of(known, "devices") if "devices" in known else range(len(gpu_times))
    return tuple(whole_number("devices", one, at_least=0) for one in ids)


def _time(known: Mapping[str, Any], key: str) -> float | None:
    return finite_number(key, known[key], at_least=0) if key in known else None


def _compilation(value: Any) -> Compilation:
    entry = mapping("compilations", value)
    return Compilation(
        names=tuple(text("compilations: names", name) for name in values_of(entry, "names")),
        source=text("compilations: source", entry.get("source", "unknown")),
        wall_time=finite_number(
            "compilations: wall_time_s", entry.get("wall_time_s", 0), at_least=0
        ),
    )


def _kernel(value: Any) -> KernelTime:
    entry = mapping("kernels", value)
    return KernelTime(
        name=text("kernels: name", entry.get("name", "")),
        calls=finite_number("kernels: calls", entry.get("calls", 0), at_least=0),
        median_time=finite_number(
            "kernels: median_time_s", entry.get("median_time_s", 0), at_least=0
        ),
    )


def _note(value: Any) -> Note:
    entry = mapping("notes", value)
    return Note(
        code=text("notes: code", entry.get("code", "")),
        message=text("notes: message", entry.get("message", "")),
        advice=text("notes: advice", entry.get("advice", "")),
    )
