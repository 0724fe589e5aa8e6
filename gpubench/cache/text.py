"""A cache in text: the summary of the whole, the table of some entries, and ages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpubench.cache.folder import CacheEntry
from gpubench.errors import MissingExtraError
from gpubench.render.units import format_bytes

if TYPE_CHECKING:
    from gpubench.cache.inventory import KernelCache

_NAMES_WIDTH = 60


def summary(cache: KernelCache) -> str:
    """Return where the cache is, why, what it holds and what is odd, a line for each."""
    if cache.path is None:
        lines = [f"CuPy's kernel cache: no folder ({cache.origin})"]
    else:
        exists = "exists" if cache.exists else "no such folder"
        writable = "writable" if cache.writable else "not writable"
        lines = [
            f"CuPy's kernel cache: {cache.path} ({cache.origin}; {exists}, {writable})",
            _entries_line(cache),
        ]
    others = {
        "leftover": len(cache.leftovers),
        "foreign": cache.n_foreign,
        "unreadable": cache.n_unreadable,
        "vanished while listing": cache.n_vanished,
    }
    if any(others.values()):
        counted = ", ".join(f"{count:,} {what}" for what, count in others.items() if count)
        lines.append(f"    Also: {counted}")
    lines += [f"    Note: {note}" for note in cache.notes]
    return "\n".join(lines)


def _entries_line(cache: KernelCache) -> str:
    if cache.oldest is None or cache.newest is None:
        return "    0 entries"
    kinds = Counter(entry.kind for entry in cache.entries)
    counted = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    return (
        f"    {counted}: {format_bytes(cache.total_bytes)}; "
        f"oldest {format_age(cache.oldest.age_time)}, newest {format_age(cache.newest.age_time)}"
    )


def entry_table(entries: Iterable[CacheEntry]) -> str:
    """Return a table with a row for each entry; the entries are read."""
    from tabulate import tabulate

    rows = [
        (
            entry.name,
            format_bytes(entry.total_bytes),
            format_age(entry.age_time),
            *_contents(entry),
        )
        for entry in entries
    ]
    headers = ("file", "size", "age", "architecture", "status", "kernels")
    alignment = ("left", "right", "right", "left", "left", "left")
    return tabulate(rows, headers, disable_numparse=True, colalign=alignment)


def _contents(entry: CacheEntry) -> tuple[str, str, str]:
    """Return architecture, status and kernels, as far as the entry can be read here."""
    try:
        return entry.architecture, entry.status, _shortened(", ".join(entry.kernel_names))
    except MissingExtraError:
        return "", entry.status, 'unknown without "gpubench[cache]"'


def _shortened(names: str) -> str:
    return names if len(names) <= _NAMES_WIDTH else f"{names[: _NAMES_WIDTH - 3]}..."


def format_age(age_time: float) -> str:
    """Return a duration of `age_time` seconds in one unit, for example ``"3.5 h"``."""
    for unit, factor in (("d", 86400), ("h", 3600), ("min", 60)):
        if age_time >= factor:
            return f"{age_time / factor:.1f} {unit}"
    return f"{age_time:.0f} s"
