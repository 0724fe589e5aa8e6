"""The table of all benchmarks: a line for each, to be sorted and filtered, with its details."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpubench.comparison.judgement import Judgement
from gpubench.render.content import longest
from gpubench.render.report.charts import points_a_series
from gpubench.render.report.details import details
from gpubench.render.report.elements import Html, element, joined
from gpubench.render.report.figures import (
    Figure,
    cpu_figure,
    figure,
    gpu_figure,
    other_figure,
)
from gpubench.render.report.rows import Row, compared_arm
from gpubench.render.report.runs import Run
from gpubench.render.units import format_ratio
from gpubench.storage import Record

SEPARATOR = "|"
"""Between the values that a filter looks for."""


@dataclass(frozen=True)
class _Column:
    """One column: its head, the cell of each row, and whether it holds numbers."""

    head: str
    cell: Callable[[Row], Html]
    has_numbers: bool = True


def table_section(runs: Sequence[Run], rows: Sequence[Row]) -> Html:
    """Return the tools that filter the benchmarks, and the table."""
    columns = _columns(runs, rows)
    most = points_a_series(rows)
    heads = [
        element("th", each.head, scope="col", class_="number" if each.has_numbers else None)
        for each in columns
    ]
    table = element(
        "table",
        element("thead", element("tr", heads)),
        (_body(row, columns, details(runs, row, most)) for row in rows),
        id="table",
    )
    return joined(
        _tools(rows),
        element("div", table, class_="scroll", tabindex=0, role="region", aria_label="Benchmarks"),
        element("p", "No benchmark is like that.", id="none", hidden=True),
    )


def _body(row: Row, columns: Sequence[_Column], more: Html) -> Html:
    return element(
        "tbody",
        element("tr", (each.cell(row) for each in columns), class_="line"),
        element("tr", element("td", more, colspan=len(columns)), class_="more"),
        id=row.id,
        data_status=SEPARATOR.join(row.statuses),
        data_verdict=SEPARATOR.join(row.verdicts),
        data_note=SEPARATOR.join(row.codes),
    )


def _tools(rows: Sequence[Row]) -> Html:
    """Return the filters; without the page's script they do nothing, and stay hidden."""
    find = element("input", type="search", id="find", placeholder="name, parameter, note")
    return element(
        "form",
        element("label", element("span", "Find"), find),
        _select("status", "Status", [row.statuses for row in rows], at_least=2),
        _select("verdict", "Verdict", [row.verdicts for row in rows], at_least=2),
        _select("note", "Note", [row.codes for row in rows], at_least=1),
        element("button", "Close all", type="button", id="close", hidden=True),
        element("output", id="count", role="status"),
        id="tools",
        role="search",
        hidden=True,
    )


def _select(name: str, label: str, values: Iterable[Sequence[str]], at_least: int) -> Html | None:
    """Return a filter, or None if there is too little to choose."""
    counts = Counter(value for each in values for value in each)
    if len(counts) < at_least:
        return None
    options = [
        element("option", f"{value} ({count})", value=value) for value, count in counts.items()
    ]
    select = element("select", element("option", "all", value=""), options, data_filter=name)
    return element("label", element("span", label), select)


def _columns(runs: Sequence[Run], rows: Sequence[Row]) -> list[_Column]:
    columns = [_Column("Benchmark", _name_cell, has_numbers=False)]
    columns += _compared_columns(runs, rows) if len(runs) > 1 else _single_columns(rows)
    if any(row.statuses != ["ok"] for row in rows):
        columns.append(_Column("Status", _status_cell, has_numbers=False))
    if any(row.codes for row in rows):
        columns.append(_Column("Notes", _notes_cell, has_numbers=False))
    return columns


def _compared_columns(runs: Sequence[Run], rows: Sequence[Row]) -> list[_Column]:
    """Return each run's figures, then how each of the others compares with the first."""
    first, *others = runs
    figures = [_Column(run.label, _of_run(place)) for place, run in enumerate(runs)]
    ratios = [
        _Column(f"{run.label} to {first.label}", _ratio(place))
        for place, run in enumerate(others)
        if any(row.comparisons[place] or row.changes[place] for row in rows)
    ]
    return [*figures, *ratios]


def _single_columns(rows: Sequence[Row]) -> list[_Column]:
    """Return what there is to say of one run."""
    choices: dict[str, Callable[[Record], Figure | None]] = {
        "GPU median": gpu_figure,
        "CPU median": cpu_figure,
        "Value": other_figure,
        "Spread": _spread,
        "Samples": _samples,
    }
    return [
        _Column(head, _of_record(choose))
        for head, choose in choices.items()
        if any(choose(row.record) for row in rows)
    ]


def _spread(record: Record) -> Figure | None:
    """Return how wide the middle half of the samples is, relative to their median."""
    statistics = longest(record.result).statistics if record.result else None
    if statistics is None or not statistics.median:
        return None
    spread = (statistics.q3 - statistics.q1) / statistics.median
    return Figure(spread, f"{spread:.1%}")


def _samples(record: Record) -> Figure | None:
    n = record.result.cpu.n if record.result else 0
    return Figure(n, f"{n:,}") if n else None


def _of_run(place: int) -> Callable[[Row], Html]:
    return lambda row: _figure_cell(figure(row.records[place]), with_clock=True)


def _of_record(choose: Callable[[Record], Figure | None]) -> Callable[[Row], Html]:
    return lambda row: _figure_cell(choose(row.record))


def _figure_cell(shown: Figure | None, with_clock: bool = False) -> Html:
    if shown is None:
        return element("td", class_="number")
    return element(
        "td",
        element("span", shown.clock, class_="clock") if with_clock and shown.clock else None,
        element("span", shown.text),
        element("span", shown.interval, class_="interval") if shown.interval else None,
        class_="number",
        data_sort=repr(float(shown.value)).replace("inf", "Infinity"),
    )


def _ratio(place: int) -> Callable[[Row], Html]:
    def cell(row: Row) -> Html:
        comparison, change = row.comparisons[place], row.changes[place]
        if comparison is None:
            ratio = change.ratio if change else None
            text = None if ratio is None else format_ratio(ratio)
            return element("td", text, class_="number", data_sort=ratio)
        arm = compared_arm(comparison)
        judgement = arm.judgement
        return element(
            "td",
            verdict_mark(arm.verdict),
            _judged(judgement) if judgement else None,
            class_="number",
            data_sort=judgement.ratio if judgement else None,
        )

    return cell


def _judged(judgement: Judgement) -> Iterable[Html]:
    ratio, interval = format_ratio(judgement.ratio, judgement.interval).split(" ", 1)
    yield element("span", ratio)
    yield element("span", interval, class_="interval")


def verdict_mark(verdict: str) -> Html:
    """Return a verdict with its sign and colour."""
    return element("span", verdict, class_=f"mark {verdict.split(maxsplit=1)[0].lower()}")


def _name_cell(row: Row) -> Html:
    name = row.record.name
    params = row.key.removeprefix(name)
    return element(
        "th",
        element("span", _breakable(name or "(no name)"), class_="name"),
        element("span", params, class_="params") if params else None,
        scope="row",
    )


def _breakable(name: str) -> Iterator[Html]:
    """Yield a name with places where a line may end: after dots."""
    for part in re.findall(r"[^.]+\.*|\.+", name):
        yield joined(part, Html("<wbr>"))


def _status_cell(row: Row) -> Html:
    marks = [element("span", each, class_=f"mark {each}") for each in row.statuses]
    return element("td", marks)


def _notes_cell(row: Row) -> Html:
    return element("td", (element("span", code, class_="code") for code in row.codes))
