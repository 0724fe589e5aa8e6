"""Two runs of several benchmarks each, joined by name and compared one by one."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.comparison.outcome import Comparison
from gpubench.errors import ArgumentError
from gpubench.notes import Note
from gpubench.reading import mapping
from gpubench.render.content import visible
from gpubench.result import BenchmarkResult

Row = BenchmarkResult | Mapping[str, Any]
Run = str | os.PathLike[str] | Row | Sequence[Row]


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
        paragraphs = [f"{visible(name)}\n{comparison}" for name, comparison in compared]
        rest = {
            "not compared": map(str, self.not_compared),
            "only on the left": map(visible, self.only_left),
            "only on the right": map(visible, self.only_right),
        }
        lines = [f"{what}: {', '.join(names)}" for what, names in rest.items()]
        return "\n\n".join(paragraphs)


def compare_runs(left: Run, right: Run, *, margin: float = 0.01, seed: int = 0) -> RunComparison:
    ...
