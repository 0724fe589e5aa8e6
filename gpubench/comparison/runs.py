"""Two runs of several benchmarks each, joined by name and compared one by one."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench import arguments
from gpubench.comparison.judgement import MARGIN
from gpubench.comparison.outcome import Comparison
from gpubench.comparison.unpaired import compare_unpaired
from gpubench.errors import ArgumentError
from gpubench.notes import Note
from gpubench.reading import mapping
from gpubench.render.content import visible
from gpubench.result import BenchmarkResult

Record = BenchmarkResult | Mapping[str, Any]
"""One benchmark's result, or that it has none."""

Records = Sequence[Record] | Record | str | os.PathLike[str]
"""A run: its records, or the path to a JSON file that holds them."""

_Key = tuple[str, int]
"""A name, and the how many-th record of this name it is, from 1."""


@dataclass(frozen=True)
class NotCompared:
    """A benchmark of both runs that can't be compared.

    Attributes
    ----------
    name : str
        What was timed.
    left, right : str
        What became of it in each run: ``"ok"``, ``"no times"``, or the status that stands there,
        such as ``"skipped"`` or ``"failed"``.
    """

    name: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"{visible(self.name)} (left: {visible(self.left)}, right: {visible(self.right)})"


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """What `compare_runs` found out. Printed, it is all tables, and what has none.

    Attributes
    ----------
    names : tuple of str
        Names of the benchmarks that were compared, in the left run's order.
    comparisons : tuple of Comparison
        One for each of `names`; the left run is the baseline.
    only_left, only_right : tuple of str
        Names of the benchmarks that the other run doesn't have.
    not_compared : tuple of NotCompared
        Benchmarks of both runs of which one has no times, or isn't ok.
    notes : tuple of Note
        What a reader should know of the runs.
    """

    names: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]
    not_compared: tuple[NotCompared, ...]
    notes: tuple[Note, ...]

    def __str__(self) -> str:
        compared = zip(self.names, self.comparisons, strict=True)
        paragraphs = [f"== {visible(name)} ==\n{comparison}" for name, comparison in compared]
        others = {
            "not compared": [str(each) for each in self.not_compared],
            "only on the left": [visible(name) for name in self.only_left],
            "only on the right": [visible(name) for name in self.only_right],
        }
        lines = [f"{what}: {', '.join(names)}" for what, names in others.items() if names]
        lines += [visible(str(note)) for note in self.notes]
        n_common = len(self.names) + len(self.not_compared)
        count = f"compared: {len(self.names)} of the {n_common} benchmarks in both"
        return "\n\n".join([*paragraphs, "\n".join([count, *lines])])


def compare_runs(
    left: Records, right: Records, *, margin: float = MARGIN, seed: int = 0
) -> RunComparison:
    """Compare the benchmarks that two runs have in common, each by itself.

    Benchmarks are joined by name. Where a run has several of one name, the first are compared
    with each other, then the second as ``name#2``, and so on.

    Parameters
    ----------
    left, right : sequence of BenchmarkResult or mapping, or path
        What two runs measured; the left one is the baseline. A mapping is what
        `BenchmarkResult.to_dict` makes, of this release or another. It may carry a ``status``;
        if that isn't ``"ok"``, or there are no times, it isn't compared. A path leads to a JSON
        file of such mappings in a list, or of a single one.
    margin : float
        Relative difference up to which times count as the same.
    seed : int
        Of the bootstrap.

    Returns
    -------
    RunComparison
        A comparison for each benchmark, and the benchmarks that have none.

    Raises
    ------
    ArgumentError
        If the runs have no name in common, or one can't be read.
    """
    margin = arguments.finite_number("margin", margin, above=0)
    seed = arguments.whole_number("seed", seed, at_least=0)
    left_records, right_records = _by_key("left", left), _by_key("right", right)
    common = [key for key in left_records if key in right_records]
    if not common:
        raise ArgumentError(
            "left and right have no benchmark in common: "
            f"left has {_listed(left_records)}; right has {_listed(right_records)}"
        )
    compared: list[tuple[str, Comparison]] = []
    not_compared = []
    for key in common:
        one, other = left_records[key], right_records[key]
        if isinstance(one, BenchmarkResult) and isinstance(other, BenchmarkResult):
            comparison = compare_unpaired(one, other, margin=margin, seed=seed)
            compared.append((_label(key), comparison))
        else:
            not_compared.append(NotCompared(_label(key), _status(one), _status(other)))
    return RunComparison(
        names=tuple(name for name, _ in compared),
        comparisons=tuple(comparison for _, comparison in compared),
        only_left=tuple(_label(key) for key in left_records if key not in right_records),
        only_right=tuple(_label(key) for key in right_records if key not in left_records),
        not_compared=tuple(not_compared),
        notes=(*_repeated("left", left_records), *_repeated("right", right_records)),
    )


def _by_key(side: str, records: Records) -> dict[_Key, BenchmarkResult | str]:
    """Return each record's result, or its status where it has none that can be compared."""
    if isinstance(records, (str, os.PathLike)):
        records = _loaded(side, records)
    if isinstance(records, (BenchmarkResult, Mapping)):
        records = [records]
    if not isinstance(records, Sequence) or isinstance(records, str):
        raise ArgumentError(f"{side} must be a list of results or a path, got {records!r}")
    counts: Counter[str] = Counter()
    found: dict[_Key, BenchmarkResult | str] = {}
    for number, record in enumerate(records):
        try:
            name, outcome = _outcome(record)
        except ArgumentError as error:
            raise ArgumentError(f"{side}[{number}]: {error}") from error
        counts[name] += 1
        found[name, counts[name]] = outcome
    return found


def _loaded(side: str, path: str | os.PathLike[str]) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{side} must be a JSON file, {str(path)!r} isn't: {error}") from error


def _outcome(record: Record) -> tuple[str, BenchmarkResult | str]:
    if isinstance(record, BenchmarkResult):
        return record.name, record
    values = mapping("a result", record)
    if "name" not in values:
        raise ArgumentError("name is missing")
    name = arguments.text("name", values["name"])
    status = arguments.text("status", values.get("status") or "ok")
    if status != "ok":
        return name, status
    times = values.get("cpu_times_s")
    if times is None or (isinstance(times, Sequence) and not times):
        return name, "no times"
    try:
        return name, BenchmarkResult.from_dict(values)
    except ArgumentError as error:
        return name, f"unreadable: {error}"


def _status(outcome: BenchmarkResult | str) -> str:
    return outcome if isinstance(outcome, str) else "ok"


def _label(key: _Key) -> str:
    name, number = key
    return name if number == 1 else f"{name}#{number}"


def _listed(records: Mapping[_Key, object]) -> str:
    return ", ".join(repr(_label(key)) for key in records) or "none at all"


def _repeated(side: str, records: Mapping[_Key, object]) -> Iterator[Note]:
    for name, count in Counter(name for name, _ in records).items():
        if count > 1:
            yield Note(
                "repeated-name",
                f"{name!r} stands {count} times on the {side}; they were paired in order.",
                "Give each benchmark a name of its own.",
            )
