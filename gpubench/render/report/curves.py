"""Curves: a figure against a parameter that has numbers, a line for whatever else varies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

from gpubench.render.points import is_number
from gpubench.render.report.observations import Observation
from gpubench.render.report.runs import Run
from gpubench.render.units import common_unit
from gpubench.sweeps.cells import Cell
from gpubench.sweeps.metrics import SECONDS

_FILE = "(file)"
_MOST_LINES = 10
"""More in one chart can't be told apart."""

_WIDE = 100.0
"""Values that span more than this factor are lost on a linear axis."""


@dataclass(frozen=True)
class Point:
    """A place on a curve.

    Attributes
    ----------
    x : int or float
        The parameter.
    value, low, high : float
        The figure and the ends of its error, in the unit of the axis.
    line : str
        Which line it belongs to; empty if there is one only.
    """

    x: float
    value: float
    low: float
    high: float
    line: str


@dataclass(frozen=True)
class Curve:
    """One chart.

    Attributes
    ----------
    title : str
        What was measured, and which part of it is shown.
    x, y : str
        Labels of the axes.
    line : str
        What tells the lines apart.
    points : tuple of Point
        By line, and along each.
    log_x, log_y : bool
        Which axes are logarithmic.
    """

    title: str
    x: str
    y: str
    line: str
    points: tuple[Point, ...]
    log_x: bool
    log_y: bool


def curves(runs: Sequence[Run]) -> list[Curve]:
    """Return all curves that there are: where a parameter of numbers has several values."""
    found: dict[tuple[str, str, str], list[Observation]] = {}
    for run in runs:
        for each in run.observations:
            place = {**each.place, **({_FILE: run.label} if len(runs) > 1 else {})}
            key = (each.name, each.metric, each.unit)
            found.setdefault(key, []).append(replace(each, place=place))
    return list(chain.from_iterable(_curves(key[0], group) for key, group in found.items()))


def _curves(title: str, group: Sequence[Observation]) -> list[Curve]:
    values = _varying(group)
    x = next((name for name in values if name != _FILE and all(map(is_number, values[name]))), None)
    if x is None:
        return []
    lines = [name for name in values if name != x]
    n_lines = len({tuple(each.place.get(name) for name in lines) for each in group})
    if n_lines <= _MOST_LINES or len(lines) < 2:
        return [_curve(title, x, lines, group)]
    # A chart for each value of the parameter that has the most of them.
    split = max(lines, key=lambda name: (name != _FILE, len(values[name])))
    parts = sorted(group, key=lambda each: values[split].index(each.place.get(split)))
    return [
        curve
        for value, part in groupby(parts, key=lambda each: each.place.get(split))
        for curve in _curves(f"{title}, {split}={value}", list(part))
    ]


def _varying(group: Iterable[Observation]) -> dict[str, list[Cell]]:
    """Return the different values of each parameter that has several."""
    names = dict.fromkeys(name for each in group for name in each.place)
    values = {name: list(dict.fromkeys(each.place.get(name) for each in group)) for name in names}
    return {name: each for name, each in values.items() if len(each) > 1}


def _curve(title: str, x: str, lines: Sequence[str], group: Sequence[Observation]) -> Curve:
    first = group[0]
    unit, scale = first.unit, 1.0
    if unit == SECONDS:
        chosen = common_unit(max(each.value for each in group))
        unit, scale = chosen.symbol, chosen.per_second
    points = [
        Point(
            x=each.place[x],  # type: ignore[arg-type]  # `_curves` chose one that has numbers
            value=each.value * scale,
            low=each.low * scale,
            high=each.high * scale,
            line=", ".join(_told(name, each.place.get(name)) for name in lines),
        )
        for each in group
    ]
    order = list(dict.fromkeys(point.line for point in points))
    points.sort(key=lambda point: (order.index(point.line), point.x))
    return Curve(
        title=title,
        x=x,
        y=f"{first.metric} ({unit})" if unit else first.metric,
        line=", ".join(lines),
        points=tuple(points),
        log_x=_is_wide(points, lambda point: point.x, 8.0),
        log_y=_is_wide(points, lambda point: point.low, _WIDE),
    )


def _told(name: str, value: Cell) -> str:
    """Return a value that says by itself what it is of."""
    return str(value) if isinstance(value, str) else f"{name}={value}"


def _is_wide(points: Sequence[Point], of: Callable[[Point], float], factor: float) -> bool:
    low, high = min(map(of, points)), max(map(of, points))
    return low > 0 and high > factor * low
