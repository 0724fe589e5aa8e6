"""A comparison of two runs: a table to paste, and what isn't in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from gpubench.render.content import visible
from gpubench.render.table import MARKUP
from gpubench.render.units import common_unit, format_ratio, format_value

if TYPE_CHECKING:
    from gpubench.comparison.run_comparison import Change, NotCompared, RunComparison


def text(run: RunComparison) -> str:
    """Return the tables, how many have which verdict, and what wasn't compared."""
    paragraphs = [
        table(run) if run.changes else "",
        _values_table(run) if run.values else "",
        "\n".join(sentences(run, MARKUP["github"])),
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def html(run: RunComparison) -> str:
    """Return the same as a fragment of HTML; whatever a name holds is shown as text."""
    tables = [
        table(run, "html") if run.changes else "",
        _values_table(run, "html") if run.values else "",
    ]
    lines = "".join(f"<p>{escape(line)}</p>" for line in sentences(run))
    return f"<div>{''.join(tables)}{lines}</div>"


def table(run: RunComparison, tablefmt: str = "github") -> str:
    """Return a row for each comparison: what is slower first, then what else isn't the same."""
    order = list(run.counts)
    changes = sorted(run.changes, key=lambda change: order.index(change.verdict))
    clocks = {change.clock for change in changes}
    medians = [_medians(change) for change in changes]
    columns = {
        "benchmark": [change.name for change in changes],
        "time": [change.clock if len(clocks) > 1 else "" for change in changes],
        "A": [left for left, _ in medians],
        "B": [right for _, right in medians],
        "B / A": [_ratio_text(change.ratio, change.interval) for change in changes],
        "verdict": [change.verdict for change in changes],
    }
    return _tabulate({head: cells for head, cells in columns.items() if any(cells)}, tablefmt)


def sentences(run: RunComparison, as_text: Callable[[str], str] = str) -> list[str]:
    """Return the verdicts' counts, what they mean, and what wasn't compared, in lines.

    Parameters
    ----------
    run : RunComparison
        Whose.
    as_text : callable
        Writes what names, reasons and environments hold so that it is shown as text.
    """
    n_compared = len(run.names) + len(run.values)
    n_common = n_compared + len(run.not_compared)
    lines = [f"compared: {n_compared} of the {n_common} benchmarks in both"]
    if run.changes:
        clocks = " or ".join(sorted({change.clock for change in run.changes}, reverse=True))
        counts = ", ".join(f"{count} {verdict}" for verdict, count in run.counts.items())
        lines += [
            f"verdicts: {counts}",
            f"(medians of {clocks} times; the ratios' intervals hold for all together with 95 %; "
            f"up to {100 * run.margin:.3g} % is the same)",
        ]
    lists: dict[str, Sequence[str]] = {
        f"not compared ({_safe(why, as_text)})": names
        for why, names in _names_by_reason(run.not_compared).items()
    }
    lists |= {"only in A": run.only_left, "only in B": run.only_right}
    lists["A → B"] = [str(difference) for difference in run.differences]
    for what, items in lists.items():
        if items:
            lines.append(f"{what}: {_safe(', '.join(items), as_text)}")
    return [*lines, *(_safe(str(note), as_text) for note in run.all_notes)]


def _names_by_reason(items: Iterable[NotCompared]) -> dict[str, Sequence[str]]:
    groups: dict[str, list[str]] = {}
    for item in items:
        groups.setdefault(item.why, []).append(item.name)
    return {**groups}


def _safe(text: str, as_text: Callable[[str], str]) -> str:
    return as_text(visible(text))


def _values_table(run: RunComparison, tablefmt: str = "github") -> str:
    columns = {
        "benchmark": [value.name for value in run.values],
        "A": [format_value(value.left, value.unit) for value in run.values],
        "B": [format_value(value.right, value.unit) for value in run.values],
        "B / A": [_ratio_text(value.ratio) for value in run.values],
    }
    return _tabulate(columns, tablefmt)


def _tabulate(columns: dict[str, list[str]], tablefmt: str) -> str:
    from tabulate import tabulate

    as_text = MARKUP.get(tablefmt, str)
    return tabulate(
        {
            # Ratios hold nothing of others, and brackets that no link follows are no markup.
            head: cells if head == "B / A" else [_safe(cell, as_text) for cell in cells]
            for head, cells in columns.items()
        },
        headers="keys",
        tablefmt=tablefmt,
        disable_numparse=True,
        colalign=["right" if head in ("A", "B") else "left" for head in columns],
    )


def _medians(change: Change) -> tuple[str, str]:
    unit = common_unit(change.left, change.right)
    return unit.text(change.left), unit.text(change.right)


def _ratio_text(ratio: float | None, interval: tuple[float, float] | None = None) -> str:
    return "" if ratio is None else format_ratio(ratio, interval)
