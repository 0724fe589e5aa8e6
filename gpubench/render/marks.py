"""Lines, bars and maps of colours, drawn on one panel of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpubench.render.canvas import COLORS, DARK
from gpubench.render.points import Point
from gpubench.render.scales import Scales, label
from gpubench.render.sweep import number
from gpubench.stats import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.image import AxesImage

_MARKERS = "os^DvPX"
_DASHES = ("-", "--", ":", "-.")

_COLOR_MAP, _MIDDLE = "cividis", 0.5
"""Told apart by the colour-blind too; as bright as it is high, and dark below the middle."""

_WIDEST_BAR = 0.6
"""Of the distance between two groups of bars."""


def lines(axes: Axes, points: Sequence[Point], scales: Scales) -> None:
    """Draw a line for each hue, with a marker and an error bar for each point."""
    for index, hue in enumerate(scales.hues):
        mine = sorted(
            (point for point in points if point.hue == hue),
            key=lambda point: scales.position(point.x),
        )
        axes.errorbar(
            [scales.position(point.x) for point in mine],
            [point.value for point in mine],
            yerr=_errors(mine),
            label=label(hue),
            color=COLORS[index % len(COLORS)],
            marker=_MARKERS[index % len(_MARKERS)],
            linestyle=_DASHES[index // len(COLORS) % len(_DASHES)],
            markersize=5,
            linewidth=1.6,
            elinewidth=1.2,
            capsize=3,
        )


def bars(axes: Axes, points: Sequence[Point], scales: Scales) -> None:
    """Draw a group of bars for each x, with one bar and its error for each hue."""
    width = min(0.8 / len(scales.hues), _WIDEST_BAR)
    for index, hue in enumerate(scales.hues):
        mine = [point for point in points if point.hue == hue]
        shift = (index - (len(scales.hues) - 1) / 2) * width
        axes.bar(
            [scales.position(point.x) + shift for point in mine],
            [point.value for point in mine],
            width=0.92 * width,
            yerr=_errors(mine),
            label=label(hue),
            color=COLORS[index % len(COLORS)],
            hatch="/" * (index // len(COLORS)),
            error_kw={"ecolor": DARK, "elinewidth": 1.2, "capsize": min(4.0, 15 * width)},
        )


def heatmap(axes: Axes, points: Sequence[Point], scales: Scales, norm: Normalize) -> AxesImage:
    """Draw a coloured cell for each x and hue."""
    values = np.full((len(scales.hues), len(scales.xs)), np.nan)
    for point in points:
        values[scales.hues.index(point.hue), scales.xs.index(point.x)] = point.value
    return axes.imshow(np.ma.masked_invalid(values), cmap=_COLOR_MAP, norm=norm, aspect="auto")


def figures(axes: Axes, points: Sequence[Point], scales: Scales, norm: Normalize) -> None:
    """Write value and interval into each cell of a map."""
    for point in points:
        axes.annotate(
            f"{number(point.value)}\n[{number(point.low)}, {number(point.high)}]",
            (scales.xs.index(point.x), scales.hues.index(point.hue)),
            ha="center",
            va="center",
            fontsize="small",
            color="white" if norm(point.value) < _MIDDLE else "black",
        )


def _errors(points: Sequence[Point]) -> FloatArray:
    """Return the distances to both ends, shape (2, n)."""
    return np.array(
        [
            [point.value - point.low for point in points],
            [point.high - point.value for point in points],
        ]
    )
