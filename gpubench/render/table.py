"""Several results as a table, one row each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import escape

from gpubench.arguments import shown
from gpubench.errors import ArgumentError
from gpubench.render.content import median_text, series, visible
from gpubench.render.units import TimeUnit, common_unit
from gpubench.result import BenchmarkResult
from gpubench.stats import Statistics


def table(results: Iterable[BenchmarkResult], tablefmt: str = "simple") -> str:
    """Return results as a table to print or to paste.

    The columns of one device are in one unit, so that results compare down the column. A device
    that a result did not time leaves its cells empty.

    Parameters
    ----------
    results : iterable of BenchmarkResult
        One row each, in this order.
    tablefmt : str
        A format of the tabulate package: ``"github"``, ``"plain"``, ``"html"``, ``"latex"`` ...

    Returns
    -------
    str
        The table. Columns: name, n, method; for the CPU and each device the median with its 95 %
        interval, and the standard deviation; and the codes of the notes, if there are any.

    Raises
    ------
    ArgumentError
        If `results` holds something else, or `tablefmt` is unknown.
    """
    from tabulate import tabulate, tabulate_formats

    if tablefmt not in tabulate_formats:
        raise ArgumentError(
            f"tablefmt must be one of {', '.join(tabulate_formats)}, got {shown(tablefmt)}"
        )
    rows = _checked(results)
    as_text = MARKUP.get(tablefmt, str)
    columns = {
        "name": [as_text(visible(result.name)) for result in rows],
        "n": [str(result.cpu.n) for result in rows],
        "method": [as_text(visible(result.method)) for result in rows],
        **_time_columns(rows),
        "notes": [", ".join(as_text(note.code) for note in result.notes) for result in rows],
    }
    if not any(columns["notes"]):
        del columns["notes"]
    return tabulate(
        columns,
        headers="keys",
        tablefmt=tablefmt,
        disable_numparse=True,
        # Alignment without rows is an error in tabulate 0.9.
        colalign=("left", "right") if rows else None,
    )


def _checked(results: Iterable[BenchmarkResult]) -> list[BenchmarkResult]:
    if isinstance(results, BenchmarkResult):
        raise ArgumentError(f"results must be a list, got {shown(results)}: did you mean [result]?")
    if not isinstance(results, Iterable):
        raise ArgumentError(f"results must be a list of BenchmarkResult, got {shown(results)}")
    rows = list(results)
    for result in rows:
        if not isinstance(result, BenchmarkResult):
            raise ArgumentError(
                f"results must hold nothing but BenchmarkResult, got {shown(result)}"
            )
    return rows


def _time_columns(rows: list[BenchmarkResult]) -> dict[str, list[str]]:
    by_label = [{one.label: one.statistics for one in series(result)} for result in rows]
    devices = sorted({device for result in rows for device in result.devices})
    columns = {}
    for label in ["CPU", *(f"GPU-{device}" for device in devices)]:
        column = [statistics.get(label) for statistics in by_label]
        unit = common_unit(*(one.median for one in column if one))
        columns[f"{label} median"] = [median_text(one, unit) if one else "" for one in column]
        columns[f"{label} std"] = [_std_text(one, unit) for one in column]
    return columns


def _std_text(statistics: Statistics | None, unit: TimeUnit) -> str:
    return "" if statistics is None or statistics.std is None else unit.text(statistics.std)


_MARKDOWN = re.compile(r"[\\`*\[\]<>&|~]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown takes for markup; an underscore inside a word is none."""


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", text)


MARKUP: dict[str, Callable[[str], str]] = {
    "github": _markdown,
    "pipe": _markdown,
    "unsafehtml": escape,
}
"""How to write text in formats that tabulate leaves to its caller."""
