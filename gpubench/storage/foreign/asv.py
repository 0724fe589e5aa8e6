"""Result files of asv: ``results/<machine>/<commit>-<environment>.json``, version 2.

A benchmark has a row: its results, one for each combination of its parameters, null where it
failed and NaN where it was skipped; the parameters' values, as `repr` shows them; and, of times,
an interval, quartiles and, if they were asked for with ``--record-samples``, the samples, in
seconds for one call. Rows end where nothing follows. The parameters' names and what a result is in
lie in ``results/benchmarks.json``.
"""

from __future__ import annotations

import ast
import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any

from gpubench.arguments import whole_number
from gpubench.errors import ArgumentError
from gpubench.reading import mapping
from gpubench.storage.document import Document, read_document
from gpubench.storage.foreign.common import (
    NO_SAMPLES,
    device_result,
    host_result,
    mapping_or_empty,
    numbers,
    or_unavailable,
)
from gpubench.storage.record import Record, SavedResults

TOOL = "asv"

VERSION = 2
"""Of the files that can be read."""

_STATISTICS = {
    "result": "median_s",
    "stats_ci_99_a": "ci99_low_s",
    "stats_ci_99_b": "ci99_high_s",
    "stats_q_25": "q25_s",
    "stats_q_75": "q75_s",
    "stats_repeat": "n",
}

_MAX_FAILED = 1000
"""So many combinations of a benchmark are listed that has no results at all."""


def wrote(value: Any) -> bool:
    """Whether asv wrote the file that holds this."""
    return isinstance(value, Mapping) and {"commit_hash", "results"} <= value.keys()


def read(document: Document) -> SavedResults:
    """Return a record for each combination of parameters of each benchmark."""
    value = document.value
    version = whole_number("version", value.get("version", 1), at_least=1)
    columns = value.get("result_columns")
    if version != VERSION or not isinstance(columns, list):
        raise ArgumentError(
            f"it is of asv's format {version}, and format {VERSION} can be read: "
            "asv update brings older files to it"
        )
    environment = _environment(value)
    described = _descriptions(document.path)
    records: list[Record] = []
    for name, cells in mapping("results", value["results"]).items():
        if not isinstance(cells, list):
            raise ArgumentError(f"results: {name} must be a list, got {cells!r:.60}")
        row = dict(zip(map(str, columns), cells, strict=False))
        records += _records(name, row, described.get(name, {}), environment)
    return SavedResults(
        records=tuple(records), environment=environment, format=TOOL, version=version
    )


def _records(
    name: str,
    row: Mapping[str, Any],
    description: Mapping[str, Any],
    environment: Mapping[str, object],
) -> Iterator[Record]:
    results = row.get("result")
    n_results = len(results) if isinstance(results, list) else _MAX_FAILED
    combinations = islice(_combinations(row.get("params"), description), n_results)
    for index, params in enumerate(combinations):
        cells = {column: _cell(cells, index) for column, cells in row.items()}
        record = partial(_record, name, params, cells, description, environment)
        yield or_unavailable(name, record)


def _record(
    name: str,
    params: Mapping[str, object],
    cells: Mapping[str, Any],
    description: Mapping[str, Any],
    environment: Mapping[str, object],
) -> Record:
    value, samples = cells.get("result"), cells.get("samples")
    if value is None:
        return Record(name=name, params=params, status="failed", reason="asv has no value of it")
    if isinstance(value, float) and math.isnan(value):
        return Record(name=name, params=params, status="skipped", reason="asv: not applicable")
    if cells.get("stats_repeat") is None and description.get("type") not in ("time", "gputime"):
        return Record(name=name, params=params, value=value, unit=_unit(name, description))
    if not samples:
        summary = numbers({new: cells.get(old) for old, new in _STATISTICS.items()})
        return Record(
            name=name,
            params=params,
            summary=summary,
            reason=f"{NO_SAMPLES}: run asv with --record-samples",
        )
    if description.get("type") == "gputime" or name.rpartition(".")[2].startswith("gputime_"):
        result = device_result(name, samples, TOOL, environment)
    else:
        calls = whole_number("stats_number", cells.get("stats_number") or 1, at_least=1)
        result = host_result(name, samples, TOOL, environment, calls=calls)
    return Record(name=name, params=params, result=result)


def _combinations(params: Any, description: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    """Return the parameters of each result, in asv's order; once none if there are none."""
    axes = params if isinstance(params, list) else []
    if not all(isinstance(axis, list) for axis in axes):
        raise ArgumentError(f"params must be a list of lists, got {params!r:.60}")
    given = description.get("param_names")
    names = [str(name) for name in given] if isinstance(given, list) else []
    names += [f"param{number}" for number in range(len(names) + 1, len(axes) + 1)]
    for values in product(*axes):
        yield dict(zip(names, map(_value, values), strict=False))


def _value(shown: object) -> object:
    """Return the number, string or tuple that `repr` showed so; other text stays as it is."""
    if not isinstance(shown, str) or len(shown) > 1000:
        return shown
    try:
        return ast.literal_eval(shown)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return shown


def _cell(cells: Any, index: int) -> Any:
    """Return what stands in a column for one combination; None for nothing."""
    return cells[index] if isinstance(cells, list) and index < len(cells) else None


def _unit(name: str, description: Mapping[str, Any]) -> str:
    unit = description.get("unit")
    if isinstance(unit, str):
        return unit
    return "bytes" if name.rpartition(".")[2].startswith(("peakmem_", "mem_")) else ""


def _descriptions(path: str) -> Mapping[str, Mapping[str, Any]]:
    """Return what asv says of each benchmark, beside its results; empty if it isn't there."""
    described = Path(path).absolute().parent.parent / "benchmarks.json"
    if not described.is_file():
        return {}
    try:
        value = read_document(described).value
    except ArgumentError:
        return {}
    items = mapping_or_empty(value).items()
    return {name: each for name, each in items if isinstance(each, Mapping)}


def _environment(value: Mapping[str, Any]) -> dict[str, Any]:
    machine = mapping_or_empty(value.get("params"))
    known = {
        "date": _date(value),
        "host": machine.get("machine"),
        "system": machine.get("os"),
        "python": value.get("python"),
        "cpu": machine.get("cpu"),
        "n_cpus": machine.get("num_cpu"),
        "requirements": value.get("requirements"),
        "variables": value.get("env_vars"),
        "git": {"commit": value["commit_hash"], "dirty": False},
    }
    return {key: each for key, each in known.items() if each}


def _date(value: Mapping[str, Any]) -> str | None:
    """Return when the last benchmark was begun."""
    columns: Sequence[Any] = value["result_columns"]
    if "started_at" not in columns or not isinstance(value["results"], Mapping):
        return None
    at = columns.index("started_at")
    started = [_cell(cells, at) for cells in value["results"].values()]
    latest = max(numbers(dict(enumerate(started))).values(), default=0.0)  # type: ignore[arg-type]
    try:
        date = datetime.datetime.fromtimestamp(latest / 1e3, datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None
    return date.isoformat(timespec="seconds") if latest else None
