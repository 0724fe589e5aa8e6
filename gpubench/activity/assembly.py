"""Raw records, and what the host's own logs say, put together to a recording."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

import numpy as np

from gpubench.activity.demangling import demangled
from gpubench.activity.recording import Recording
from gpubench.compilation import CompilationLog
from gpubench.devices.names import NameTable
from gpubench.devices.records import (
    ACTIVITY_KINDS,
    CALL_KINDS,
    RANGE,
    RecordArray,
    Records,
    no_records,
)
from gpubench.ranges.recording import RangeLog


def assemble(
    records: Records,
    log: RangeLog,
    compilations: CompilationLog,
    span: tuple[int, int],
    kinds: Collection[str],
    clock_offset: int,
) -> Recording:
    """Return what was recorded in a span of time.

    Parameters
    ----------
    records : Records
        Everything that the source delivered; records of other kinds and times are left out.
    log : RangeLog
        gpubench's own ranges.
    compilations : CompilationLog
        What CuPy compiled.
    span : (int, int)
        From when to when, in nanoseconds of the source's clock.
    kinds : collection of str
        What was asked for.
    clock_offset : int
        Nanoseconds of the source's clock less those of `time.perf_counter`.
    """
    begin, end = span
    names = NameTable()

    def placed(table: RecordArray, own_names: Sequence[str]) -> RecordArray:
        inside = table[(table["start"] >= begin) & (table["start"] <= end)]
        return _sorted(_renamed(inside, own_names, names))

    activities = placed(_chosen(records.activities, ACTIVITY_KINDS, kinds), records.names)
    calls = placed(_chosen(records.calls, CALL_KINDS, kinds), records.names)
    ranges = [placed(log.ranges(until=end), log.names())]
    if "range" in kinds:
        ranges.append(placed(records.ranges, records.names))
    compiled = no_records(RANGE)
    if "compilation" in kinds:
        compiled = placed(*_compiled(compilations, clock_offset))
    return Recording(
        begin=begin,
        end=end,
        kinds=tuple(kinds),
        activities=activities,
        calls=calls,
        ranges=_sorted(np.concatenate(ranges)),
        compilations=compiled,
        names=names(),
        threads=log.threads
        | {
            thread.native_id: thread.name
            for thread in threading.enumerate()
            if thread.native_id is not None
        },
        n_dropped=records.n_dropped,
    )


def _chosen(table: RecordArray, every: Sequence[str], kinds: Collection[str]) -> RecordArray:
    numbers = [number for number, kind in enumerate(every) if kind in kinds]
    return table[np.isin(table["kind"], numbers)]


def _renamed(table: RecordArray, old: Sequence[str], names: NameTable) -> RecordArray:
    """Return the records with the indices that their names have in another table."""
    renamed = table.copy()
    for field in {"name", "domain"}.intersection(table.dtype.names or ()):
        used, places = np.unique(table[field], return_inverse=True)
        indices = [names[demangled(old[index])] for index in used.tolist()]
        renamed[field] = np.array(indices, np.int64)[places]
    return renamed


def _sorted(table: RecordArray) -> RecordArray:
    return table[np.lexsort((-table["end"], table["start"]))]


def _compiled(log: CompilationLog, clock_offset: int) -> tuple[RecordArray, tuple[str, ...]]:
    names = NameTable()
    table = np.zeros(len(log.intervals), RANGE)
    for row, compilation, (start, end, thread) in zip(table, log, log.intervals, strict=False):
        row["name"] = names[", ".join(compilation.names) or compilation.source]
        row["domain"] = names[compilation.source]
        row["start"], row["end"] = (round(time * 1e9) + clock_offset for time in (start, end))
        row["thread"] = thread
    return table, names()
