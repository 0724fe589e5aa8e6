"""Histograms as two rows of block characters, with the tail gathered in the last bar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpubench.render.units import TimeUnit

_BLOCKS = " ▁▂▃▄▅▆▇█"
_LEVELS = 2 * (len(_BLOCKS) - 1)
_MAX_BARS = 50
"""Largest number of bars, the tail's among them."""


@dataclass(frozen=True)
class Histogram:
    """Counts of times in bars of equal width, and of those beyond them.

    Attributes
    ----------
    counts : tuple of int
        Samples in each bar from `low` to `high`; a single bar if these are equal.
    low, high : float
        The ends of the axis, in seconds.
    tail : int
        Samples above `high`, which get one more bar; 0 if there are none.
    """

    counts: tuple[int, ...]
    low: float
    high: float
    tail: int

    @property
    def bars(self) -> tuple[int, ...]:
        """Counts of the bars as they are drawn, the tail's last."""
        return (*self.counts, self.tail) if self.tail else self.counts

    def rows(self) -> tuple[str, str]:
        """Return the upper and the lower row of block characters, one character a bar.

        A bar is at most 16 levels high, and never without height if it holds a sample.
        """
        bars = self.bars
        tallest = max(bars)
        levels = [-(-_LEVELS * count // tallest) for count in bars]
        half = _LEVELS // 2
        upper = "".join(_BLOCKS[max(level - half, 0)] for level in levels)
        lower = "".join(_BLOCKS[min(level, half)] for level in levels)
        return upper, lower

    def ends(self, unit: TimeUnit) -> tuple[str, str]:
        """Return what stands at the left and at the right end of the axis.

        The right one says so if the last bar is the tail, and is empty if there is one bar only.
        """
        low, high = unit.text(self.low), unit.text(self.high)
        if self.tail:
            return low, f"> {high}"
        return low, high if len(self.counts) > 1 else ""


def histogram(times: npt.NDArray[np.float64]) -> Histogram:
    """Count times in at most 50 bars: up to the 99th percentile, and one for those beyond it.

    Clocks advance in steps, and bars that are not whole steps wide would show some values twice
    as high as others for no other reason. So the smallest gap between two samples is taken for the
    step (gaps under a millionth of the range are rounding), and a bar is a whole number of steps.

    Parameters
    ----------
    times : ndarray, shape (n,)
        Seconds; finite, at least one.

    Returns
    -------
    Histogram
        Its axis ends at the sample that is at or next below the 99th percentile, so that the
        largest of 3 to 100 samples is the tail. There is no tail where the axis would have no
        length without it.
    """
    low, high, largest = np.quantile(times, (0, 0.99, 1), method="lower")
    if high == low:
        high = largest
    body = times[times <= high]
    tail = times.size - body.size
    bars = _bars(body, _MAX_BARS - 1 if tail else _MAX_BARS)
    return Histogram(bars, float(low), float(high), tail)


def _bars(times: npt.NDArray[np.float64], max_bars: int) -> tuple[int, ...]:
    values = np.unique(times)
    gaps = np.diff(values)
    if gaps.size == 0:
        return (times.size,)
    rounding = 1e-6 * (values[-1] - values[0])
    steps = gaps[gaps > rounding]
    step = steps.min() if steps.size else rounding
    positions = np.rint((times - values[0]) / step).astype(np.intp)
    steps_per_bar = -(-(positions.max() + 1) // max_bars)
    return tuple(np.bincount(positions // steps_per_bar).tolist())
