"""One result as a fragment of HTML: no script, no style sheet, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from gpubench.render.content import Panel, panel

if TYPE_CHECKING:
    from gpubench.result import BenchmarkResult

_BAR_WIDTH, _CHART_HEIGHT = 8, 48  # CSS pixels
_CELL = 'style="text-align: left; white-space: nowrap; padding: 0 1em 0 0"'


def fragment(result: BenchmarkResult) -> str:
    """Return the panel of `result` as an HTML element.

    Text and bars take the colour of the page around them, so that light and dark themes work.

    Parameters
    ----------
    result : BenchmarkResult
        Whatever its name and notes hold is shown as text.

    Returns
    -------
    str
        One ``<div>``.
    """
    view = panel(result)
    return "\n".join(
        [
            "<div>",
            f"<p><strong>{escape(view.name)}</strong>: {escape(view.facts)}</p>",
            _table(view),
            _figure(view),
            *_list(view.kernels),
            *_list(view.notes),
            "</div>",
        ]
    )


def _table(view: Panel) -> str:
    rows = [_row("", view.labels, "th"), *(_row(*row, "td") for row in view.rows.items())]
    return "\n".join(["<table>", *rows, "</table>"])


def _row(name: str, cells: Iterable[str], tag: str) -> str:
    row = "".join(f"<{tag} {_CELL}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr><th {_CELL}>{escape(name)}</th>{row}</tr>"


def _figure(view: Panel) -> str:
    bars = view.chart.bars
    tallest = max(bars)
    paths = "".join(f"M{x} {tallest}v{-count}h.9v{count}z" for x, count in enumerate(bars) if count)
    left, right = map(escape, view.axis)
    label = escape(f"Histogram of {view.chart_label} times")
    return "\n".join(
        [
            '<figure style="display: table; margin: 1em 0">',
            f"<figcaption>{escape(view.chart_label)}</figcaption>",
            f'<svg role="img" aria-label="{label}" viewBox="0 0 {len(bars)} {tallest}"'
            f' width="{_BAR_WIDTH * len(bars)}" height="{_CHART_HEIGHT}" preserveAspectRatio="none"'
            f' fill="currentColor" fill-opacity="0.6"><path d="{paths}"/></svg>',
            '<div style="display: flex; justify-content: space-between; gap: 1em">',
            f"<span>{left}</span><span>{right}</span>",
            "</div>",
            "</figure>",
        ]
    )


def _list(lines: tuple[str, ...]) -> list[str]:
    items = [f"<li>{escape(line)}</li>" for line in lines]
    return ["<ul>", *items, "</ul>"] if items else []
