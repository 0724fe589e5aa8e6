"""Samples as charts show them: as few numbers as a reader can tell apart from all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpubench.stats import FloatArray

_MOST_BINS = 50


@dataclass(frozen=True)
class Axis:
    """How times are written for a chart.

    Attributes
    ----------
    scale : float
        By what to multiply seconds.
    decimals : int
        How many digits to keep after the point.
    """

    scale: float
    decimals: int

    def number(self, seconds: float) -> float:
        """Return a time in the unit of the chart."""
        return round(float(seconds) * self.scale, self.decimals)

    def numbers(self, seconds: FloatArray) -> list[float]:
        """Return times in the unit of the chart."""
        return [self.number(each) for each in seconds.tolist()]


def axis_for(series: Sequence[FloatArray], scale: float) -> Axis:
    """Return an axis on which these times, but for the longest, can be told apart.

    Parameters
    ----------
    series : sequence of ndarray, each of shape (n,)
        Seconds; at least one sample each.
    scale : float
        By what to multiply them.
    """
    low, high = _ends(series)
    span = (high - low or abs(high) or 1 / scale) * scale
    return Axis(scale, 4 - math.floor(math.log10(span)))


def histogram(series: Sequence[FloatArray], clock_step: float, axis: Axis) -> dict[str, Any]:
    """Count the samples of several series in the same bins.

    Bins are a whole number of the clock's steps wide, so that none holds more of its values than
    others. They end at the largest of the series' 99th percentiles.

    Parameters
    ----------
    series : sequence of ndarray, each of shape (n,)
        Seconds; at least one sample each.
    clock_step : float
        Seconds between two values that the clock can show; 0 if unknown.
    axis : Axis
        Of the chart.

    Returns
    -------
    dict
        Where the bins ``start``, and their ``width``; for each series the ``counts`` in each bin,
        and how many samples are ``beyond`` the last one.
    """
    start, width, n_bins = _bins(series, clock_step)
    edges = start + width * np.arange(n_bins + 1)
    return {
        "start": axis.number(start),
        "width": round(width * axis.scale, axis.decimals + 2),
        "counts": [np.histogram(times, edges)[0].tolist() for times in series],
        "beyond": [int(np.count_nonzero(times > edges[-1])) for times in series],
    }


def _bins(series: Sequence[FloatArray], clock_step: float) -> tuple[float, float, int]:
    """Return where bins start, how wide they are, and how many there are."""
    low, high = _ends(series)
    if high == low:
        width = max(clock_step, abs(low) * 1e-3, 1e-12)
        return low - width / 2, width, 1
    n_bins = min(max(2 * math.ceil(max(map(len, series)) ** 0.5), 5), _MOST_BINS)
    width = (high - low) / n_bins
    if clock_step > 0:
        width = clock_step * max(math.ceil(width / clock_step - 1e-6), 1)
    # From the middle between two of the clock's values, so that rounding moves none across.
    start = low - (clock_step or width) / 2
    return start, width, math.floor((high - start) / width) + 1


def _ends(series: Sequence[FloatArray]) -> tuple[float, float]:
    """Return the shortest time and the largest 99th percentile, or the longest if that is no more.

    An outlier has no part in it where there are others to be told apart.
    """
    low = min(float(times.min()) for times in series)
    high = max(float(np.quantile(times, 0.99, method="lower")) for times in series)
    return low, high if high > low else max(float(times.max()) for times in series)


def run_order(times: FloatArray, axis: Axis, most: int) -> dict[str, Any]:
    """Return samples in the order in which they were taken.

    Parameters
    ----------
    times : ndarray, shape (n,)
        Seconds.
    axis : Axis
        Of the chart.
    most : int
        How many numbers there may be of one kind.

    Returns
    -------
    dict
        The times ``y``. Of more samples than that, how many there are, ``n``; their `most`
        ``quantiles``; and cut into `most` stretches, sample ``k * n // most`` the first of each,
        the median ``y`` and the ends ``low`` and ``high`` of each.
    """
    n = len(times)
    if n <= most:
        return {"y": axis.numbers(times)}
    bounds = np.arange(most) * n // most
    ranks = np.rint(np.linspace(0, n - 1, most)).astype(np.intp)
    medians = [np.median(stretch) for stretch in np.split(times, bounds[1:])]
    return {
        "n": n,
        "quantiles": axis.numbers(np.sort(times)[ranks]),
        "y": axis.numbers(np.array(medians)),
        "low": axis.numbers(np.minimum.reduceat(times, bounds)),
        "high": axis.numbers(np.maximum.reduceat(times, bounds)),
    }
