"""A sweep as text: a heading, a row for each region in each configuration, and the notes."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from gpubench.notes import Note
from gpubench.render import table as tables
from gpubench.render.content import median_text, visible
from gpubench.render.units import common_unit
from gpubench.sweeps.cells import cell
from gpubench.sweeps.metrics import BUSY_TIME, CPU_TIME, GPU_TIME, PEAK_SHARE, SECONDS

if TYPE_CHECKING:
    from gpubench.sweeps.measurement import Measurement
    from gpubench.sweeps.metrics import Metric
    from gpubench.sweeps.outcome import SweepResult
    from gpubench.sweeps.rows import Row

TIME_NAMES = {GPU_TIME: "GPU time", BUSY_TIME: "GPU busy time", CPU_TIME: "CPU time"}
"""How times are called."""

_WIDTH = 100

_Column = tuple[str, Sequence[str]]
"""A head and the cells below it."""


def heading(result: SweepResult) -> str:
    """Return what was measured and how much of it, in one line."""
    statuses = [each.status for each in result.measurements]
    facts = [_measurements(len(statuses))]
    facts += [
        f"{statuses.count(status)} {status}"
        for status in ("failed", "interrupted")
        if status in statuses
    ]
    return f"{visible(result.name)}: {', '.join(facts)}"


def text(result: SweepResult) -> str:
    """Return heading, table and notes."""
    notes = [
        textwrap.fill(f"! {note}", _WIDTH, initial_indent="  ", subsequent_indent="    ")
        for note in _note_texts(result)
    ]
    return "\n".join([heading(result), "", table(result), *([""] if notes else []), *notes])


def html(result: SweepResult) -> str:
    """Return heading, table and notes as an HTML fragment."""
    items = "".join(f"<li>{escape(note)}</li>" for note in _note_texts(result))
    notes = f"<ul>{items}</ul>" if items else ""
    return f"<div><p>{escape(heading(result))}</p>{table(result, 'html')}{notes}</div>"


def table(result: SweepResult, tablefmt: str = "simple") -> str:
    """Return a row for each measurement.

    Parameters
    ----------
    result : SweepResult
        What was measured.
    tablefmt : str
        A format of the tabulate package.

    Returns
    -------
    str
        Columns: the parameters; the region, if there are several; the GPU's time (of the busiest
        one), or the CPU's where no GPU was timed, as median with its 95 % interval; its relative
        standard deviation; what was derived and declared; the roofline's verdict; what limits it
        by its hardware counters; how many samples were throttled; the status; the codes of the
        notes. Columns without content are left out.
    """
    from tabulate import tabulate

    as_text = tables.MARKUP.get(tablefmt, str)
    columns = [(head, cells) for head, cells in _columns(result) if any(cells)]
    laid_out = tabulate(
        [list(map(as_text, cells)) for cells in zip(*(cells for _, cells in columns), strict=True)],
        headers=[as_text(head) for head, _ in columns],
        tablefmt=tablefmt,
        disable_numparse=True,
        colalign=[_alignment(cells) for _, cells in columns] if result.measurements else None,
    )
    return "\n".join(map(str.rstrip, laid_out.splitlines()))


def number(value: float) -> str:
    """Return a number with three significant digits, or all those before the point."""
    rounded = float(f"{value:.2e}")
    exponent = math.floor(math.log10(abs(rounded))) if rounded else 0
    if not -4 < exponent < 9:
        return f"{value:.2e}"
    return f"{value:.{max(0, 2 - exponent)}f}" if rounded else "0"


def computed_names(rows: Sequence[Row]) -> list[str]:
    """Return the names of the metrics that aren't times, in order of first appearance."""
    names = dict.fromkeys(metric.name for row in rows for metric in row.metrics)
    return [name for name in names if name not in TIME_NAMES]


def _columns(result: SweepResult) -> list[_Column]:
    rows = result.rows
    measurements = result.measurements
    times = [row.time for row in rows]
    regions = [visible(each.region) for each in measurements]
    several = set(regions) != {visible(result.name)}
    return [
        *(
            (visible(name), [_parameter(each, name) for each in measurements])
            for name in result.parameters
        ),
        ("region", regions if several else []),
        *(
            _metric_column(head, [time if time and time.name == name else None for time in times])
            for name, head in TIME_NAMES.items()
        ),
        ("rel. std", [_relative_std(time) for time in times]),
        *(
            _metric_column(
                visible(name),
                [next((each for each in row.metrics if each.name == name), None) for row in rows],
            )
            for name in computed_names(rows)
            if name != PEAK_SHARE  # the roofline's verdict tells it
        ),
        ("roofline", [str(row.roofline or "") for row in rows]),
        ("limited by", [visible(each.labels.get("limited_by", "")) for each in measurements]),
        ("throttled", [_throttled(each) for each in measurements]),
        ("status", ["" if each.status == "ok" else each.status for each in measurements]),
        ("notes", [", ".join(note.code for note in _notes(each)) for each in measurements]),
    ]


def _parameter(measurement: Measurement, name: str) -> str:
    if name not in measurement.config:
        return ""
    return visible(str(cell(measurement.config[name])))


def _metric_column(name: str, metrics: Sequence[Metric | None]) -> _Column:
    """Return a metric in one unit down the column, which stands in the head if all have it."""
    known = [metric for metric in metrics if metric]
    units = {metric.unit for metric in known}
    baselines = "".join({metric.baseline for metric in known})
    seconds = common_unit(
        *(each.statistics.median for each in known if each.statistics and each.unit == SECONDS)
    )

    def text_of(metric: Metric | None) -> str:
        if metric is None:
            return ""
        if metric.statistics is None:
            return "missing"
        if metric.unit == SECONDS:
            return median_text(metric.statistics, seconds)
        interval = metric.statistics.ci95
        ends = f" [{number(interval[0])}, {number(interval[1])}]" if interval else ""
        unit = f" {metric.unit}" if metric.unit and len(units) > 1 else ""
        return f"{number(metric.statistics.median)}{ends}{unit}"

    head = name
    if baselines:
        head = f"{name} / {visible(baselines)}"
    elif len(units) == 1 and units != {SECONDS}:
        head = f"{name} ({visible(known[0].unit)})" if known[0].unit else name
    return head, list(map(text_of, metrics))


def _relative_std(metric: Metric | None) -> str:
    statistics = metric and metric.statistics
    if not statistics or statistics.std is None or not statistics.mean:
        return ""
    return f"{statistics.std / abs(statistics.mean):.1%}"


def _throttled(measurement: Measurement) -> str:
    n = int(measurement.throttled.sum())
    return f"{n} of {measurement.throttled.size}" if n else ""


def _alignment(cells: Sequence[str]) -> str:
    """Return where numbers end and texts begin: on the same side."""
    return "right" if all(re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", each) for each in cells) else "left"


def _notes(measurement: Measurement) -> Sequence[Note]:
    return measurement.result.notes if measurement.result else ()


def _note_texts(result: SweepResult) -> list[str]:
    """Return the sweep's own notes; then each error, and each kind of note, with an example."""
    errors = Counter((each.status, each.error) for each in result.measurements if each.error)
    every = [note for measurement in result.measurements for note in _notes(measurement)]
    examples = {note.code: note for note in reversed(every)}
    codes = Counter(note.code for note in every)
    return [
        visible(each.rstrip())
        for each in (
            *map(str, (*result.notes, *result.remarks)),
            *(f"{status} ({_measurements(n)}): {error}" for (status, error), n in errors.items()),
            *(
                f"{code} ({_measurements(n)}): {examples[code].message} {examples[code].advice}"
                for code, n in codes.items()
            ),
        )
    ]


def _measurements(n: int) -> str:
    return "1 measurement" if n == 1 else f"{n} measurements"
