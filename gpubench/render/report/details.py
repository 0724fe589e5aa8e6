"""All that there is to say of one benchmark: its figures, notes, verdicts and charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpubench.comparison.outcome import Comparison
from gpubench.notes import Note
from gpubench.render.comparison import sentence
from gpubench.render.content import facts, kernel_texts, series
from gpubench.render.report.charts import charts
from gpubench.render.report.elements import Html, element, embedded, joined
from gpubench.render.report.rows import Row, compared_arm
from gpubench.render.report.runs import Run
from gpubench.render.units import TimeUnit, common_unit, format_time
from gpubench.stats import Statistics
from gpubench.storage import Record

_HEADS = (
    "samples", "median", "95 % interval", "mean ± std", "min", "q1", "q3", "p95", "p99", "max",
    "autocorrelation", "drift",
)  # fmt: skip


def details(runs: Sequence[Run], row: Row, most: int) -> Html:
    """Return what is shown of a benchmark when it is opened.

    Parameters
    ----------
    runs : sequence of Run
        All of the report.
    row : Row
        The benchmark.
    most : int
        How many points each series of samples may have in the charts.
    """
    drawn = charts(runs, row, most)
    return element(
        "details",
        element("summary", "Details", element("span", f" of {row.key}", class_="unseen")),
        _verdicts(runs, row),
        element("div", embedded(drawn), class_="charts") if drawn else None,
        _statistics(runs, row),
        (_of_record(run, record, len(runs) > 1) for run, record in _known(runs, row)),
    )


def _known(runs: Sequence[Run], row: Row) -> Iterator[tuple[Run, Record]]:
    for run, record in zip(runs, row.records, strict=True):
        if record is not None:
            yield run, record


def _verdicts(runs: Sequence[Run], row: Row) -> Html | None:
    """Return each comparison in a sentence, with what a reader should know of it."""
    first, *others = runs
    pairs = zip(others, row.comparisons, strict=True)
    known = [(run, each) for run, each in pairs if each is not None]
    sentences = [element("p", _sentence(first, run, each)) for run, each in known]
    notes = dict.fromkeys(note for _, each in known for note in each.notes)
    return joined(sentences, _notes(notes)) if known else None


def _sentence(first: Run, run: Run, comparison: Comparison) -> str:
    """Return what a comparison of two runs says, with the runs' names instead of the arms'."""
    names = {arm.name: run.label for arm in comparison.arms} | {comparison.baseline: first.label}
    arms = tuple(replace(arm, name=names[arm.name]) for arm in comparison.arms)
    renamed = replace(comparison, baseline=first.label, arms=arms)
    return sentence(compared_arm(renamed), renamed)


def _notes(notes: Iterable[Note]) -> Html | None:
    items = [
        element(
            "li", element("span", note.code, class_="code"), f"{note.message} {note.advice}".strip()
        )
        for note in notes
    ]
    return element("ul", items, class_="notes") if items else None


def _statistics(runs: Sequence[Run], row: Row) -> Html | None:
    """Return a line of statistics for each clock in each run."""
    found = [
        (run, each.label, each.statistics)
        for run, record in _known(runs, row)
        if record.result is not None
        for each in series(record.result)
    ]
    if not found:
        return None
    unit = common_unit(*(statistics.median for _, _, statistics in found))
    lines = [
        element(
            "tr",
            element("th", run.label, scope="row") if len(runs) > 1 else None,
            element("th", clock, scope="row"),
            (element("td", text) for text in _texts(statistics, unit)),
        )
        for run, clock, statistics in found
    ]
    corner = element("td", colspan=2 if len(runs) > 1 else 1)
    heads = [element("th", head, scope="col") for head in _HEADS]
    table = element(
        "table",
        element("caption", f"Times in {unit.symbol}"),
        element("thead", element("tr", corner, heads)),
        element("tbody", lines),
        class_="statistics",
    )
    return element("div", table, class_="scroll", tabindex=0)


def _texts(statistics: Statistics, unit: TimeUnit) -> Iterator[str]:
    write = unit.number
    yield f"{statistics.n:,}"
    yield write(statistics.median)
    yield f"[{write(statistics.ci95[0])}, {write(statistics.ci95[1])}]" if statistics.ci95 else "—"
    spread = "" if statistics.std is None else f" ± {write(statistics.std)}"
    yield write(statistics.mean) + spread
    for value in (
        statistics.min, statistics.q1, statistics.q3, statistics.p95, statistics.p99, statistics.max
    ):  # fmt: skip
        yield write(value)
    yield "—" if statistics.autocorrelation is None else f"{statistics.autocorrelation:.2f}"
    yield "—" if statistics.drift is None else f"{statistics.drift:+.1%}"


def _of_record(run: Run, record: Record, with_label: bool) -> Html | None:
    """Return how a run measured a benchmark, and what it noted."""
    result = record.result
    parts: list[Html | None] = []
    if record.reason:
        parts.append(element("pre", f"{record.status}: {record.reason}", class_="reason"))
    elif record.status != "ok":
        parts.append(element("p", record.status, class_="reason"))
    if result is not None:
        said = facts(result)
        if result.first_call_time is not None:
            said += f", first call {format_time(result.first_call_time)}"
        parts.append(element("p", said, class_="facts"))
        parts.append(_notes(result.notes))
        parts.append(_list(kernel_texts(result)))
    parts.append(_list(f"{name} = {value:.6g}" for name, value in record.summary.items()))
    if not any(parts):
        return None
    return element("div", element("h4", run.label) if with_label else None, parts, class_="run")


def _list(texts: Iterable[str]) -> Html | None:
    items = [element("li", text) for text in texts]
    return element("ul", items, class_="facts") if items else None
