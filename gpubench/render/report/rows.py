"""The benchmarks of a report: each with what all runs have of it, and how they compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.comparison.outcome import ArmOutcome, Comparison
from gpubench.comparison.run_comparison import RunComparison, ValueChange
from gpubench.comparison.runs import compare_runs
from gpubench.render.report.runs import Run
from gpubench.storage import Record


@dataclass(frozen=True)
class Row:
    """One benchmark.

    Attributes
    ----------
    id : str
        Of its element in the page.
    key : str
        Name and parameters, as they join runs.
    records : tuple of (Record or None)
        What each run has of it.
    comparisons : tuple of (Comparison or None)
        The first run's times with those of each other run.
    changes : tuple of (ValueChange or None)
        The first run's value with that of each other run, of benchmarks without times.
    """

    id: str
    key: str
    records: tuple[Record | None, ...]
    comparisons: tuple[Comparison | None, ...]
    changes: tuple[ValueChange | None, ...]

    @property
    def record(self) -> Record:
        """The first that there is."""
        return next(record for record in self.records if record is not None)

    @property
    def statuses(self) -> list[str]:
        """What became of it, each status once."""
        return list(dict.fromkeys(each.status for each in self.records if each is not None))

    @property
    def codes(self) -> list[str]:
        """The codes of the notes that any run has on it."""
        results = [each.result for each in self.records if each is not None and each.result]
        return list(dict.fromkeys(note.code for result in results for note in result.notes))

    @property
    def verdicts(self) -> list[str]:
        """How the runs compare with the first, each verdict once."""
        arms = [compared_arm(each) for each in self.comparisons if each is not None]
        return list(dict.fromkeys(arm.verdict for arm in arms))


def compared_arm(comparison: Comparison) -> ArmOutcome:
    """Return the arm of two that isn't the baseline."""
    (arm,) = comparison.others
    return arm


def compare_with_first(runs: Sequence[Run], margin: float) -> list[RunComparison | None]:
    """Compare each run but the first with the first; None where they have no key in common."""
    first, *others = runs
    return [
        compare_runs(first.saved, other.saved, margin=margin)
        if first.records.keys() & other.records.keys()
        else None
        for other in others
    ]


def rows_of(runs: Sequence[Run], compared: Sequence[RunComparison | None]) -> list[Row]:
    """Return a row for each benchmark that any run has, in the order of the runs."""
    keys = dict.fromkeys(key for run in runs for key in run.records)
    comparisons: list[Mapping[str, Comparison]] = [
        dict(zip(each.names, each.comparisons, strict=True)) if each else {} for each in compared
    ]
    changes = [{each.name: each for each in found.values} if found else {} for found in compared]
    return [
        Row(
            id=f"b{number}",
            key=key,
            records=tuple(run.records.get(key) for run in runs),
            comparisons=tuple(each.get(key) for each in comparisons),
            changes=tuple(each.get(key) for each in changes),
        )
        for number, key in enumerate(keys, start=1)
    ]
