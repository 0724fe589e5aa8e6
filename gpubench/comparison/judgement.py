"""Ratio and judgement: what the block medians of two arms say, and how sure that is.

For each pair of blocks ``d = log(arm / baseline)``; the estimate is the median of the ``d``, its
interval a percentile bootstrap over blocks. The margin m divides the line of true ratios into
three zones: faster below ``1 / (1 + m)``, slower above ``1 + m``, the same between them. The
verdict is the zone that holds the whole interval; if none does, it is unclear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpubench.stats import FloatArray

Verdict = Literal["faster", "slower", "same", "unclear"]

CONFIDENCE = 0.95
N_RESAMPLES = 10_000

MARGIN = 0.01
"""Relative difference up to which times count as the same, unless the caller says otherwise."""

MIN_BLOCKS = 6
"""Fewer can't bear a 95 % interval: all of five lie on one side of the true median in 6 % of
cases."""

_MAX_MORE = 1000
"""More further blocks than this aren't worth naming."""


@dataclass(frozen=True)
class Judgement:
    """How an arm's time compares with the baseline's.

    Attributes
    ----------
    ratio : float
        Time of the arm over that of the baseline, without unit: 0.5 is twice as fast.
    interval : (float, float)
        Bootstrap interval of `ratio`.
    confidence : float
        Of the interval: 0.95, or more where several arms are judged at once (Holm).
    verdict : {"faster", "slower", "same", "unclear"}
        What the arm is in comparison with the baseline.
    n_blocks : int
        How many pairs of blocks (or single samples, where the arms didn't run by turns) it is
        based on.
    more_blocks : int or None
        How many more would probably settle an unclear verdict; None if it is settled, or if
        so many would be needed that the true ratio may well lie on the margin.
    """

    ratio: float
    interval: tuple[float, float]
    confidence: float
    verdict: Verdict
    n_blocks: int
    more_blocks: int | None = None


@dataclass(frozen=True)
class Resamples:
    """Bootstrap resamples of the log-ratio of one arm to the baseline.

    Attributes
    ----------
    estimate : float
        The log-ratio itself.
    values : ndarray, shape (N_RESAMPLES,)
        What it came to in each resample, ascending.
    n : int
        The number of blocks that were resampled.
    """

    estimate: float
    values: FloatArray
    n: int


def resample_pairs(
    baseline: FloatArray, arm: FloatArray, rng: np.random.Generator
) -> Resamples | None:
    """Resample the blocks of two arms that ran by turns.

    Parameters
    ----------
    baseline, arm : ndarray, shape (n_blocks,)
        Each block's median time; element i of both is from the same round.
    rng : numpy.random.Generator
        Draws the resamples.

    Returns
    -------
    Resamples or None
        None if fewer than `MIN_BLOCKS` pairs have times above zero.
    """
    positive = (baseline > 0) & (arm > 0)
    ratios = np.log(arm[positive] / baseline[positive])
    if ratios.size < MIN_BLOCKS:
        return None
    return Resamples(float(np.median(ratios)), _medians(ratios, rng), ratios.size)


def resample_apart(
    baseline: FloatArray, arm: FloatArray, rng: np.random.Generator
) -> Resamples | None:
    """Resample the samples of two arms that ran one after the other.

    Parameters
    ----------
    baseline, arm : ndarray, shape (n,) and (m,)
        The samples of both.
    rng : numpy.random.Generator
        Draws the resamples.

    Returns
    -------
    Resamples or None
        None if one of them has fewer than `MIN_BLOCKS` samples above zero.
    """
    logs = [np.log(times[times > 0]) for times in (baseline, arm)]
    if min(each.size for each in logs) < MIN_BLOCKS:
        return None
    difference = rng.permutation(_medians(logs[1], rng)) - rng.permutation(_medians(logs[0], rng))
    estimate = float(np.median(logs[1]) - np.median(logs[0]))
    return Resamples(estimate, np.sort(difference), min(each.size for each in logs))


def _medians(values: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Medians of resamples, ascending; drawn directly, without the resamples.

    The k-th smallest of n uniform numbers has the distribution Beta(k, n + 1 - k), and the next
    lies above it as the least of n - k uniform numbers in what is left (David and Nagaraja,
    "Order Statistics", 3rd edition, section 2.3). Times n, their whole parts are the ranks that
    a resample has in its middle.
    """
    ordered = np.sort(values)
    n = values.size
    k = (n + 1) // 2
    low = high = rng.beta(k, n + 1 - k, N_RESAMPLES)
    if n % 2 == 0:
        high = low + (1 - low) * rng.beta(1, n - k, N_RESAMPLES)
    ranks = [np.minimum((n * each).astype(int), n - 1) for each in (low, high)]
    return np.sort((ordered[ranks[0]] + ordered[ranks[1]]) / 2)


def judge(
    resamples: Sequence[Resamples | None], margin: float, confidence: float = CONFIDENCE
) -> list[Judgement | None]:
    """Judge one or several arms against their common baseline.

    The probability that any of the verdicts but "unclear" is wrong is kept to about
    ``1 - confidence`` by Holm's procedure (S. Holm, "A simple sequentially rejective multiple
    test procedure", 1979); as far as the bootstrap's intervals hold, which are a little short for
    few blocks. An arm's p-value is the smallest error at which its interval still
    lies in one zone.

    Parameters
    ----------
    resamples : sequence of (Resamples or None)
        One for each arm that isn't the baseline; None where there is nothing to be judged.
    margin : float
        Relative difference up to which times count as the same.
    confidence : float
        Of all verdicts together.

    Returns
    -------
    list of (Judgement or None)
        In the order of `resamples`.
    """
    judged: list[Judgement | None] = [None] * len(resamples)
    known = [(index, each) for index, each in enumerate(resamples) if each is not None]
    limit = math.log1p(margin)
    known.sort(key=lambda item: _p_value(item[1], limit))
    error, accepted = 0.0, True
    for rank, (index, each) in enumerate(known):
        if accepted:  # from the first that fails on, all are judged at its level
            error = (1 - confidence) / (len(known) - rank)
            accepted = _p_value(each, limit) <= error
        judged[index] = _judgement(each, limit, error)
    return judged


def _p_value(resamples: Resamples, limit: float) -> float:
    below, above = _tails(resamples.values, limit)
    return 2 * min(1 - below, 1 - above, max(below, above))


def _tails(values: FloatArray, limit: float) -> tuple[float, float]:
    below = np.searchsorted(values, -limit, side="left") / values.size
    above = 1 - np.searchsorted(values, limit, side="right") / values.size
    return float(below), float(above)


def _judgement(resamples: Resamples, limit: float, error: float) -> Judgement:
    low, high = np.quantile(resamples.values, (error / 2, 1 - error / 2))
    verdict: Verdict = "unclear"
    if high < -limit:
        verdict = "faster"
    elif low > limit:
        verdict = "slower"
    elif -limit <= low and high <= limit:
        verdict = "same"
    return Judgement(
        ratio=math.exp(resamples.estimate),
        interval=(math.exp(low), math.exp(high)),
        confidence=1 - error,
        verdict=verdict,
        n_blocks=resamples.n,
        more_blocks=_more_blocks(resamples, limit, high - low) if verdict == "unclear" else None,
    )


def _more_blocks(resamples: Resamples, limit: float, width: float) -> int | None:
    """Estimate the further blocks needed, for an interval that shrinks as 1/sqrt(n)."""
    distance = abs(abs(resamples.estimate) - limit)
    if distance == 0:
        return None
    needed = math.ceil(resamples.n * (width / 2 / distance) ** 2)
    more = max(needed - resamples.n, 1)
    return more if more <= _MAX_MORE else None
