"""The panels and axes of a picture: what they show, whether logarithmic, with which ticks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from gpubench.errors import ArgumentError
from gpubench.render.content import visible
from gpubench.render.points import Points, is_number
from gpubench.sweeps.cells import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_T = TypeVar("_T")

_WIDE = 100.0
"""Values that span more than this factor are lost on a linear axis."""

_CHARACTER = 0.085
"""Width of a character of a tick's label, in inches."""


@dataclass(frozen=True)
class Scales:
    """What all panels share.

    Attributes
    ----------
    rows, cols, hues : tuple
        The lines and columns of panels, and what is told apart in each; in order of appearance.
    xs : tuple
        The places along the x axis: numbers in their order, or texts as they came.
    numeric : bool
        Whether they stand at their values, not side by side.
    log_x, log_y : bool
        Which axes are logarithmic; colours count as y.
    """

    rows: tuple[Cell, ...]
    cols: tuple[Cell, ...]
    hues: tuple[str, ...]
    xs: tuple[Cell, ...]
    numeric: bool
    log_x: bool
    log_y: bool

    def position(self, x: Cell) -> float:
        """Return where a value stands on the x axis."""
        return _as_number(x) if self.numeric else float(self.xs.index(x))


def scales_of(shown: Points, kind: str, log: bool | str | None) -> Scales:
    """Choose the axes.

    Raises
    ------
    ArgumentError
        If a logarithmic axis was asked for that would have to show zero, a negative number or a
        text.
    """
    xs = _distinct(point.x for point in shown.points)
    all_numbers = all(map(is_number, xs))
    if all_numbers:
        xs = tuple(sorted(xs, key=_as_number))
    numeric = all_numbers and kind == "line"
    log_x, log_y = _automatic(shown, xs, kind) if log is None else (False, False)
    if log is True:
        log_x, log_y = numeric, True
    elif log == "x":
        log_x = True
    elif log == "y":
        log_y = True
    lowest = min(point.low for point in shown.points)
    if log_x and not (numeric and _as_number(xs[0]) > 0):
        raise ArgumentError(
            f"log={log!r} needs lines and numbers above zero along x={shown.places['x']!r}, got "
            f"kind={kind!r} and {', '.join(map(str, xs))}"
        )
    if log_y and lowest <= 0:
        raise ArgumentError(
            f"log={log!r} needs values above zero, but {shown.y_label} comes down to {lowest:.3g}"
        )
    return Scales(
        rows=_distinct(point.row for point in shown.points),
        cols=_distinct(point.col for point in shown.points),
        hues=_distinct(point.hue for point in shown.points),
        xs=xs,
        numeric=numeric,
        log_x=log_x,
        log_y=log_y,
    )


def _automatic(shown: Points, xs: Sequence[Cell], kind: str) -> tuple[bool, bool]:
    """Return whether the x and the y axis are logarithmic if nobody says so."""
    log_x = kind == "line" and (_are_powers(xs) or _are_wide(xs))
    values = [point.value for point in shown.points]
    is_wide = max(values) > _WIDE * min(values) and min(point.low for point in shown.points) > 0
    return log_x, is_wide and (log_x or kind == "heatmap")


def set_x(axes: Axes, scales: Scales, width: float) -> None:
    """Give the x axis its scale and ticks, for which there are so many inches."""
    from matplotlib.ticker import MaxNLocator

    if not scales.numeric:
        ticks, labels = _labels(scales.xs, width)
        axes.set_xticks(list(map(scales.position, ticks)), labels)
        if not (_fit(labels, width) or all(map(is_number, scales.xs))):
            axes.tick_params(axis="x", labelrotation=30)
            for text in axes.get_xticklabels():
                text.set(horizontalalignment="right", rotation_mode="anchor")
    elif scales.log_x:
        axes.set_xscale("log", base=2 if _are_powers(scales.xs) else 10)
        if _are_apart([scales.position(x) for x in scales.xs], width):
            ticks, labels = _labels(scales.xs, width)
            axes.set_xticks(list(map(scales.position, ticks)), labels)
            axes.set_xticks([], minor=True)
        else:
            _plain_numbers(axes.xaxis)
    elif all(isinstance(x, int) for x in scales.xs):
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def set_y(axes: Axes, scales: Scales) -> None:
    """Give the y axis its scale and ticks."""
    if scales.log_y:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis)


def label(value: Cell | str) -> str:
    """Return a text that matplotlib shows as it is: no formula, never taken for a hidden one."""
    text = visible(str(value)).replace("$", r"\$")
    return f"\N{ZERO WIDTH SPACE}{text}" if text.startswith("_") else text


def _plain_numbers(axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    low, high = axis.get_view_interval()
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axis.set_major_formatter(plain)
    # Where there is less than a decade, there may be no other labels.
    axis.set_minor_formatter(plain if high < 10 * low else NullFormatter())


def _are_powers(xs: Sequence[Cell]) -> bool:
    """Whether there are several numbers, all of them whole powers of two."""
    return len(xs) > 1 and all(
        is_number(x) and math.frexp(_as_number(x))[0] == 0.5 and _as_number(x) >= 1 for x in xs
    )


def _are_wide(xs: Sequence[Cell]) -> bool:
    """Whether there are only numbers above zero, too far apart for a linear axis."""
    if not all(map(is_number, xs)):
        return False
    numbers = [_as_number(x) for x in xs]
    return min(numbers) > 0 and max(numbers) >= _WIDE * min(numbers)


def _are_apart(positions: Sequence[float], width: float) -> bool:
    """Whether ticks on a logarithmic axis leave room for a label between them, or are regular."""
    if len(positions) < 2:
        return True
    span = math.log(positions[-1] / positions[0])
    steps = [math.log(b / a) / span for a, b in itertools.pairwise(positions)]
    return max(steps) < 1.01 * min(steps) or min(steps) * width > 5 * _CHARACTER


def _labels(xs: Sequence[Cell], width: float) -> tuple[Sequence[Cell], list[str]]:
    """Return the ticks and their labels: fewer numbers, or powers, if there isn't room for all."""
    plain = [label(x) for x in xs]
    if _fit(plain, width) or not all(map(is_number, xs)):
        return xs, plain
    if _are_powers(xs):
        plain = [f"$2^{{{math.frexp(_as_number(x))[1] - 1}}}$" for x in xs]
    longest = 3 if _are_powers(xs) else max(map(len, plain))
    step = math.ceil(len(xs) * (longest + 2) * _CHARACTER / width)
    return xs[::step], plain[::step]


def _distinct(values: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(values))


def _as_number(x: Cell) -> float:
    return float(x or 0)


def _fit(labels: Sequence[str], width: float) -> bool:
    return sum(len(text) + 2 for text in labels) * _CHARACTER <= width
