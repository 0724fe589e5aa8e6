"""What the readers of other tools' files share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpubench.notes import Note
from gpubench.result import BenchmarkResult
from gpubench.storage.document import short_message
from gpubench.storage.record import Record

Times = npt.NDArray[np.float64] | Sequence[float]

DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What is met where a file isn't as its tool writes it; `ArgumentError` is among them."""

NO_SAMPLES = "the file holds statistics without samples"


def or_unavailable(name: str, read: Callable[[], Record]) -> Record:
    """Return what was read, or a record that says why it can't be."""
    try:
        return read()
    except DAMAGE as error:
        return Record(name=name, status="unavailable", reason=f"unreadable: {short_message(error)}")


def host_result(
    name: str, times: Times, tool: str, environment: Mapping[str, object], *, calls: int = 1
) -> BenchmarkResult:
    """Return times of the host, each the mean of so many calls."""
    notes: tuple[Note, ...] = ()
    if calls > 1:
        notes = (Note("means-of-calls", f"Each sample is the mean of {calls} calls."),)
    return _result(
        name, tool, environment, cpu_times=times, gpu_times=np.empty((0, len(times))), notes=notes
    )


def device_result(
    name: str,
    times: Times,
    tool: str,
    environment: Mapping[str, object],
    *,
    device: int = 0,
    cache: str = "warm",
) -> BenchmarkResult:
    """Return times of a device; the host's, which are unknown, are zero, and a note says so."""
    unknown = Note(
        "cpu-times-unknown", f"{tool} keeps no CPU time of each call; they stand here as zero."
    )
    return _result(
        name,
        tool,
        environment,
        cpu_times=np.zeros(len(times)),
        gpu_times=np.asarray(times, np.float64)[np.newaxis],
        devices=(device,),
        cache=cache,
        notes=(unknown,),
    )


def _result(
    name: str,
    tool: str,
    environment: Mapping[str, object],
    *,
    cpu_times: Times,
    gpu_times: npt.NDArray[np.float64],
    devices: tuple[int, ...] = (),
    cache: str = "warm",
    notes: tuple[Note, ...] = (),
) -> BenchmarkResult:
    values: dict[str, Any] = {
        "name": name,
        "cpu_times_s": cpu_times,
        "gpu_times_s": gpu_times,
        "devices": list(devices),
        "method": tool,
        "cache": cache,
        "environment": environment,
        "notes": [{"code": note.code, "message": note.message} for note in notes],
    }
    return BenchmarkResult.from_dict(values)


def mapping_or_empty(value: Any) -> Mapping[str, Any]:
    """Return a mapping, an empty one where there is something else."""
    return value if isinstance(value, Mapping) else {}


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return those values that are finite numbers, as floats."""
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value)
    }
