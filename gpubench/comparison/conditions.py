"""Under what conditions two results were taken, and in what two runs' conditions differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.result import BenchmarkResult

_NOT_CONDITIONS = ("date", "started", "device_states", "devices", "n_cpus")
"""What differs in any two runs, or is told otherwise."""


@dataclass(frozen=True)
class Difference:
    """A condition in which two runs differ.

    Attributes
    ----------
    what : str
        For example ``"frameworks.cupy"``.
    left, right : str
        What it was in each run; ``"-"`` if it isn't known, or wasn't set.
    """

    what: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.what}: {self.left} → {self.right}"


def incomparable(left: BenchmarkResult, right: BenchmarkResult) -> str:
    """Return why times of two results say nothing of each other; empty if they do.

    They don't if they are of different devices (of the CPU, where no GPU was timed), had different
    GPUs to work with, or were taken by different methods. What isn't known is no reason.
    """
    conditions = {
        "methods": (_method(left), _method(right)),
        "devices": (device_names(left), device_names(right)),
        "GPUs": tuple(", ".join(_of_gpus(each, "name")) for each in (left, right)),
    }
    for what, (one, other) in conditions.items():
        if one and other and one != other:
            return f"different {what}: {one} and {other}"
    return ""


def differences(left: Mapping[str, object], right: Mapping[str, object]) -> tuple[Difference, ...]:
    """Return in what two runs' environments differ, as far as both are known."""
    return tuple(_differences("", left, right))


def device_names(result: BenchmarkResult) -> str:
    """Return the names of the GPUs that were timed, else of the CPU; empty if they aren't known."""
    environment: Mapping[str, Any] = result.environment
    if not result.devices:
        return str(environment.get("cpu") or "")
    described = environment.get("devices")
    by_id = {
        device.get("id"): device.get("name")
        for device in (described if isinstance(described, list) else ())
        if isinstance(device, Mapping)
    }
    names = [by_id.get(device) for device in result.devices]
    return ", ".join(map(str, names)) if all(names) else ""


def other_devices(left: BenchmarkResult, right: BenchmarkResult) -> bool:
    """Whether two results are known to be of different devices, be they of one kind or not."""
    one, other = _of_gpus(left, "uuid"), _of_gpus(right, "uuid")
    if not (one and other):
        one, other = ([str(r.environment.get("host") or "")] for r in (left, right))
    return all(one) and all(other) and one != other


def _of_gpus(result: BenchmarkResult, key: str) -> list[str]:
    """Return what is known of each GPU in use, be it timed or not; empty where it isn't."""
    environment: Mapping[str, Any] = result.environment
    described = environment.get("devices")
    return [
        str(device.get(key) or "")
        for device in (described if isinstance(described, list) else ())
        if isinstance(device, Mapping)
    ]


def _method(result: BenchmarkResult) -> str:
    if result.method == "unknown":
        return ""
    return f"{result.method} with a cold cache" if result.cache == "cold" else result.method


def _differences(
    prefix: str, left: Mapping[str, Any], right: Mapping[str, Any]
) -> Iterator[Difference]:
    for key in dict.fromkeys((*left, *right)):
        one, other = left.get(key), right.get(key)
        known = key in left and key in right
        if one == other or (not prefix and (not known or key in _NOT_CONDITIONS)):
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _differences(f"{prefix}{key}.", one, other)
        else:
            yield Difference(f"{prefix}{key}", _shown(one), _shown(other))


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return repr(value) if value == "" else str(value)
