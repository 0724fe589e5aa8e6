"""What stands in a file of results: a record for each benchmark, and where they were taken."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Literal, cast, get_args

from gpubench.arguments import (
    finite_number,
    one_of,
    real_number,
    shown,
    text,
    unique_name,
    whole_number,
)
from gpubench.errors import ArgumentError
from gpubench.plain import from_plain, plain
from gpubench.reading import mapping
from gpubench.render.content import visible
from gpubench.result import BenchmarkResult

FORMAT = "gpubench"

VERSION = 1
"""Of the files that are written; raised when older releases would misread newer ones."""

Status = Literal["ok", "failed", "skipped", "unavailable", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class Record:
    """One benchmark with one set of parameters: what became of it, and what it measured.

    Attributes
    ----------
    name : str
        For example ``"bench_reductions.Sum.gputime_sum"``.
    params : mapping of str to object
        Values by the parameters' names, as `gpubench.plain` keeps them: numbers, strings, None
        and tuples of them as they are, anything else described. Read-only.
    status : {"ok", "failed", "skipped", "unavailable", "interrupted"}
        What became of it. Interrupted: it has fewer samples than it was to have.
    reason : str
        Why there is no result, or an incomplete one; empty if there is nothing to say.
    result : BenchmarkResult or None
        What was timed.
    blocks : tuple of int
        The block, such as a round or a process, in which each sample was taken, shape (n,);
        empty if nothing is known of blocks.
    value : float or None
        What a benchmark returned that isn't timed. NaN counts as None.
    unit : str
        What `value` is in.
    summary : mapping of str to float
        Statistics, as far as there are no samples: what other tools keep. Seconds under names
        that end in ``_s``. Read-only.

    Raises
    ------
    ArgumentError
        If a value is of the wrong kind, or there aren't as many blocks as samples.
    """

    name: str
    params: Mapping[str, object] = field(default_factory=dict)
    status: Status = "ok"
    reason: str = ""
    result: BenchmarkResult | None = None
    blocks: Sequence[int] = ()
    value: float | None = None
    unit: str = ""
    summary: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.result is not None and not isinstance(self.result, BenchmarkResult):
            raise ArgumentError(
                f"result must be a BenchmarkResult or None, got {shown(self.result)}"
            )
        values = {
            "name": text("name", self.name),
            "params": _params(self.params),
            "status": cast(Status, one_of("status", self.status, get_args(Status))),
            "reason": text("reason", self.reason),
            "blocks": _blocks(self.blocks, self.result),
            "value": _value(self.value),
            "unit": text("unit", self.unit),
            "summary": MappingProxyType(
                {
                    text("summary", name): finite_number(f"summary: {name}", value)
                    for name, value in mapping("summary", self.summary).items()
                }
            ),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def key(self) -> str:
        """Name and parameters, ``"Sum.gputime_sum(axis=0, n=1000)"``: joins runs."""
        if not self.params:
            return self.name
        listed = ", ".join(f"{name}={_shown(value)}" for name, value in self.params.items())
        return f"{self.name}({listed})"

    def __reduce__(self) -> tuple[partial[Record], tuple[()]]:
        # Through __init__, since read-only mappings can't be pickled.
        fields = {**vars(self), "params": dict(self.params), "summary": dict(self.summary)}
        return partial(Record, **fields), ()


@dataclass(frozen=True, kw_only=True)
class SavedResults:
    """The records of one file.

    Attributes
    ----------
    records : tuple of Record
        In the order in which they ran.
    environment : mapping of str to object
        The machine, the software and the date of the run, as plain JSON values.
    format : {"gpubench", "pytest-benchmark", "nvbench", "asv"}
        Which tool wrote the file.
    version : int
        Of the format; 0 for gpubench's before it had one.
    path : str or None
        Where it was read from.
    """

    records: tuple[Record, ...]
    environment: Mapping[str, object] = field(default_factory=dict)
    format: str = FORMAT
    version: int = VERSION
    path: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The key of each record, numbered ``"#2"``, ``"#3"`` ... where it was there before."""
        keys: dict[str, None] = {}
        for record in self.records:
            keys[unique_name(record.key, keys)] = None
        return tuple(keys)


def as_record(value: Record | BenchmarkResult) -> Record:
    """Return a record, of a result the one that holds it."""
    if isinstance(value, BenchmarkResult):
        status: Status = "interrupted" if value.interrupted else "ok"
        return Record(name=value.name, status=status, result=value)
    if isinstance(value, Record):
        return value
    raise ArgumentError(f"records must hold nothing but Record, got {shown(value)}")


def _params(params: Mapping[str, object]) -> Mapping[str, object]:
    return MappingProxyType(
        {
            text("params", name): from_plain(plain(value))
            for name, value in mapping("params", params).items()
        }
    )


def _blocks(blocks: Sequence[int], result: BenchmarkResult | None) -> tuple[int, ...]:
    ids = tuple(whole_number("blocks", block, at_least=0) for block in blocks)
    n = 0 if result is None else result.cpu_times.size
    if ids and len(ids) != n:
        raise ArgumentError(f"blocks must hold one for each of {n} samples, got {len(ids)}")
    return ids


def _value(value: float | None) -> float | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return real_number("value", value)


def _shown(value: object) -> str:
    """Return a parameter's value as text, in one line."""
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_shown(item)}' for name, item in value.items())}}}"
    return visible(str(value))
