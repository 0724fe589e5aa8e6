"""CUPTI's buffers of activity records, read as arrays.

A buffer holds records of different kinds one behind the other. Which fields a record has is told
by its kind, where they lie by cupti-python's layout for that kind, and where the next one begins
by CUPTI itself, which may be newer than the layout and have added fields to the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gpubench.devices import records
from gpubench.devices.names import NameTable
from gpubench.devices.records import (
    ACTIVITY,
    CALL,
    LINK,
    RANGE,
    RecordArray,
    Records,
    no_records,
)
from gpubench.errors import UnsupportedError

Words = npt.NDArray[np.uint64]

MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, MARKER, PEER_COPY, LINKED = 1, 2, 4, 5, 10, 12, 22, 39
"""CUPTI's numbers of the kinds that are read here."""

_LAYOUTS = {
    MEMCPY: r"activity_memcpy\d*_dtype",
    MEMSET: r"activity_memset\d*_dtype",
    DRIVER: r"activity_api_dtype",
    RUNTIME: r"activity_api_dtype",
    KERNEL: r"activity_kernel\d+_dtype",
    MARKER: r"activity_marker\d*_dtype",
    PEER_COPY: r"activity_memcpy_pto_p\d*_dtype",
    LINKED: r"activity_external_correlation_dtype",
}
"""What cupti-python calls the layouts; a release raises the number of those that it changes."""

_COPIES = (
    "memcpy", "memcpy HtoD", "memcpy DtoH", "memcpy HtoA", "memcpy AtoH", "memcpy AtoA",
    "memcpy AtoD", "memcpy DtoA", "memcpy DtoD", "memcpy HtoH", "memcpy PtoP",
)  # fmt: skip
_MARK, _RANGE_BEGIN, _RANGE_END = 1, 2, 4
_IS_ASYNC = 1


def layouts(cupti: Any) -> dict[int, np.dtype[Any]]:
    """Return where cupti-python says that the fields of each kind of record lie.

    Raises
    ------
    UnsupportedError
        If this cupti-python doesn't say it.
    """
    found = {}
    for kind, pattern in _LAYOUTS.items():
        names = [name for name in dir(cupti) if re.fullmatch(pattern, name)]
        if not names:
            raise UnsupportedError(f"this cupti-python has no {pattern}, where records are read")
        found[kind] = getattr(cupti, max(names, key=_number))
    return found


def _number(name: str) -> int:
    return int("0" + "".join(filter(str.isdigit, name)))


class BufferReader:
    """Makes records of the buffers of one recording.

    Parameters
    ----------
    layouts : mapping of int to dtype
        By kind.
    read_string : callable
        Returns the string that begins at an address.
    call_name : callable
        Returns the name of a call of CUDA's API, by its record's kind and number.
    null_streams : mapping of int to int
        The number of the null stream of each context.
    external_kind : int
        Links of other kinds are somebody else's.
    names : NameTable
        Where names are kept.
    """

    def __init__(
        self,
        layouts: Mapping[int, np.dtype[Any]],
        read_string: Callable[[int], str],
        call_name: Callable[[int, int], str],
        null_streams: Mapping[int, int],
        external_kind: int,
        names: NameTable,
    ) -> None:
        self._layouts = layouts
        self._read_string = read_string
        self._call_name = call_name
        self._null_streams = null_streams
        self._external_kind = external_kind
        self._names = names
        self._strides: dict[int, int] = {}
        self._open_ranges: dict[int, tuple[int, int, int, int]] = {}

    def read(self, buffer: npt.NDArray[np.uint8], next_record: Callable[[int], int]) -> Records:
        """Return the records of a buffer.

        Parameters
        ----------
        buffer : ndarray of uint8
            What is valid of it; a multiple of 8 bytes.
        next_record : callable
            Returns the offset of the record behind the one at an offset, as CUPTI sees it.
        """
        words = buffer.view(np.uint64)
        offsets = self._offsets(buffer.view(np.int32).tolist(), next_record)
        rows = {
            kind: self._rows(words, np.array(places), kind)
            for kind, places in offsets.items()
            if kind in self._layouts
        }
        activities = [
            *self._activities(rows, KERNEL, self._kernels),
            *self._activities(rows, MEMCPY, self._copies),
            *self._activities(rows, PEER_COPY, self._copies),
            *self._activities(rows, MEMSET, self._sets),
        ]
        calls = [self._calls(rows[kind], kind) for kind in (RUNTIME, DRIVER) if kind in rows]
        return Records(
            activities=np.concatenate([no_records(ACTIVITY), *activities]),
            calls=np.concatenate([no_records(CALL), *calls]),
            ranges=self._ranges(rows[MARKER]) if MARKER in rows else no_records(RANGE),
            links=self._links(rows[LINKED]) if LINKED in rows else no_records(LINK),
            names=(),
        )

    def _offsets(
        self, numbers: list[int], next_record: Callable[[int], int]
    ) -> dict[int, list[int]]:
        """Find the records of each kind; `numbers` is the buffer, four bytes each."""
        found: dict[int, list[int]] = {}
        strides = self._strides
        place, end = 0, len(numbers)
        while place < end:
            kind = numbers[place]
            if kind not in strides:
                strides[kind] = (next_record(4 * place) - 4 * place) // 4
                if kind in self._layouts and 4 * strides[kind] < self._layouts[kind].itemsize:
                    raise UnsupportedError(
                        f"CUPTI's records of kind {kind} are shorter than cupti-python knows them; "
                        "install the cupti-python that belongs to this CUPTI"
                    )
            found.setdefault(kind, []).append(4 * place)
            place += strides[kind]
        return found

    def _rows(self, words: Words, offsets: npt.NDArray[np.int64], kind: int) -> RecordArray:
        layout = self._layouts[kind]
        of_record = np.arange(layout.itemsize // 8)
        rows: RecordArray = words[(offsets // 8)[:, np.newaxis] + of_record].view(layout)[:, 0]
        return rows

    def _activities(
        self,
        rows: Mapping[int, RecordArray],
        kind: int,
        fill: Callable[[RecordArray, RecordArray], None],
    ) -> list[RecordArray]:
        if kind not in rows:
            return []
        source = rows[kind]
        target = np.zeros(len(source), ACTIVITY)
        for field in ("start", "end", "correlation_id", "graph_id"):
            target[field] = source[field]
        target["device"], target["stream"] = source["device_id"], source["stream_id"]
        for context in np.unique(source["context_id"]).tolist():
            null = self._null_streams.get(context, -1)
            target["is_null_stream"] |= (source["context_id"] == context) & (
                source["stream_id"] == null
            )
        fill(target, source)
        # What CUPTI couldn't take the time of, it gives the time 0.
        return [target[target["end"] > 0]]

    def _kernels(self, target: RecordArray, source: RecordArray) -> None:
        target["kind"] = records.KERNEL
        target["name"] = self._strings(source["name"])
        for number, axis in enumerate("xyz"):
            target["grid"][:, number] = source[f"grid_{axis}"]
            target["block"][:, number] = source[f"block_{axis}"]
        target["registers"] = source["registers_per_thread"]
        target["shared_bytes"] = source["static_shared_memory"] + source["dynamic_shared_memory"]

    def _copies(self, target: RecordArray, source: RecordArray) -> None:
        target["kind"] = records.MEMCPY
        kinds = np.where(source["copy_kind"] < len(_COPIES), source["copy_kind"], 0)
        target["name"] = np.array([self._names[name] for name in _COPIES])[kinds]
        target["bytes"] = source["bytes"]
        target["source_memory"], target["target_memory"] = source["src_kind"], source["dst_kind"]
        target["is_async"] = source["flags_"] & _IS_ASYNC

    def _sets(self, target: RecordArray, source: RecordArray) -> None:
        target["kind"] = records.MEMSET
        target["name"] = self._names["memset"]
        target["bytes"] = source["bytes"]
        target["target_memory"] = source["memory_kind"]
        target["is_async"] = source["flags_"] & _IS_ASYNC

    def _calls(self, source: RecordArray, kind: int) -> RecordArray:
        target = np.zeros(len(source), CALL)
        target["kind"] = (RUNTIME, DRIVER).index(kind)
        for field in ("start", "end", "correlation_id"):
            target[field] = source[field]
        target["thread"], target["status"] = source["thread_id"], source["return_value"]
        numbers, places = np.unique(source["cbid"], return_inverse=True)
        indices = [self._names[self._call_name(kind, number)] for number in numbers.tolist()]
        target["name"] = np.array(indices)[places]
        return target

    def _ranges(self, source: RecordArray) -> RecordArray:
        """Join the two markers of each range; they needn't be in one buffer."""
        columns = [source[field].tolist() for field in ("flags_", "id", "timestamp")]
        threads = source["object_id"]["pt"]["thread_id"].tolist()
        names, domains = (self._strings(source[field]).tolist() for field in ("name", "domain"))
        done = []
        for flags, number, time, thread, name, domain in zip(
            *columns, threads, names, domains, strict=True
        ):
            if flags & _MARK:
                done.append((name, domain, time, time, thread))
            elif flags & _RANGE_BEGIN:
                self._open_ranges[number] = (name, domain, time, thread)
            elif flags & _RANGE_END and number in self._open_ranges:
                name_then, domain_then, start, thread_then = self._open_ranges.pop(number)
                done.append((name_then, domain_then, start, time, thread_then))
        return np.array(done, RANGE)

    def _links(self, source: RecordArray) -> RecordArray:
        own = source[source["external_kind"] == self._external_kind]
        target = np.zeros(len(own), LINK)
        for field in ("correlation_id", "external_id"):
            target[field] = own[field]
        return target

    def _strings(self, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the indices of the strings at these addresses; of no address, the empty one."""
        unique, places = np.unique(addresses, return_inverse=True)
        indices = [self._names[self._read_string(a) if a else ""] for a in unique.tolist()]
        return np.array(indices, np.int64)[places]
