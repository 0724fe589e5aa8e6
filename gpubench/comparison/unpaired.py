"""Two results that were measured one after the other, compared as they are."""

from __future__ import annotations

from gpubench import notes
from gpubench.arguments import unique_name
from gpubench.comparison.outcome import ArmOutcome, Comparison, judge_arms
from gpubench.result import BenchmarkResult


def compare_unpaired(
    left: BenchmarkResult, right: BenchmarkResult, *, margin: float, seed: int
) -> Comparison:
    """Compare two results; the first is the baseline.

    Parameters
    ----------
    left, right : BenchmarkResult
        What to compare. If they have the same name, ``#2`` is added to the second's.
    margin : float
        Relative difference up to which times count as the same.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Comparison
        With a note that what changed between the two isn't cancelled.
    """
    name = unique_name(right.name, (left.name,))
    arms = (ArmOutcome(name=left.name, result=left), ArmOutcome(name=name, result=right))
    found = [notes.not_interleaved()]
    if left.method != right.method:
        found.append(notes.methods_differ({left.name: left.method, name: right.method}))
    return Comparison(
        baseline=left.name,
        arms=judge_arms(arms, left.name, margin, seed, interleaved=False),
        margin=margin,
        seed=seed,
        notes=tuple(found),
    )
