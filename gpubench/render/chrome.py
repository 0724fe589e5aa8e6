"""A recording as a file in the trace-event format, for Perfetto and chrome://tracing.

The format: "Trace Event Format" of the Chromium project,
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Events become text
some thousands at a time, so that the text of a long recording is never in memory as a whole.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gpubench.activity.recording import KINDS, Recording
from gpubench.activity.tracks import Row, groups, rows, table
from gpubench.devices.records import (
    ACTIVITY_KINDS,
    CALL_KINDS,
    MEMORY_KINDS,
    RecordArray,
)
from gpubench.files import replacing

_BATCH = 4096
_GZIP_LEVEL = 4  # higher ones take longer and save little


def write(recording: Recording, path: str | PathLike[str]) -> None:
    """Write a recording as a file that Perfetto and chrome://tracing open.

    The host is a process with a row for each thread, each device one with a row for each stream.
    Arrows lead from calls to what they launched; counters show the bytes that are being copied.
    Times are microseconds from the beginning of the recording, or from the earliest record if
    that is earlier.

    Parameters
    ----------
    recording : Recording
        What to write.
    path : str or path-like
        Compressed if it ends in ``.gz``. A file that is there is replaced once the new one is
        whole.
    """
    with replacing(path) as file, _maybe_compressed(file, fspath(path)) as out:
        for text in _document(recording):
            out.write(text.encode())


def _maybe_compressed(
    file: BinaryIO, path: str
) -> AbstractContextManager[BinaryIO | gzip.GzipFile]:
    if not path.endswith(".gz"):
        return nullcontext(file)
    return gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)


def _document(recording: Recording) -> Iterator[str]:
    # The events come first and nothing follows the last brace: some versions of Perfetto give up
    # at a key that they don't know, or at white space after the end.
    opening = '{"displayTimeUnit":"ns","traceEvents":[\n'
    for events in filter(None, _events(recording)):
        yield opening + ",\n".join(events)
        opening = ",\n"
    facts = {
        "began at (ns of the recording's clock)": recording.begin,
        "duration (us)": recording.duration / 1e3,
        "recorded": recording.kinds,
        "records lost": recording.n_dropped,
    }
    yield f'\n],"otherData":{json.dumps(facts, allow_nan=False)}}}'


def _events(recording: Recording) -> Iterator[list[str]]:
    """Yield the events as text, some at a time."""
    layout = rows(recording)
    origin = min([recording.begin, *(int(row.slices["start"][0]) for row in layout)])
    recording = replace(recording, begin=origin)
    labels = groups(recording)
    # No number is 0 or stands for both a process and a row: viewers take such for something else.
    pids = {device: pid for pid, device in enumerate(labels, 1)}
    numbered = dict(enumerate(layout, 1 + len(pids)))
    for device, pid in pids.items():
        yield _heading("process", f'"pid":{pid}', labels[device], pid)
    for tid, row in numbered.items():
        yield _heading("thread", f'"pid":{pids[row.device]},"tid":{tid}', row.label, tid)
    for tid, row in numbered.items():
        yield from _slices(recording, row, pids[row.device], tid)
    yield from _arrows(recording, numbered, pids)
    for device, pid in pids.items():
        yield from _bytes_in_flight(recording, device, pid)


def _heading(what: str, which: str, label: str, place: int) -> list[str]:
    """Return the name of a process or thread and its place among others."""
    facts = {
        f"{what}_name": f'"name":{_quoted(label)}',
        f"{what}_sort_index": f'"sort_index":{place}',
    }
    return [
        f'{{"ph":"M","name":"{name}",{which},"args":{{{fact}}}}}' for name, fact in facts.items()
    ]


def _slices(recording: Recording, row: Row, pid: int, tid: int) -> Iterator[list[str]]:
    """Yield what a row shows: complete events, and marks as instants."""
    for batch in _batches(row.slices):
        is_mark = (batch["kind"] == KINDS.index("range")) & (batch["start"] == batch["end"])
        yield [
            f'{{{_phase(duration, mark)},"cat":"{KINDS[kind]}","name":{_quoted(name)},'
            f'"pid":{pid},"tid":{tid},"ts":{start:.3f},"args":{{{args}}}}}'
            for kind, name, start, duration, mark, args in zip(
                batch["kind"].tolist(),
                map(recording.names.__getitem__, batch["name"].tolist()),
                _us(batch["start"] - recording.begin),
                _us(batch["end"] - batch["start"]),
                is_mark.tolist(),
                _arguments(recording, batch),
                strict=True,
            )
        ]


def _phase(duration: float, is_mark: bool) -> str:
    return '"ph":"i","s":"t"' if is_mark else f'"ph":"X","dur":{duration:.3f}'


def _arguments(recording: Recording, slices: RecordArray) -> list[str]:
    """Return the inside of each slice's ``args``."""
    texts = np.empty(len(slices), object)
    for number in np.unique(slices["kind"]).tolist():
        kind = KINDS[number]
        chosen = slices["kind"] == number
        records = table(recording, kind)[slices["index"][chosen]]
        if kind == "kernel":
            texts[chosen] = _of_kernels(records)
        elif kind in ACTIVITY_KINDS:
            texts[chosen] = _of_copies_and_sets(records)
        elif kind in CALL_KINDS:
            texts[chosen] = _of_calls(records)
        else:
            key = "domain" if kind == "range" else "source"
            domains = map(recording.names.__getitem__, records["domain"].tolist())
            texts[chosen] = [f'"{key}":{_quoted(domain)}' for domain in domains]
    return texts.tolist()


def _of_kernels(kernels: RecordArray) -> list[str]:
    columns = ("grid", "block", "registers", "shared_bytes", "correlation_id", "graph_id")
    return [
        f'"grid":{grid},"block":{block},"registers":{registers},"shared bytes":{shared},'
        f'"correlation":{correlation}{_of_graph(graph)}'
        for grid, block, registers, shared, correlation, graph in _records(kernels, columns)
    ]


def _of_copies_and_sets(records: RecordArray) -> list[str]:
    columns = (
        "bytes", "start", "end", "source_memory", "target_memory", "is_async",
        "correlation_id", "graph_id",
    )  # fmt: skip
    return [
        f'"bytes":{size}{_of_speed(size, end - start)}{_of_memory("from", source)}'
        f'{_of_memory("to", target)},"async":{"true" if is_async else "false"},'
        f'"correlation":{correlation}{_of_graph(graph)}'
        for size, start, end, source, target, is_async, correlation, graph in _records(
            records, columns
        )
    ]


def _of_calls(calls: RecordArray) -> list[str]:
    return [
        f'"correlation":{correlation}' + (f',"status":{status}' if status else "")
        for correlation, status in _records(calls, ("correlation_id", "status"))
    ]


def _of_graph(graph_id: int) -> str:
    return f',"graph":{graph_id}' if graph_id else ""


def _of_speed(size: int, duration: int) -> str:
    return f',"GB/s":{size / duration:.4g}' if duration else ""


def _of_memory(key: str, kind: int) -> str:
    return f',"{key}":"{MEMORY_KINDS[kind]}"' if kind else ""


def _arrows(
    recording: Recording, numbered: Mapping[int, Row], pids: Mapping[int | None, int]
) -> Iterator[list[str]]:
    """Yield an arrow's two ends for each activity whose call was recorded.

    Viewers tie an end to what is drawn at its time, which is when call and activity begin, unless
    clocks that disagree have the activity begin before its call.
    """
    launches = recording.launches()
    call_tids = _tids(numbered, CALL_KINDS, len(recording.calls))
    activity_tids = _tids(numbered, ACTIVITY_KINDS, len(recording.activities))
    for batch in _batches(np.flatnonzero(launches >= 0)):
        calls, activities = recording.calls[launches[batch]], recording.activities[batch]
        left = calls["start"] - recording.begin
        arrived = np.maximum(activities["start"] - recording.begin, left)
        in_time = arrived <= activities["end"] - recording.begin
        ends = zip(
            (batch + 1)[in_time].tolist(),
            call_tids[launches[batch]][in_time].tolist(),
            _us(left[in_time]),
            map(pids.__getitem__, activities["device"][in_time].tolist()),
            activity_tids[batch][in_time].tolist(),
            _us(arrived[in_time]),
            strict=True,
        )
        yield [
            f'{{"ph":"s","id":{number},"cat":"launch","name":"launch",'
            f'"pid":{pids[None]},"tid":{call_tid},"ts":{left_at:.3f}}},\n'
            f'{{"ph":"f","bp":"e","id":{number},"cat":"launch","name":"launch",'
            f'"pid":{pid},"tid":{tid},"ts":{arrived_at:.3f}}}'
            for number, call_tid, left_at, pid, tid, arrived_at in ends
        ]


def _tids(numbered: Mapping[int, Row], kinds: Sequence[str], n: int) -> npt.NDArray[np.int32]:
    """Return for each record of an array of some kinds the number of its row."""
    tids = np.zeros(n, np.int32)
    numbers = [KINDS.index(kind) for kind in kinds]
    for tid, row in numbered.items():
        tids[row.slices["index"][np.isin(row.slices["kind"], numbers)]] = tid
    return tids


def _bytes_in_flight(recording: Recording, device: int | None, pid: int) -> Iterator[list[str]]:
    """Yield how many bytes a device is copying, each time that this changes."""
    copies = recording.of_kind("memcpy")
    copies = copies[copies["device"] == device]
    if not len(copies):
        return
    times = np.concatenate([[recording.begin], copies["start"], copies["end"]])
    changes = np.concatenate([[0], copies["bytes"], -copies["bytes"]])
    order = np.argsort(times, kind="stable")
    times, levels = times[order] - recording.begin, np.cumsum(changes[order])
    is_last = np.append(times[1:] != times[:-1], True)
    for batch in _batches(np.flatnonzero(is_last)):
        yield [
            f'{{"ph":"C","name":"copies in flight","pid":{pid},"ts":{time:.3f},'
            f'"args":{{"bytes":{level}}}}}'
            for time, level in zip(_us(times[batch]), levels[batch].tolist(), strict=True)
        ]


def _batches(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    for first in range(0, len(array), _BATCH):
        yield array[first : first + _BATCH]


def _records(records: RecordArray, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(records[column].tolist() for column in columns), strict=True)


def _us(ns: npt.NDArray[np.int64]) -> list[float]:
    us: list[float] = (ns / 1e3).tolist()
    return us


@functools.lru_cache(4096)
def _quoted(text: str) -> str:
    """Return any text as a string of JSON that Perfetto reads too.

    It refuses escaped surrogates, in pairs or alone, and takes a quote that follows any backslash
    for part of the string.
    """
    unicode = text.encode(errors="backslashreplace").decode()
    quoted = json.dumps(unicode, ensure_ascii=False)
    return f'{quoted[:-3]}\\u005c"' if unicode.endswith("\\") else quoted
