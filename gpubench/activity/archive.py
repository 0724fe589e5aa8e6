"""A recording as a file: NumPy's ``.npz`` with an array for each column, and a header in JSON.

Starts and correlation ids are kept as differences from row to row and ends as durations, each
column in the smallest type that holds it: so they compress well. The same recording makes the
same bytes. Nothing in a file is ever run, as no pickle is read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpubench.activity.recording import Recording
from gpubench.devices.records import (
    ACTIVITY,
    ACTIVITY_KINDS,
    CALL,
    CALL_KINDS,
    MEMORY_KINDS,
    RANGE,
    RecordArray,
)
from gpubench.errors import ArgumentError
from gpubench.files import replacing

FORMAT = 1
"""The version of the files; raised when older releases would misread newer ones.

Further columns and fields are no reason to: who doesn't know them leaves them out, and where an
older file lacks them, they are zero, or the default of `Recording`.
"""

_TABLES = {"activities": ACTIVITY, "calls": CALL, "ranges": RANGE, "compilations": RANGE}
_CONTENT = "gpubench recording"

Arrays = Mapping[str, npt.NDArray[Any]]


def save(recording: Recording, path: str | PathLike[str]) -> None:
    """Write a recording to a file.

    Parameters
    ----------
    recording : Recording
        What to write.
    path : str or path-like
        No suffix is added. A file that is there is replaced when the new one is whole.

    Raises
    ------
    OSError
        If it can't be written.
    """
    values = {field.name: getattr(recording, field.name) for field in fields(recording)}
    columns: dict[str, Any] = {
        f"{table}.{field}": column
        for table in _TABLES
        for field, column in _encoded(values.pop(table), recording.begin).items()
    }
    for key in ("devices", "threads"):
        values[key] = sorted(values[key].items())
    header = {"content": _CONTENT, "format": FORMAT, "recording": values}
    text = json.dumps(header, default=lambda value: value.item())  # NumPy's numbers
    with replacing(path) as file:
        np.savez_compressed(file, header=np.frombuffer(text.encode(), np.uint8), **columns)


def load(path: str | PathLike[str]) -> Recording:
    """Read a recording that `save` wrote.

    Parameters
    ----------
    path : str or path-like
        Its file.

    Raises
    ------
    ArgumentError
        If the file isn't one or not whole, or a newer release wrote it in another format; the
        message names it.
    OSError
        If it can't be opened.
    """
    with Path(path).open("rb") as file:
        try:
            if not zipfile.is_zipfile(file):  # which np.load would take for a pickle
                raise ValueError("it is no zip file")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                header = _header(arrays)
                if header["format"] <= FORMAT:
                    return _recording(header["recording"], arrays)
        except Exception as error:  # NumPy meets damage with far more than ValueError
            raise ArgumentError(
                f"path must name a whole file that a recording was saved to; {fspath(path)!r} "
                f"isn't one: {error}"
            ) from error
    raise ArgumentError(
        f"path must name a recording of a format up to {FORMAT}; {fspath(path)!r} has format "
        f"{header['format']}: install a newer gpubench"
    )


def _header(arrays: Arrays) -> dict[str, Any]:
    header = json.loads(arrays["header"].tobytes())
    if header["content"] != _CONTENT:
        raise ValueError(f"it holds {header['content']!r}")
    return dict(header)


def _recording(values: Mapping[str, Any], arrays: Arrays) -> Recording:
    known = {field.name for field in fields(Recording)}
    plain: dict[str, Any] = {
        key: _FROM_JSON.get(key, _same)(value) for key, value in values.items() if key in known
    }
    tables = {
        table: _decoded(table, dtype, plain["begin"], arrays) for table, dtype in _TABLES.items()
    }
    for table in tables.values():
        _check_indices(table, plain["names"])
    return Recording(**{**plain, **tables})


_FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "kinds": tuple,
    "names": tuple,
    "devices": dict,
    "threads": dict,
}


def _same(value: Any) -> Any:
    return value


def _encoded(table: RecordArray, begin: int) -> dict[str, npt.NDArray[Any]]:
    columns = {field: table[field] for field in table.dtype.names or ()}
    columns["end"] = table["end"] - table["start"]
    columns["start"] = np.diff(table["start"], prepend=begin)
    if "correlation_id" in columns:
        columns["correlation_id"] = np.diff(table["correlation_id"].astype(np.int64), prepend=0)
    return {field: _smallest(column) for field, column in columns.items()}


def _smallest(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values in the smallest type that holds all of them."""
    if column.dtype == bool or not column.size:
        return column
    low, high = column.min(), column.max()
    for dtype in map(np.dtype, ("u1", "i1", "u2", "i2", "u4", "i4")):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return column.astype(dtype)
    return column


def _decoded(name: str, dtype: np.dtype[Any], begin: int, arrays: Arrays) -> RecordArray:
    stored = {
        field: arrays[f"{name}.{field}"]
        for field in dtype.names or ()
        if f"{name}.{field}" in arrays
    }
    table = np.zeros(len(stored.get("start", ())), dtype)
    if "start" in stored:
        stored["start"] = begin + np.cumsum(stored["start"], dtype=np.int64)
    if "end" in stored:
        stored["end"] = stored["start"] + stored["end"]
    if "correlation_id" in stored:
        stored["correlation_id"] = np.cumsum(stored["correlation_id"], dtype=np.int64)
    for field, column in stored.items():
        if column.shape != table[field].shape:
            raise ValueError(f"{name}.{field} has the shape {column.shape}")
        table[field] = column
        if not np.array_equal(table[field], column):
            raise ValueError(f"{name}.{field} holds what it can't")
    return table


def _check_indices(table: RecordArray, names: Sequence[str]) -> None:
    """Refuse indices that lead nowhere, as whoever looks them up would stumble."""
    kinds = CALL_KINDS if table.dtype == CALL else ACTIVITY_KINDS
    choices = {
        "name": names,
        "domain": names,
        "kind": kinds,
        "source_memory": MEMORY_KINDS,
        "target_memory": MEMORY_KINDS,
    }
    for field in choices.keys() & set(table.dtype.names or ()):
        indices = table[field]
        if len(indices) and not 0 <= indices.min() <= indices.max() < len(choices[field]):
            raise ValueError(f"{field} {indices.max()} is not among {len(choices[field])}")
