"""What a series of samples says: pure functions over one-dimensional arrays.

Nothing is rejected as an outlier. Decisions are taken by the median and its order-statistic
interval, which hold for any distribution; mean and standard deviation are there to be read.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from numbers import Real
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from gpubench.errors import ArgumentError

FloatArray = npt.NDArray[np.float64]

_EXACT_UP_TO = 1000
"""Number of samples from which on the binomial distribution is taken as normal."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of one series of samples, in the unit of the samples unless said otherwise.

    What the samples can't tell is None, never NaN or an infinity.

    Attributes
    ----------
    n : int
        Number of samples.
    mean : float
        Arithmetic mean.
    std : float or None
        Standard deviation of the population (divided by `n`, as ``cupyx.profiler`` prints it);
        None for one sample, which knows of no spread.
    min, max : float
        The extremes.
    median, q1, q3, p95, p99 : float
        The quantiles 0.5, 0.25, 0.75, 0.95 and 0.99, linear between samples (type 7 of Hyndman
        and Fan, "Sample quantiles in statistical packages", 1996).
    mad : float
        Median absolute deviation from the median, not scaled to a normal distribution.
    ci95 : (float, float) or None
        95 % interval of the median, see `median_interval`; None below 6 samples.
    autocorrelation : float or None
        Correlation of neighbours, without unit, see `autocorrelation`.
    drift : float or None
        Relative change from the first to the last third, see `drift`.
    """

    n: int
    mean: float
    std: float | None
    min: float
    max: float
    median: float
    q1: float
    q3: float
    mad: float
    p95: float
    p99: float
    ci95: tuple[float, float] | None
    autocorrelation: float | None
    drift: float | None

    def to_dict(self, unit: str = "") -> dict[str, float | None]:
        """Return the statistics under the same keys whatever they are.

        Parameters
        ----------
        unit : str
            Appended to the keys of values that carry a unit: ``"s"`` makes ``mean`` ``mean_s``.

        Returns
        -------
        dict
            Numbers, or None where the samples can't tell. The interval is two entries, ``ci95_low``
            and ``ci95_high``.
        """
        low, high = self.ci95 or (None, None)
        values = {**asdict(self), "ci95_low": low, "ci95_high": high}
        del values["ci95"]
        return {
            f"{key}_{unit}" if unit and key not in _WITHOUT_UNIT else key: value
            for key, value in values.items()
        }


_WITHOUT_UNIT = ("n", "autocorrelation", "drift")


def summarize(samples: npt.ArrayLike) -> Statistics:
    """Summarize samples that stand in the order in which they were taken.

    Parameters
    ----------
    samples : array_like, shape (n,)
        Finite numbers, at least one.

    Returns
    -------
    Statistics
        In the unit of `samples`.

    Raises
    ------
    ArgumentError
        If `samples` is empty, not one-dimensional, or holds anything but finite numbers.
    """
    x = _series(samples)
    low, q1, median, q3, p95, p99, high = np.quantile(x, (0, 0.25, 0.5, 0.75, 0.95, 0.99, 1))
    # Taken from the median, equal samples have a spread of exactly zero, not one of rounding.
    deviations = x - median
    return Statistics(
        n=x.size,
        mean=float(median + deviations.mean()),
        std=float(deviations.std()) if x.size > 1 else None,
        min=float(low),
        max=float(high),
        median=float(median),
        q1=float(q1),
        q3=float(q3),
        mad=float(np.median(np.abs(deviations))),
        p95=float(p95),
        p99=float(p99),
        ci95=median_interval(x),
        autocorrelation=autocorrelation(x),
        drift=drift(x),
    )


def median_interval(samples: npt.ArrayLike, confidence: float = 0.95) -> tuple[float, float] | None:
    """Return the distribution-free confidence interval of the median.

    The interval runs from the k-th smallest to the k-th largest sample. It misses the median of
    the population with probability ``2 P(B < k)``, where B is binomial with n trials of 1/2; k is
    the largest for which that is at most ``1 - confidence`` (Conover, "Practical Nonparametric
    Statistics", 3rd edition, section 3.2). Above 1,000 samples B is taken as normal, with the
    continuity correction of de Moivre and Laplace, which moves k by one at most.

    Parameters
    ----------
    samples : array_like, shape (n,)
        Finite numbers, in any order.
    confidence : float
        Probability, between 0 and 1, with which the interval is to hold the median.

    Returns
    -------
    (float, float) or None
        The ends of the interval in the unit of `samples`; None if there are too few for it.

    Raises
    ------
    ArgumentError
        If `samples` is none that `summarize` takes, or `confidence` no probability.
    """
    x = _series(samples)
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ArgumentError(f"confidence must be between 0 and 1, such as 0.95, got {confidence!r}")
    k = _interval_rank(x.size, confidence)
    if k < 1:
        return None
    ordered = np.partition(x, (k - 1, x.size - k))
    return float(ordered[k - 1]), float(ordered[x.size - k])


def autocorrelation(samples: npt.ArrayLike) -> float | None:
    """Return the correlation of each sample with the next (lag 1).

    Near zero for independent samples. It is the sum of ``(x[i] - mean) (x[i+1] - mean)`` over that
    of ``(x[i] - mean)**2`` (Box, Jenkins and Reinsel, "Time Series Analysis", chapter 2).

    Parameters
    ----------
    samples : array_like, shape (n,)
        Finite numbers in the order in which they were taken.

    Returns
    -------
    float or None
        Between -1 and 1; None below 3 samples or where all are equal.

    Raises
    ------
    ArgumentError
        If `samples` is none that `summarize` takes.
    """
    x = _series(samples)
    # Taken from the first sample, equal ones deviate by exactly zero, not by rounding.
    deviations = x - x[0]
    deviations -= deviations.mean()
    power = float(deviations @ deviations)
    if x.size < 3 or power == 0:
        return None
    return float(deviations[1:] @ deviations[:-1]) / power


def drift(samples: npt.ArrayLike) -> float | None:
    """Return how much the median of the last third is above that of the first third.

    Parameters
    ----------
    samples : array_like, shape (n,)
        Finite numbers in the order in which they were taken.

    Returns
    -------
    float or None
        Relative change: 0.02 is 2 % more at the end. None below 3 samples, or where the first
        third's median is zero or too small to be a divisor.

    Raises
    ------
    ArgumentError
        If `samples` is none that `summarize` takes.
    """
    x = _series(samples)
    third = x.size // 3
    if third == 0:
        return None
    first, last = float(np.median(x[:third])), float(np.median(x[-third:]))
    change = last / first - 1 if first else math.inf
    return change if math.isfinite(change) else None


def finite_array(values: npt.ArrayLike, argument: str) -> FloatArray:
    """Return `values` as an array of finite floats.

    Parameters
    ----------
    values : array_like
        Numbers, in any shape.
    argument : str
        The name by which the caller knows `values`, for the error.

    Returns
    -------
    ndarray of float64
        `values` itself where it is such an array.

    Raises
    ------
    ArgumentError
        If `values` holds anything but finite real numbers, or ones whose squares overflow.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{argument} must be an array of numbers: {error}") from error
    if array.dtype.kind not in "iuf":
        raise ArgumentError(f"{argument} must hold real numbers, got {array.dtype}")
    numbers = array.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        # One sum tells of NaN, infinities and whatever would overflow in a variance.
        usable = np.isfinite(np.square(numbers).sum())
    if not usable:
        raise ArgumentError(
            f"{argument} must hold finite numbers below 1e150, got NaN, an infinity or a larger one"
        )
    return numbers


def _series(samples: npt.ArrayLike) -> FloatArray:
    x = finite_array(samples, "samples")
    if x.ndim != 1 or x.size == 0:
        raise ArgumentError(f"samples must be one-dimensional and not empty, got shape {x.shape}")
    return x


def _interval_rank(n: int, confidence: float) -> int:
    """Return the largest k with ``2 P(B < k) <= 1 - confidence``; 0 if there is none."""
    miss = (1 - confidence) / 2
    if n > _EXACT_UP_TO:
        z = -NormalDist().inv_cdf(miss)
        return math.floor((n + 1 - z * math.sqrt(n)) / 2)
    allowed = miss * 2**n
    ways, total, k = 1, 1, 0  # `ways` to have k successes, `total` to have at most k
    while total <= allowed:
        k += 1
        ways = ways * (n - k + 1) // k
        total += ways
    return k
