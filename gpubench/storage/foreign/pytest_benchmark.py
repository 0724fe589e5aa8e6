"""Files of pytest-benchmark: ``--benchmark-json``, ``--benchmark-save``, ``--benchmark-autosave``.

Each benchmark has statistics and, if the file was written by ``--benchmark-json`` or with
``--benchmark-save-data``, samples in run order: seconds for each round, divided by its number of
iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpubench.arguments import text, whole_number
from gpubench.errors import ArgumentError
from gpubench.reading import mapping
from gpubench.storage.document import Document
from gpubench.storage.foreign.common import (
    NO_SAMPLES,
    host_result,
    mapping_or_empty,
    numbers,
    or_unavailable,
)
from gpubench.storage.record import Record, SavedResults

TOOL = "pytest-benchmark"

_STATISTICS = {
    "mean": "mean_s",
    "median": "median_s",
    "stddev": "std_s",
    "min": "min_s",
    "max": "max_s",
    "q1": "q25_s",
    "q3": "q75_s",
    "rounds": "n",
}


def wrote(value: Any) -> bool:
    """Whether pytest-benchmark wrote the file that holds this."""
    return isinstance(value, Mapping) and {"machine_info", "benchmarks"} <= value.keys()


def read(document: Document) -> SavedResults:
    """Return a record for each test."""
    value = document.value
    benchmarks = value["benchmarks"]
    if not isinstance(benchmarks, list):
        raise ArgumentError(f"benchmarks must be a list, got {benchmarks!r:.60}")
    environment = _environment(value)
    return SavedResults(
        records=tuple(
            _record(f"benchmarks[{number}]", each, environment)
            for number, each in enumerate(benchmarks)
        ),
        environment=environment,
        format=TOOL,
        version=_major(value.get("version")),
    )


def _record(place: str, values: Any, environment: Mapping[str, object]) -> Record:
    values = mapping(place, values)
    name = text(f"{place}.fullname", values.get("fullname") or values.get("name"))
    params = mapping_or_empty(values.get("params"))
    if params:
        name = name.removesuffix(f"[{values.get('param')}]")

    def whole() -> Record:
        statistics = mapping("stats", values.get("stats"))
        data = statistics.get("data")
        if not data:
            kept = {new: statistics.get(old) for old, new in _STATISTICS.items()}
            return Record(name=name, params=params, summary=numbers(kept), reason=NO_SAMPLES)
        calls = whole_number("stats.iterations", statistics.get("iterations", 1), at_least=1)
        result = host_result(name, data, TOOL, environment, calls=calls)
        return Record(name=name, params=params, result=result)

    return or_unavailable(name, whole)


def _environment(value: Mapping[str, Any]) -> dict[str, Any]:
    machine = mapping_or_empty(value["machine_info"])
    cpu = mapping_or_empty(machine.get("cpu"))
    commit = mapping_or_empty(value.get("commit_info"))
    known = {
        "date": value.get("datetime"),
        "host": machine.get("node"),
        "system": " ".join(filter(None, map(machine.get, ("system", "release", "machine")))),
        "python": machine.get("python_version"),
        "cpu": cpu.get("brand_raw") or cpu.get("brand"),
        "n_cpus": cpu.get("count"),
    }
    if commit.get("id") and commit["id"] != "unversioned":
        known["git"] = {"commit": commit["id"], "dirty": commit.get("dirty")}
    return {key: each for key, each in known.items() if each}


def _major(version: Any) -> int:
    major = str(version).partition(".")[0]
    return int(major) if major.isdecimal() else 0
