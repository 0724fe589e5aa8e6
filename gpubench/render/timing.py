"""What was timed as three tables, in the layout of Warp's `timing_print`."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpubench.render.names import short_names

NOTHING = "No activities were recorded."
"""What stands in place of a table without rows."""


class TimingRow(Protocol):
    """One thing that a device did.

    Attributes
    ----------
    device : str
        Which device it was.
    name : str
        What it did.
    elapsed : float
        How long it took, in milliseconds.
    """

    @property
    def device(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def elapsed(self) -> float: ...  # noqa: D102


@dataclass(frozen=True)
class Total:
    """What came together under one name.

    Attributes
    ----------
    name : str
        Of an activity or of a device, as it is to be shown.
    n : int
        How often.
    elapsed : float
        Milliseconds in all.
    """

    name: str
    n: int
    elapsed: float


def timing_tables(results: Iterable[TimingRow], indent: str = "") -> str:
    """Return every row, then the totals by activity and by device.

    Parameters
    ----------
    results : iterable of TimingRow
        In the order in which they are to be listed.
    indent : str
        What each line begins with.

    Returns
    -------
    str
        Three tables, a blank line between them; one sentence if there are no rows.
    """
    rows = list(results)
    if not rows:
        return f"{indent}{NOTHING}"
    shown = short_names(row.name for row in rows)
    columns = {
        "time": [milliseconds(row.elapsed) for row in rows],
        "device": [row.device for row in rows],
        "activity": [shown[row.name] for row in rows],
    }
    by_activity = _totals((shown[row.name], row.elapsed) for row in rows)
    by_device = _totals((row.device, row.elapsed) for row in rows)
    tables = [timeline(columns), activity_summary(by_activity), device_summary(by_device)]
    return textwrap.indent("\n\n".join(tables), indent)


def timeline(columns: Mapping[str, Sequence[str]]) -> str:
    """Return a table with a row for each activity."""
    return _laid_out("Timeline", columns)


def activity_summary(totals: Iterable[Total]) -> str:
    """Return a table with a row for each name of activities, the longest first."""
    return _laid_out("Activity summary", _columns(totals, "activity"))


def device_summary(totals: Iterable[Total]) -> str:
    """Return a table with a row for each device, the busiest first."""
    return _laid_out("Device summary", _columns(totals, "device"))


def milliseconds(elapsed: float) -> str:
    """Return a time in ms to the nanosecond, so that a column lines up at the point."""
    return f"{elapsed:.6f} ms"


def _totals(items: Iterable[tuple[str, float]]) -> list[Total]:
    times = defaultdict(list)
    for name, elapsed in items:
        times[name].append(elapsed)
    return [Total(name, len(each), sum(each)) for name, each in times.items()]


def _columns(totals: Iterable[Total], head: str) -> dict[str, list[str]]:
    ordered = sorted(totals, key=lambda total: -total.elapsed)
    whole = sum(total.elapsed for total in ordered) or 1.0
    return {
        "total time": [milliseconds(total.elapsed) for total in ordered],
        "share": [f"{total.elapsed / whole:.1%}" for total in ordered],
        "count": [f"{total.n:,}" for total in ordered],
        head: [total.name for total in ordered],
    }


_TEXT = ("device", "activity")
"""Columns of text, which begin at the left; others end at the right."""


def _laid_out(title: str, columns: Mapping[str, Sequence[str]]) -> str:
    """Return a title and a table; made by hand, as tabulate takes half a minute for 1e6 rows."""
    widths = [max(len(head), *map(len, cells)) for head, cells in columns.items()]
    form = " | ".join(
        f"{{:{'<' if head in _TEXT else '>'}{width}}}"
        for head, width in zip(columns, widths, strict=True)
    )
    rule = "-+-".join("-" * width for width in widths)
    rows = [form.format(*cells).rstrip() for cells in zip(*columns.values(), strict=True)]
    return "\n".join([f"{title}:", form.format(*columns).rstrip(), rule, *rows])
