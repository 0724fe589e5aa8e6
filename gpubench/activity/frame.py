"""A recording as a pandas table, one row for each record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpubench.activity.recording import Recording
from gpubench.devices.records import (
    ACTIVITY_KINDS,
    CALL,
    CALL_KINDS,
    KERNEL,
    MEMCPY,
    MEMORY_KINDS,
    RecordArray,
)
from gpubench.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

Values = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Column:
    """Values, and for each of them whether it is known and applies to its row."""

    values: Values
    known: npt.NDArray[np.bool_]


_Part = Mapping[str, _Column]
"""What one table of the recording has in columns."""

_KINDS = (*ACTIVITY_KINDS, *CALL_KINDS, "range", "mark", "compilation")


def to_dataframe(recording: Recording) -> pd.DataFrame:
    """Return one row for each activity, call, range, mark and compilation, by start.

    What doesn't apply to a row, or isn't known, is NA.

    Parameters
    ----------
    recording : Recording
        The records.

    Returns
    -------
    pandas.DataFrame
        Of two records that start together, the longer comes first. Columns:

        ``kind`` (category)
            ``"kernel"``, ``"memcpy"`` or ``"memset"`` for what a device did; ``"runtime"`` or
            ``"driver"`` for a call of CUDA's API; ``"range"``, ``"mark"``, ``"compilation"``.
        ``name`` (category)
            Of the kernel, kind of copy, function, range, mark, or of what was compiled.
        ``domain`` (category)
            Of ranges and marks; of compilations, where the code came from.
        ``start_time_s`` (float64)
            Seconds from the beginning of the recording.
        ``duration_s`` (float64)
            Seconds.
        ``thread`` (UInt64), ``thread_name`` (category)
            The host's thread, by its native id; of an activity, the one that launched it.
        ``device`` (Int64), ``device_name`` (category)
            Which device it was.
        ``stream`` (Int64), ``is_null_stream`` (boolean)
            Which stream of it.
        ``bytes`` (Int64)
            How much was copied or set.
        ``source_memory``, ``target_memory`` (category)
            What a copy read, and a copy or set wrote: one of `MEMORY_KINDS`.
        ``is_async`` (boolean)
            Whether a copy or set was asked for asynchronously.
        ``grid_x``, ``grid_y``, ``grid_z`` (Int64)
            Blocks of a kernel.
        ``block_x``, ``block_y``, ``block_z`` (Int64)
            Threads of each block.
        ``registers`` (Int64)
            Registers of each thread.
        ``shared_bytes`` (Int64)
            Shared memory of each block, static and dynamic.
        ``correlation_id`` (Int64)
            Of a call, and of the activities that it launched.
        ``graph_id`` (Int64)
            The CUDA graph that an activity was part of.
        ``call`` (category)
            The function whose call launched an activity.
        ``call_start_time_s`` (float64)
            When that call began, in seconds from the beginning of the recording.
        ``status`` (Int64)
            What a call returned; 0 is success.

    Raises
    ------
    MissingExtraError
        If pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("to_dataframe()", "pandas", "dataframe") from error
    tables = (_activities, _calls, _ranges, _compilations)
    parts = [columns_of(recording) for columns_of in tables]
    order = np.lexsort((-_joined("end", parts).values, _joined("start", parts).values))
    texts = _texts(recording)

    def column(name: str) -> Any:
        joined = _joined(name, parts)
        values, known = joined.values[order], joined.known[order]
        if name in texts:
            codes, categories = _codes(values, known, texts[name])
            # Of objects, as pandas' own strings can't hold whatever a name may.
            return pd.Categorical.from_codes(codes, categories=pd.Index(categories, dtype=object))
        if name.endswith("_s"):
            return np.where(known, values / 1e9, np.nan)
        if values.dtype == bool:
            return pd.arrays.BooleanArray(values, ~known)
        dtype = np.uint64 if name == "thread" else np.int64
        return pd.arrays.IntegerArray(values.astype(dtype), ~known)

    return pd.DataFrame({name: column(name) for name in _COLUMNS}, copy=False)


_COLUMNS = (
    "kind", "name", "domain", "start_time_s", "duration_s", "thread", "thread_name", "device",
    "device_name", "stream", "is_null_stream", "bytes", "source_memory", "target_memory",
    "is_async", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers",
    "shared_bytes", "correlation_id", "graph_id", "call", "call_start_time_s", "status",
)  # fmt: skip


def _texts(recording: Recording) -> dict[str, Mapping[int, str]]:
    """Return what the numbers in columns of text mean."""
    names = dict(enumerate(recording.names))
    memory = {number: kind for number, kind in enumerate(MEMORY_KINDS) if kind}
    return {
        "kind": dict(enumerate(_KINDS)),
        "name": names,
        "domain": names,
        "thread_name": recording.threads,
        "device_name": recording.devices,
        "source_memory": memory,
        "target_memory": memory,
        "call": names,
    }


def _activities(recording: Recording) -> _Part:
    rows = recording.activities
    kernels = rows["kind"] == KERNEL
    copies = rows["kind"] == MEMCPY
    launches = recording.launches()
    launched = launches >= 0
    call = np.zeros(len(rows), CALL)
    call[launched] = recording.calls[launches[launched]]
    return {
        **_common(rows, recording.begin),
        "kind": _column(rows["kind"]),
        "thread": _column(call["thread"], launched),
        "thread_name": _column(call["thread"], launched),
        **{name: _column(rows[name]) for name in ("device", "stream", "is_null_stream")},
        "device_name": _column(rows["device"]),
        **{name: _column(rows[name], ~kernels) for name in ("bytes", "target_memory", "is_async")},
        "source_memory": _column(rows["source_memory"], copies),
        **{
            f"{field}_{axis}": _column(rows[field][:, number], kernels)
            for field in ("grid", "block")
            for number, axis in enumerate("xyz")
        },
        **{name: _column(rows[name], kernels) for name in ("registers", "shared_bytes")},
        **{name: _column(rows[name], rows[name] != 0) for name in ("correlation_id", "graph_id")},
        "call": _column(call["name"], launched),
        "call_start_time_s": _column(call["start"] - recording.begin, launched),
    }


def _calls(recording: Recording) -> _Part:
    rows = recording.calls
    return {
        **_common(rows, recording.begin),
        "kind": _column(rows["kind"] + len(ACTIVITY_KINDS)),
        "thread": _column(rows["thread"]),
        "thread_name": _column(rows["thread"]),
        "correlation_id": _column(rows["correlation_id"], rows["correlation_id"] != 0),
        "status": _column(rows["status"]),
    }


def _ranges(recording: Recording) -> _Part:
    rows = recording.ranges
    is_mark = rows["start"] == rows["end"]
    kind = np.where(is_mark, _KINDS.index("mark"), _KINDS.index("range"))
    return _of_threads(rows, recording.begin, kind)


def _compilations(recording: Recording) -> _Part:
    rows = recording.compilations
    kind = np.full(len(rows), _KINDS.index("compilation"))
    return _of_threads(rows, recording.begin, kind)


def _of_threads(rows: RecordArray, begin: int, kind: Values) -> _Part:
    return {
        **_common(rows, begin),
        "kind": _column(kind),
        "domain": _column(rows["domain"]),
        "thread": _column(rows["thread"]),
        "thread_name": _column(rows["thread"]),
    }


def _common(rows: RecordArray, begin: int) -> _Part:
    return {
        **{name: _column(rows[name]) for name in ("start", "end", "name")},
        "start_time_s": _column(rows["start"] - begin),
        "duration_s": _column(rows["end"] - rows["start"]),
    }


def _column(values: Values, known: Values | None = None) -> _Column:
    return _Column(values, np.ones(len(values), bool) if known is None else known)


def _joined(name: str, parts: Sequence[_Part]) -> _Column:
    """Return a column of all parts, one behind the other, unknown in those that lack it."""
    dtype = next(part[name].values.dtype for part in parts if name in part)
    columns = [
        part[name] if name in part else _lacking(len(part["start"].values), dtype) for part in parts
    ]
    return _Column(
        np.concatenate([column.values for column in columns]),
        np.concatenate([column.known for column in columns]),
    )


def _lacking(n_rows: int, dtype: np.dtype[Any]) -> _Column:
    return _Column(np.zeros(n_rows, dtype), np.zeros(n_rows, bool))


def _codes(
    values: Values, known: Values, texts: Mapping[int, str]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return for each value the place of its text among the categories, and these.

    The place is -1 where the value isn't known or has no text.
    """
    used = np.unique(values[known])
    categories: dict[str, int] = {}
    codes = [
        categories.setdefault(texts[value], len(categories)) if value in texts else -1
        for value in used.tolist()
    ]
    places = np.searchsorted(used, values)
    places[~known] = len(used)
    return np.array([*codes, -1])[places], list(categories)
