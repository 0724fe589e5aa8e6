"""What a comparison of two runs found out."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpubench.comparison.conditions import Difference
from gpubench.comparison.outcome import Comparison
from gpubench.comparison.unpaired import independent_times
from gpubench.notes import Note
from gpubench.plain import number_to_plain
from gpubench.render import runs as render
from gpubench.render.content import visible

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

VERDICTS = ("slower", "faster", "unclear", "same")
"""In the order in which they are told."""


@dataclass(frozen=True)
class NotCompared:
    """A benchmark of both runs that can't be compared.

    Attributes
    ----------
    name : str
        What was timed, with its parameters.
    left, right : str
        What became of it in each run: ``"ok"``, ``"no times"``, or the status that stands there,
        such as ``"skipped"`` or ``"failed"``, and why.
    reason : str
        Why the two can't be compared if both are ok.
    """

    name: str
    left: str
    right: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{visible(self.name)} ({visible(self.why)})"

    @property
    def why(self) -> str:
        """Why they can't be compared; the left run is A, the right one B."""
        if self.reason:
            return self.reason
        left, right = _brief(self.left), _brief(self.right)
        return f"both {left}" if left == right else f"A {left}, B {right}"


def _brief(state: str) -> str:
    """Return the first line, cut off if it is long: a process's last words say too much."""
    line = state.partition("\n")[0]
    brief = line[:_MAX_STATE]
    return brief if brief == state else f"{brief} …"


_MAX_STATE = 200


@dataclass(frozen=True)
class ValueChange:
    """A value that both runs have without any times, such as a size. Nothing judges it.

    Attributes
    ----------
    name : str
        The benchmark, with its parameters.
    left, right : float
        The values.
    unit : str
        What they are in.
    """

    name: str
    left: float
    right: float
    unit: str

    @property
    def ratio(self) -> float | None:
        """The right value over the left one; None if that isn't a finite number."""
        ratio = self.right / self.left if self.left else math.nan
        return ratio if math.isfinite(ratio) else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for strict JSON; an infinity is ``"inf"`` or ``"-inf"``."""
        return {
            "name": self.name,
            "left": number_to_plain(self.left),
            "right": number_to_plain(self.right),
            "ratio": self.ratio,
            "unit": self.unit,
        }


@dataclass(frozen=True)
class Change:
    """The time of one benchmark in both runs.

    Attributes
    ----------
    name : str
        The benchmark, with its parameters.
    clock : {"GPU", "CPU"}
        Whose time it is: the GPU's where there is one.
    left, right : float
        Medians in seconds; of the blocks' medians, where samples were taken in blocks.
    ratio : float or None
        Of the times, right over left; None if the left one is zero.
    interval : (float, float) or None
        Of the ratio; None if there are too few samples or blocks.
    confidence : float or None
        Of the interval.
    n_blocks : int or None
        On how many blocks of samples, or single samples, it rests, in the run that has fewer.
    verdict : {"faster", "slower", "same", "unclear"}
        What the right run is in comparison with the left one.
    """

    name: str
    clock: str
    left: float
    right: float
    ratio: float | None
    interval: tuple[float, float] | None
    confidence: float | None
    n_blocks: int | None
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; keys end in ``_s`` where they are seconds."""
        return {
            "name": self.name,
            "clock": self.clock,
            "left_median_s": self.left,
            "right_median_s": self.right,
            "ratio": self.ratio,
            "interval": None if self.interval is None else list(self.interval),
            "confidence": self.confidence,
            "n_blocks": self.n_blocks,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """What `compare_runs` found out. Printed, it is a table of all, and what isn't in it.

    Attributes
    ----------
    names : tuple of str
        Names of the benchmarks that were compared, in the left run's order.
    comparisons : tuple of Comparison
        One for each of `names`; the left run is the baseline.
    values : tuple of ValueChange
        Benchmarks of both runs that gave values instead of times.
    only_left, only_right : tuple of str
        Names of the benchmarks that the other run doesn't have.
    not_compared : tuple of NotCompared
        Benchmarks of both runs of which one has no times, or isn't ok, or that were timed
        differently.
    differences : tuple of Difference
        In what the runs' environments differ.
    margin : float
        Relative difference up to which times count as the same.
    notes : tuple of Note
        What a reader should know of the runs.
    """

    names: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    values: tuple[ValueChange, ...]
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]
    not_compared: tuple[NotCompared, ...]
    differences: tuple[Difference, ...]
    margin: float
    notes: tuple[Note, ...]

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Each comparison in short, in the order of `names`."""
        compared = zip(self.names, self.comparisons, strict=True)
        return tuple(_change(name, comparison) for name, comparison in compared)

    @property
    def counts(self) -> dict[str, int]:
        """How many benchmarks are slower, faster, unclear and the same."""
        counts = Counter(change.verdict for change in self.changes)
        return {verdict: counts[verdict] for verdict in VERDICTS}

    def __str__(self) -> str:
        return render.text(self)

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return render.html(self)

    def table(self, tablefmt: str = "github") -> str:
        """Return a row for each comparison, in a format of the tabulate package."""
        return render.table(self, tablefmt)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the samples as plain values, for strict JSON."""
        return {
            "margin": self.margin,
            "counts": self.counts,
            "changes": [change.to_dict() for change in self.changes],
            "values": [value.to_dict() for value in self.values],
            "only_left": list(self.only_left),
            "only_right": list(self.only_right),
            "not_compared": list(map(dataclasses.asdict, self.not_compared)),
            "differences": list(map(dataclasses.asdict, self.differences)),
            "notes": list(map(dataclasses.asdict, self.all_notes)),
        }

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @property
    def all_notes(self) -> tuple[Note, ...]:
        """The notes of the runs, then those of the comparisons, the first of each kind."""
        kinds: dict[str, Note] = {}
        for comparison in self.comparisons:
            for note in comparison.notes:
                kinds.setdefault(note.code, note)
        return (*self.notes, *kinds.values())


def _change(name: str, comparison: Comparison) -> Change:
    left, (right,) = comparison[comparison.baseline], comparison.others
    judgement = right.judgement
    clock = "gpu" if right.gpu else "cpu"
    if judgement is None and all(arm.result and arm.result.devices for arm in (left, right)):
        clock = "gpu"
    medians = [
        0.0 if times is None else float(np.median(times))
        for times in independent_times(left, right, clock)
    ]
    if judgement is not None:
        ratio: float | None = judgement.ratio
    else:
        ratio = medians[1] / medians[0] if medians[0] else None
    return Change(
        name=name,
        clock=clock.upper(),
        left=medians[0],
        right=medians[1],
        ratio=ratio,
        interval=judgement.interval if judgement else None,
        confidence=judgement.confidence if judgement else None,
        n_blocks=judgement.n_blocks if judgement else None,
        verdict=right.verdict,
    )
