"""Totals of a recording as columns of text, and columns as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpubench.activity.summary import NameTotal, RangeTotal
from gpubench.render.units import common_unit, format_bytes

Column = tuple[str, Sequence[str]]
"""A head and the cells below it."""

_TEXT = ("domain", "source", "name")
"""Columns of text, which begin at the left; others end at the right."""


def table_of(columns: Iterable[Column]) -> str:
    """Return a table of those columns in which there is anything."""
    from tabulate import tabulate

    heads, cells = zip(*((head, cells) for head, cells in columns if any(cells)), strict=True)
    table = tabulate(
        list(zip(*cells, strict=True)),
        headers=heads,
        tablefmt="simple",
        disable_numparse=True,
        colalign=["left" if head in _TEXT else "right" for head in heads],
    )
    return "\n".join(map(str.rstrip, table.splitlines()))


def total_columns(
    totals: Sequence[NameTotal], names: Mapping[str, str], kind: str = ""
) -> list[Column]:
    """Return a row for each total.

    Parameters
    ----------
    totals : sequence of NameTotal
        In the order in which they are to be listed.
    names : mapping of str to str
        How to write each name.
    kind : str
        The head of a column for domains or sources, if they differ; empty for none.
    """
    sizes = [total.total_bytes for total in totals]
    return [
        ("share", [f"{total.share:.1%}" for total in totals]),
        ("total", times([total.total_time for total in totals])),
        *_spread_columns(totals),
        ("bytes", [format_bytes(size) if size else "" for size in sizes]),
        (kind, kinds_of(totals, names) if kind else []),
        ("name", [names[total.name] for total in totals]),
    ]


def kinds_of(totals: Sequence[NameTotal], names: Mapping[str, str]) -> list[str]:
    """Return the domain or source of each total; empty if all have the same."""
    several = len({total.kind for total in totals}) > 1
    return [names[total.kind] if several else "" for total in totals]


def range_columns(ranges: Sequence[RangeTotal], names: Mapping[str, str]) -> list[Column]:
    """Return a row for each range and, below it, one for each name that was launched in it."""
    rows: list[tuple[NameTotal, RangeTotal | None, str, str]] = []
    for one, kind in zip(ranges, kinds_of([each.host for each in ranges], names), strict=True):
        rows.append((one.host, one, kind, names[one.host.name]))
        rows += [(each, None, "", f"└ {names[each.name]}") for each in one.activities]
    totals, heads, kinds, texts = zip(*rows, strict=True)
    on_gpu = [
        (head.busy_time or None, head.share) if head else (total.total_time, total.share)
        for total, head in zip(totals, heads, strict=True)
    ]
    return [
        ("host", times([head.host.total_time if head else None for head in heads])),
        ("share", [f"{head.host.share:.1%}" if head else "" for head in heads]),
        ("GPU", times([time for time, _ in on_gpu])),
        ("share", ["" if time is None else f"{share:.1%}" for time, share in on_gpu]),
        *_spread_columns(totals),
        ("domain", kinds),
        ("name", texts),
    ]


def times(column: Sequence[float | None]) -> list[str]:
    """Return each time in the unit that suits it, the units below each other; None is empty."""
    units = [None if time is None else common_unit(time) for time in column]
    width = max((len(unit.symbol) for unit in units if unit), default=0)
    return [
        "" if time is None or unit is None else f"{unit.number(time)} {unit.symbol:>{width}}"
        for time, unit in zip(column, units, strict=True)
    ]


def _spread_columns(totals: Sequence[NameTotal]) -> list[Column]:
    """Return how often there was each, and how the times lie; empty where each was but once."""
    several = any(total.n_calls > 1 for total in totals)
    return [
        ("calls", [f"{total.n_calls:,}" if several else "" for total in totals]),
        ("mean ± std", _means(totals)),
        ("min", times([total.min_time if total.n_calls > 1 else None for total in totals])),
        ("max", times([total.max_time if total.n_calls > 1 else None for total in totals])),
    ]


def _means(totals: Sequence[NameTotal]) -> list[str]:
    """Return mean ± deviation of each in the mean's unit, aligned; empty for a single time."""
    parts = []
    for total in totals:
        unit = common_unit(total.mean_time)
        if total.std_time is None:
            parts.append(("", "", ""))
        else:
            numbers = unit.number(total.mean_time), unit.number(total.std_time)
            parts.append((*numbers, unit.symbol))
    mean, std, symbol = (max(map(len, column)) for column in zip(*parts, strict=True))
    return [f"{m:>{mean}} ± {s:>{std}} {unit:>{symbol}}" if m else "" for m, s, unit in parts]
