"""The curves of a report, each as a chart and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.render.report.curves import Curve
from gpubench.render.report.elements import Html, element, embedded, shown
from gpubench.render.sweep import number


def curve_figures(found: Sequence[Curve]) -> Html | None:
    """Return all curves; None if there are none."""
    if not found:
        return None
    return element("div", (_figure(curve) for curve in found), class_="curves")


def _figure(curve: Curve) -> Html:
    value = {
        "kind": "curve",
        "title": shown(f"{curve.y} of {curve.title} against {curve.x}"),
        "x": shown(curve.x),
        "y": shown(curve.y),
        "line": shown(curve.line),
        "logX": curve.log_x,
        "logY": curve.log_y,
        "points": [
            {"x": p.x, "y": p.value, "low": p.low, "high": p.high, "line": shown(p.line)}
            for p in curve.points
        ],
    }
    return element(
        "figure",
        element("h3", f"{curve.title}: {curve.y}"),
        element("div", embedded(value), class_="chart"),
        element(
            "figcaption", "Medians and their 95 % intervals, or the range of fewer than 6 samples."
        ),
        element("details", element("summary", "As a table"), _table(curve)),
    )


def _table(curve: Curve) -> Html:
    has_lines = any(point.line for point in curve.points)
    heads = [curve.x, curve.y, "from", "to"]
    lines = [
        element(
            "tr",
            element("th", point.line, scope="row") if has_lines else None,
            element("td", f"{point.x:g}"),
            (element("td", number(each)) for each in (point.value, point.low, point.high)),
        )
        for point in curve.points
    ]
    corner = element("th", curve.line, scope="col") if has_lines else None
    head = element("tr", corner, (element("th", each, scope="col") for each in heads))
    table = element("table", element("thead", head), element("tbody", lines))
    return element("div", table, class_="scroll", tabindex=0)
