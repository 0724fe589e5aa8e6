"""A sweep as a picture. Nothing here shows a window or touches pyplot's global state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpubench.arguments import one_of
from gpubench.errors import ArgumentError
from gpubench.render import marks
from gpubench.render.canvas import GREY, PALE, empty_figure
from gpubench.render.points import Points, points_of
from gpubench.render.scales import Scales, label, scales_of, set_x, set_y
from gpubench.sweeps.cells import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpubench.sweeps.outcome import SweepResult

KINDS = ("line", "bar", "heatmap")

_MARGIN, _AXIS = 1.4, 1.0
"""Inches for the legend, and for the y axis."""

_MOST_BARS = 14.0
"""Inches that the bars of a panel take up at most."""

_MOST_CELLS = (13, 24)
"""Columns and lines of a heat map, of all panels together, that leave room for figures."""

_LEGEND_LINES = 20
"""Entries in a column of the legend."""


def figure(
    result: SweepResult,
    asked: Mapping[str, str | None],
    y: str | None,
    kind: str,
    log: bool | str | None,
) -> Figure:
    """Draw a sweep.

    Parameters
    ----------
    result : SweepResult
        What was measured.
    asked : mapping of str to (str or None)
        What ``x``, ``hue``, ``row`` and ``col`` are to stand for; None to choose.
    y, kind, log
        As in `SweepResult.plot`.

    Raises
    ------
    ArgumentError, MissingExtraError
        As `SweepResult.plot`.
    """
    one_of("kind", kind, KINDS)
    if not (log is None or isinstance(log, bool) or log in ("x", "y")):
        raise ArgumentError(f"log must be True, False, 'x', 'y' or None, got {log!r}")
    shown = points_of(result, asked, y)
    scales = scales_of(shown, kind, log)
    width, height = _panel_size(scales, kind)
    picture = _empty(width * len(scales.cols), height * len(scales.rows), scales, kind)
    grid = picture.subplots(
        len(scales.rows), len(scales.cols), sharex=True, sharey=True, squeeze=False
    )
    panels = {
        (row, col): axes
        for row, line in zip(scales.rows, grid, strict=True)
        for col, axes in zip(scales.cols, line, strict=True)
    }
    if kind == "heatmap":
        _heatmaps(picture, panels, shown, scales)
    else:
        _charts(picture, panels, shown, scales, kind)
    for (row, col), axes in panels.items():
        set_x(axes, scales, width - _AXIS)
        axes.set_xlabel(label(shown.places["x"]))
        axes.set_title(_panel_title(shown, row, col), loc="left", fontsize="medium")
        axes.label_outer()
    caption = "medians" if kind == "heatmap" and not _has_room(scales) else shown.caption
    picture.suptitle(label(result.name), x=0.01, ha="left", fontweight="bold")
    picture.supxlabel(label(caption), x=0.99, ha="right", fontsize="small", color=GREY)
    return picture


def _empty(width: float, height: float, scales: Scales, kind: str) -> Figure:
    """Return a figure with room for a legend where one is needed."""
    if kind == "heatmap" or len(scales.hues) > 1:
        width += _MARGIN
    return empty_figure(width, height)


def _panel_size(scales: Scales, kind: str) -> tuple[float, float]:
    """Return width and height in inches: less where there are several, more for much to show."""
    width = 6.4 if len(scales.cols) == 1 else 4.4
    height = 4.2 if len(scales.rows) == 1 else 3.3
    if kind == "bar":
        bars = 0.16 * len(scales.xs) * (len(scales.hues) + 1)
        return max(width, min(bars, _MOST_BARS) + _AXIS), height
    if kind == "heatmap" and _has_room(scales):
        return (
            max(width, 1.1 * len(scales.xs) + _AXIS),
            max(height, 0.5 * len(scales.hues) + _AXIS),
        )
    return width, height


def _has_room(scales: Scales) -> bool:
    """Whether a heat map's cells are large enough for figures."""
    columns, lines = _MOST_CELLS
    return (
        len(scales.xs) * len(scales.cols) <= columns
        and len(scales.hues) * len(scales.rows) <= lines
    )


def _begins_at_zero(shown: Points, kind: str) -> bool:
    """Whether the axis begins at zero: under bars, and where that leaves no line at the top."""
    lowest = min(point.low for point in shown.points)
    highest = max(point.high for point in shown.points)
    return lowest >= 0 and (kind == "bar" or lowest < highest / 2)


def _charts(
    picture: Figure,
    panels: Mapping[tuple[Cell, Cell], Axes],
    shown: Points,
    scales: Scales,
    kind: str,
) -> None:
    """Draw lines or bars in every panel, and a legend beside them."""
    draw = marks.lines if kind == "line" else marks.bars
    for place, axes in panels.items():
        draw(axes, shown.at(*place), scales)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color=PALE, linewidth=0.8)
        axes.set_axisbelow(True)
        if shown.baseline:
            axes.axhline(1, color=GREY, linewidth=1, zorder=1)
        if not scales.log_y and _begins_at_zero(shown, kind):
            axes.set_ylim(bottom=0)
        set_y(axes, scales)
        axes.set_ylabel(label(shown.y_label))
    if len(scales.hues) > 1:
        picture.legend(
            *next(iter(panels.values())).get_legend_handles_labels(),
            title=label(shown.places["hue"]),
            loc="outside right upper",
            ncols=math.ceil(len(scales.hues) / _LEGEND_LINES),
            frameon=False,
            alignment="left",
        )


def _heatmaps(
    picture: Figure,
    panels: Mapping[tuple[Cell, Cell], Axes],
    shown: Points,
    scales: Scales,
) -> None:
    """Draw a map in every panel, and a bar of their colours beside them."""
    from matplotlib.colors import LogNorm, Normalize

    values = [point.value for point in shown.points]
    norm = (LogNorm if scales.log_y else Normalize)(min(values), max(values))
    for place, axes in panels.items():
        image = marks.heatmap(axes, shown.at(*place), scales, norm)
        if _has_room(scales):
            marks.figures(axes, shown.at(*place), scales, norm)
        axes.set_yticks(range(len(scales.hues)), list(map(label, scales.hues)))
        axes.set_ylabel(label(shown.places["hue"]))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    picture.colorbar(image, ax=list(panels.values()), label=label(shown.y_label), format="%g")


def _panel_title(shown: Points, row: Cell, col: Cell) -> str:
    parts = [
        f"{shown.places[place]} = {value}"
        for place, value in (("row", row), ("col", col))
        if shown.places[place]
    ]
    return label(", ".join(parts))
