"""Two runs of several benchmarks each, joined by name and parameters, and compared one by one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpubench import arguments
from gpubench.comparison.conditions import differences, incomparable, other_devices
from gpubench.comparison.judgement import MARGIN
from gpubench.comparison.outcome import ArmOutcome
from gpubench.comparison.run_comparison import NotCompared, RunComparison, ValueChange
from gpubench.comparison.unpaired import compare_pairs
from gpubench.errors import ArgumentError
from gpubench.notes import Note
from gpubench.result import BenchmarkResult
from gpubench.storage import Record, SavedResults, load
from gpubench.storage.files import shared_environment
from gpubench.storage.record import as_record
from gpubench.storage.schema import record_from_dict

One = Record | BenchmarkResult | Mapping[str, Any]
"""One benchmark's result, or that it has none."""

Run = SavedResults | Sequence[One] | One | str | os.PathLike[str]
"""A run: its records, or the path to a file that holds them."""

_Key = tuple[str, int]
"""A record's key, and the how many-th record of this key it is, from 1."""


def compare_runs(
    left: Run, right: Run, *, margin: float = MARGIN, seed: int = 0, mixed: bool = False
) -> RunComparison:
    """Compare the benchmarks that two runs have in common, each by itself.

    Benchmarks are joined by name and parameters. Where a run has several of one name, the first
    are compared with each other, then the second as ``name#2``, and so on. The verdicts are all
    right with a probability of 95 %: the more benchmarks, the wider each interval.

    Parameters
    ----------
    left, right : SavedResults, sequence of Record, BenchmarkResult or mapping, or path
        What two runs measured; the left one is the baseline. A mapping is what
        `BenchmarkResult.to_dict` makes, of this release or another, or a record of a file. A path
        leads to a file that `load` can read.
    margin : float
        Relative difference up to which times count as the same.
    seed : int
        Of the bootstrap.
    mixed : bool
        Whether to compare times of different devices and methods, too.

    Returns
    -------
    RunComparison
        A comparison for each benchmark, and the benchmarks that have none.

    Raises
    ------
    ArgumentError
        If the runs have no benchmark in common, or one can't be read.
    """
    margin = arguments.finite_number("margin", margin, above=0)
    seed = arguments.whole_number("seed", seed, at_least=0)
    one, other = _saved("left", left), _saved("right", right)
    left_records, right_records = _by_key(one), _by_key(other)
    common = [key for key in left_records if key in right_records]
    if not common:
        raise ArgumentError(
            "left and right have no benchmark in common: "
            f"left has {_listed(left_records)}; right has {_listed(right_records)}"
        )
    joined = [_joined(_label(key), left_records[key], right_records[key], mixed) for key in common]
    pairs = [each for each in joined if isinstance(each, _Pair)]
    return RunComparison(
        names=tuple(pair.name for pair in pairs),
        comparisons=tuple(
            compare_pairs([(pair.left, pair.right) for pair in pairs], margin=margin, seed=seed)
        ),
        values=tuple(each for each in joined if isinstance(each, ValueChange)),
        only_left=tuple(_label(key) for key in left_records if key not in right_records),
        only_right=tuple(_label(key) for key in right_records if key not in left_records),
        not_compared=tuple(each for each in joined if isinstance(each, NotCompared)),
        differences=differences(one.environment, other.environment),
        margin=margin,
        notes=(
            *_repeated("left", left_records),
            *_repeated("right", right_records),
            *_unlike(pairs),
            *_moved(pairs),
        ),
    )


def _saved(side: str, run: Run) -> SavedResults:
    if isinstance(run, SavedResults):
        return run
    if isinstance(run, (str, os.PathLike)):
        try:
            return load(run)
        except ArgumentError as error:
            raise ArgumentError(f"{side} must be a file of results: {error}") from error
    if isinstance(run, (Record, BenchmarkResult, Mapping)):
        run = [run]
    if not isinstance(run, Sequence):
        raise ArgumentError(
            f"{side} must be a list of results or a path, got {arguments.shown(run)}"
        )
    records = []
    for number, value in enumerate(run):
        try:
            is_read = isinstance(value, (Record, BenchmarkResult))
            records.append(as_record(value) if is_read else record_from_dict(value))  # type: ignore[arg-type]
        except ArgumentError as error:
            raise ArgumentError(f"{side}[{number}]: {error}") from error
    return SavedResults(records=tuple(records), environment=shared_environment(records))


def _by_key(run: SavedResults) -> dict[_Key, Record]:
    counts: Counter[str] = Counter()
    found = {}
    for record in run.records:
        counts[record.key] += 1
        found[record.key, counts[record.key]] = record
    return found


@dataclass(frozen=True)
class _Pair:
    """Two results of one benchmark that are to be compared, and why they had better not be."""

    name: str
    left: ArmOutcome
    right: ArmOutcome
    unlike: str


def _joined(
    name: str, left: Record, right: Record, mixed: bool
) -> _Pair | ValueChange | NotCompared:
    states = _state(left), _state(right)
    if states != ("ok", "ok"):
        return NotCompared(name, *states)
    if left.result is not None and right.result is not None:
        unlike = incomparable(left.result, right.result)
        if unlike and not mixed:
            return NotCompared(name, *states, unlike)
        return _Pair(name, _arm(left, left.result), _arm(right, right.result), unlike)
    if left.value is None or right.value is None:
        return NotCompared(name, *states, "one has times, the other a value")
    if left.unit != right.unit:
        return NotCompared(name, *states, f"different units: {left.unit!r} and {right.unit!r}")
    return ValueChange(name, left.value, right.value, left.unit)


def _state(record: Record) -> str:
    """Return ``"ok"`` if there is something to compare, else why there isn't."""
    if record.status in ("ok", "interrupted") and (record.result or record.value is not None):
        return "ok"
    if record.status in ("ok", "unavailable") and record.reason:
        return record.reason
    if record.status == "ok":
        return "no samples" if record.summary else "no times"
    return f"{record.status}: {record.reason}" if record.reason else record.status


def _arm(record: Record, result: BenchmarkResult) -> ArmOutcome:
    # Numbered anew: a file may hold any integers.
    block_ids = np.unique(record.blocks, return_inverse=True)[1]
    return ArmOutcome(name=result.name, result=result, block_ids=block_ids)


def _label(key: _Key) -> str:
    name, number = key
    return name if number == 1 else f"{name}#{number}"


def _listed(records: Mapping[_Key, object]) -> str:
    listed = [repr(_label(key)) for key in records]
    if len(listed) > _MAX_LISTED:
        listed[_MAX_LISTED:] = [f"{len(listed) - _MAX_LISTED} more"]
    return ", ".join(listed) or "none at all"


_MAX_LISTED = 10


def _repeated(side: str, records: Mapping[_Key, object]) -> Iterator[Note]:
    for name, count in Counter(name for name, _ in records).items():
        if count > 1:
            yield Note(
                "repeated-name",
                f"{name!r} stands {count} times on the {side}; they were paired in order.",
                "Give each benchmark a name of its own.",
            )


def _unlike(pairs: Sequence[_Pair]) -> Iterator[Note]:
    for reason, count in Counter(pair.unlike for pair in pairs if pair.unlike).items():
        yield Note(
            "mixed",
            f"{count} benchmarks were taken under conditions whose times differ by themselves: "
            f"{reason}.",
            "Don't take what differs here for an effect of the code.",
        )


def _moved(pairs: Sequence[_Pair]) -> Iterator[Note]:
    results = [(pair.left.result, pair.right.result) for pair in pairs if not pair.unlike]
    count = sum(bool(one and other and other_devices(one, other)) for one, other in results)
    if count:
        yield Note(
            "other-device",
            f"{count} of {len(pairs)} benchmarks were taken on another device of the same kind.",
            "Two of a kind may well differ by a few percent; run both on one before acting on a "
            "small difference.",
        )
