"""One result as plain text: CuPy's line, its notes, the short form, and the panel."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from gpubench.render.content import Panel, median_text, note_texts, panel, series, visible
from gpubench.render.units import common_unit

if TYPE_CHECKING:
    from gpubench.result import BenchmarkResult
    from gpubench.stats import FloatArray

_NOTE_WIDTH = 80
_COLUMN_GAP = "  "


def cupy_line(result: BenchmarkResult, show_gpu: bool = True) -> str:
    """Return the line that ``cupyx.profiler.benchmark`` prints, character for character.

    Parameters
    ----------
    result : BenchmarkResult
        Its times are printed in microseconds: the mean and, for more than one sample, standard
        deviation, minimum and maximum.
    show_gpu : bool
        Whether the devices follow the CPU.
    """
    every = series(result) if show_gpu else series(result)[:1]
    items = " ".join(_cupy_item(one.label, one.times) for one in every)
    return f"{result.name:<20s}:{items}"


def line_and_notes(result: BenchmarkResult) -> str:
    """Return CuPy's line and, below it, one indented line for each note."""
    return "\n    ".join([cupy_line(result), *note_texts(result)])


def short_form(result: BenchmarkResult) -> str:
    """Return name, medians with their intervals, number of samples and method in one line."""
    cpu, *gpus = series(result)
    medians = [
        f"{one.label} {median_text(one.statistics, common_unit(one.statistics.median))}"
        for one in (*gpus, cpu)
    ]
    facts = ", ".join([*medians, f"n={result.cpu.n}", result.method])
    return f"<{type(result).__name__} {visible(result.name)}: {facts}>"


def summary(result: BenchmarkResult) -> str:
    """Return the panel: how it was timed, the figures, the histogram, and the notes."""
    view = panel(result)
    margin = max(map(len, [*view.rows, view.chart_label])) + len(_COLUMN_GAP)
    blocks = [
        [f"{view.name}: {view.facts}"],
        _aligned(view, margin),
        _chart(view, margin),
        [f"  {line}" for line in view.kernels],
        [line for note in view.notes for line in _wrapped(note)],
    ]
    return "\n\n".join("\n".join(map(str.rstrip, block)) for block in blocks if block)


def _cupy_item(label: str, times: FloatArray) -> str:
    us = times * 1e6
    item = f"    {label}: {us.mean():9.3f} us"
    if us.size > 1:
        item += f"   +/- {us.std():6.3f} (min: {us.min():9.3f} / max: {us.max():9.3f}) us"
    return item


def _aligned(view: Panel, margin: int) -> list[str]:
    cells = [list(view.labels), *view.rows.values()]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        f"  {name:<{margin}}"
        + _COLUMN_GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        for name, row in zip(["", *view.rows], cells, strict=True)
    ]


def _chart(view: Panel, margin: int) -> list[str]:
    upper, lower = view.chart.rows()
    left, right = view.axis
    gap = max(len(upper) - len(left) - len(right), len(_COLUMN_GAP))
    lines = [upper, lower, f"{left}{' ' * gap}{right}"]
    names = [view.chart_label, "", ""]
    return [f"  {name:<{margin}}{line}" for name, line in zip(names, lines, strict=True)]


def _wrapped(note: str) -> list[str]:
    return textwrap.wrap(
        note,
        width=_NOTE_WIDTH,
        initial_indent="  ! ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
