"""Results that were measured one after the other, compared as they are.

Samples that were taken in one go resemble their neighbours, so they aren't resampled one by one,
as if each were a measurement of its own: blocks of them are. The blocks are those in which they
were taken, such as rounds or processes; where nothing is known of blocks, tenths of the samples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from gpubench import notes
from gpubench.arguments import unique_name
from gpubench.comparison.judgement import Resamples, judge, resample_apart
from gpubench.comparison.outcome import CLOCKS, ArmOutcome, Comparison, times_of
from gpubench.result import BenchmarkResult
from gpubench.stats import FloatArray

_N_BLOCKS = 10
"""Of samples of which no blocks are known; fewer than two in each, and they stay samples."""


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
    pair = ArmOutcome(name=left.name, result=left), ArmOutcome(name=right.name, result=right)
    (comparison,) = compare_pairs([pair], margin=margin, seed=seed)
    return comparison


def compare_pairs(
    pairs: Sequence[tuple[ArmOutcome, ArmOutcome]], *, margin: float, seed: int
) -> list[Comparison]:
    """Compare the arms of each pair; the first is the baseline.

    The more pairs there are, the more of them seem to differ by chance. So all are judged together:
    the intervals are as wide as that takes.

    Parameters
    ----------
    pairs : sequence of (ArmOutcome, ArmOutcome)
        Each with a result. Where there are `ArmOutcome.block_ids`, blocks are resampled.
    margin : float
        Relative difference up to which times count as the same.
    seed : int
        Of the bootstrap.

    Returns
    -------
    list of Comparison
        One for each pair, in their order.
    """
    judged = {
        clock: judge([_resamples(*pair, clock, seed) for pair in pairs], margin) for clock in CLOCKS
    }
    comparisons = []
    for (left, right), gpu, cpu in zip(pairs, judged["gpu"], judged["cpu"], strict=True):
        name = unique_name(right.name, (left.name,))
        arms = (left, dataclasses.replace(right, name=name, gpu=gpu, cpu=cpu))
        found = [notes.not_interleaved()]
        methods = {arm.name: arm.result.method for arm in arms if arm.result}
        if len(set(methods.values())) > 1:
            found.append(notes.methods_differ(methods))
        comparisons.append(
            Comparison(baseline=left.name, arms=arms, margin=margin, seed=seed, notes=tuple(found))
        )
    return comparisons


def _resamples(left: ArmOutcome, right: ArmOutcome, clock: str, seed: int) -> Resamples | None:
    theirs, mine = independent_times(left, right, clock)
    if theirs is None or mine is None:
        return None
    return resample_apart(theirs, mine, np.random.default_rng(seed))


def independent_times(
    left: ArmOutcome, right: ArmOutcome, clock: str
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return what stands for independent measurements of each arm's time: see the module.

    Parameters
    ----------
    left, right : ArmOutcome
        What is compared.
    clock : {"gpu", "cpu"}
        Whose time.

    Returns
    -------
    tuple of (ndarray or None)
        Seconds, of shape (n_blocks,); None as `times_of` has it.
    """
    theirs, mine = times_of(left, right, clock)
    return (
        None if theirs is None else _independent(theirs, left),
        None if mine is None else _independent(mine, right),
    )


def _independent(times: FloatArray, arm: ArmOutcome) -> FloatArray:
    """Return what stands for independent measurements: medians of blocks, or the samples."""
    if arm.block_ids.size:
        ids = np.unique(arm.block_ids)
        blocks = [times[arm.block_ids == block] for block in ids]
    elif times.size >= 2 * _N_BLOCKS:
        blocks = np.array_split(times, _N_BLOCKS)
    else:
        return times
    return np.array([np.median(block) for block in blocks])
