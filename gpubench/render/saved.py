"""Saved results as a table, one row for each record: to read, to paste, or for a spreadsheet."""

from __future__ import annotations

import dataclasses
import json
from html import escape
from typing import TYPE_CHECKING, Any

from gpubench.plain import each_plain
from gpubench.render import html
from gpubench.render.content import longest, median_text, visible
from gpubench.render.spreadsheet import csv_text
from gpubench.render.table import MARKUP
from gpubench.render.text import summary
from gpubench.render.units import common_unit, format_time, format_value

if TYPE_CHECKING:
    from gpubench.result import BenchmarkResult
    from gpubench.stats import Statistics
    from gpubench.storage import Record, SavedResults


def as_text(saved: SavedResults, *, histograms: bool = False) -> str:
    """Return where the results are from, and a table; with a panel for each result, if wanted."""
    paragraphs = [heading(saved), table(saved, "simple")]
    if histograms:
        paragraphs += [summary(result) for result in _named_results(saved)]
    return "\n\n".join(filter(None, paragraphs))


def as_markdown(saved: SavedResults, *, histograms: bool = False) -> str:
    """Return a table in Markdown; with a panel for each result, if wanted, each as code."""
    paragraphs = [table(saved, "github")]
    if histograms:
        paragraphs += [_code(summary(result)) for result in _named_results(saved)]
    return "\n\n".join(paragraphs)


def as_html(saved: SavedResults, *, histograms: bool = False) -> str:
    """Return a fragment of HTML with a table; with a panel for each result, if wanted."""
    parts = [f"<p>{escape(heading(saved))}</p>", table(saved, "html")]
    if histograms:
        parts += map(html.fragment, _named_results(saved))
    return "\n".join(["<div>", *parts, "</div>"])


def as_csv(saved: SavedResults) -> str:
    """Return a row for each record, times in seconds."""
    rows = [_cells(key, record) for key, record in zip(saved.keys, saved.records, strict=True)]
    return csv_text(rows, list(dict.fromkeys(head for row in rows for head in row)))


def heading(saved: SavedResults) -> str:
    """Return in a line how many results there are, who wrote them, when, where and of what."""
    environment: dict[str, Any] = dict(saved.environment)
    count = len(saved.records)
    facts = [f"{count} result{'' if count == 1 else 's'} of {saved.format}"]
    facts += [str(environment[key]) for key in ("date", "host") if environment.get(key)]
    devices = environment.get("devices")
    if isinstance(devices, list):
        facts += [
            str(each["name"]) for each in devices if isinstance(each, dict) and "name" in each
        ]
    git = environment.get("git")
    if isinstance(git, dict) and git.get("commit"):
        facts.append(f"commit {str(git['commit'])[:10]}{' (dirty)' if git.get('dirty') else ''}")
    return visible(", ".join(facts))


def table(saved: SavedResults, tablefmt: str = "simple") -> str:
    """Return a row for each record, in a format of the tabulate package.

    Parameters
    ----------
    saved : SavedResults
        The records.
    tablefmt : str
        ``"simple"``, ``"github"``, ``"html"`` ...

    Returns
    -------
    str
        Columns, as far as there is anything in them: the benchmark with its parameters; the medians
        of the GPU, the slowest where there are several, and of the CPU with their 95 % intervals;
        values that aren't times; the number of samples; the method; what became of it and the
        codes of the notes.
    """
    from tabulate import tabulate

    records = saved.records
    columns = {
        "benchmark": list(saved.keys),
        "GPU": [_gpu_text(record) for record in records],
        "CPU": [_cpu_text(record) for record in records],
        "value": [_value_text(record) for record in records],
        "n": [_n_text(record) for record in records],
        "method": ["" if each.result is None else each.result.method for each in records],
        "remarks": [_remarks(record) for record in records],
    }
    as_text = MARKUP.get(tablefmt, str)
    shown = {
        # Times hold nothing of others, and brackets that no link follows are no markup.
        head: cells if head in ("GPU", "CPU") else [as_text(visible(cell)) for cell in cells]
        for head, cells in columns.items()
        if head == "benchmark" or any(cells)
    }
    right = ("n", "value")
    return tabulate(
        shown,
        headers="keys",
        tablefmt=tablefmt,
        disable_numparse=True,
        # Alignment without rows is an error in tabulate 0.9.
        colalign=["right" if head in right else "left" for head in shown] if records else None,
    )


def _named_results(saved: SavedResults) -> list[BenchmarkResult]:
    """Return the results, each under its record's key."""
    pairs = zip(saved.keys, saved.records, strict=True)
    return [dataclasses.replace(record.result, name=key) for key, record in pairs if record.result]


def _code(text: str) -> str:
    """Return a text as a block of code, fenced by more backticks than it has in a row."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def _gpu_text(record: Record) -> str:
    slowest = _slowest(record)
    return "" if slowest is None else _interval_text(slowest)


def _cpu_text(record: Record) -> str:
    if record.result is None:
        return _summary_text(record)
    return _interval_text(record.result.cpu) if record.result.cpu.max > 0 else ""


def _slowest(record: Record) -> Statistics | None:
    if record.result is None:
        return None
    return longest(record.result).statistics if record.result.devices else None


def _interval_text(statistics: Statistics) -> str:
    return median_text(statistics, common_unit(statistics.median))


def _summary_text(record: Record) -> str:
    """Return the centre of times of which there are no samples."""
    for name in ("median", "mean"):
        centre = record.summary.get(f"{name}_s")
        if centre is not None:
            return f"{format_time(centre)} ({name})"
    return ""


def _value_text(record: Record) -> str:
    return "" if record.value is None else format_value(record.value, record.unit)


def _n_text(record: Record) -> str:
    if record.result is not None:
        return str(record.result.cpu.n)
    return f"{record.summary['n']:.0f}" if "n" in record.summary else ""


def _remarks(record: Record) -> str:
    became = "" if record.status == "ok" else record.status
    said = ": ".join(filter(None, (became, record.reason)))
    codes = [] if record.result is None else [note.code for note in record.result.notes]
    return ", ".join(filter(None, (said, *codes)))


def _cells(key: str, record: Record) -> dict[str, object]:
    result = record.result
    statistics = {
        "gpu": _slowest(record),
        "cpu": None if result is None else result.cpu,
    }
    return {
        "benchmark": key,
        "name": record.name,
        "params": json.dumps(each_plain(record.params)) if record.params else None,
        "status": record.status,
        "reason": record.reason or None,
        "method": None if result is None else result.method,
        "n": None if result is None else result.cpu.n,
        **{
            f"{clock}_{name}": value
            for clock, known in statistics.items()
            for name, value in _statistics_cells(known).items()
        },
        "value": record.value,
        "unit": record.unit or None,
        "notes": " ".join(note.code for note in result.notes) if result else None,
        **record.summary,
    }


def _statistics_cells(known: Statistics | None) -> dict[str, object]:
    low, high = (None, None) if known is None or known.ci95 is None else known.ci95
    return {
        "median_s": known and known.median,
        "ci95_low_s": low,
        "ci95_high_s": high,
        "mean_s": known and known.mean,
        "std_s": known and known.std,
        "min_s": known and known.min,
        "max_s": known and known.max,
    }
