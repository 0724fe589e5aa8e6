"""The rows of a timeline: where each record is drawn, so that no two cover each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpubench.activity.recording import KINDS, Recording
from gpubench.devices.records import ACTIVITY_KINDS, CALL_KINDS, RecordArray

SLICE = np.dtype(
    [
        ("kind", "u1"),
        ("index", "i4"),
        ("name", "i4"),
        ("start", "i8"),
        ("end", "i8"),
        ("depth", "i4"),
    ]
)
"""One record in its row. ``kind`` is an index into `KINDS`; ``index`` is its place in the
recording's array, which `table` tells; ``depth`` is how many others of the row it lies in."""

_BATCH = 4096


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes
    ----------
    device : int or None
        Whose stream it shows; None for a thread of the host.
    label : str
        The thread or stream. A second row of the same one has a number.
    slices : ndarray of `SLICE`, shape (n,)
        By start, the longer first. Two lie apart or one in the other, on a device always apart.
    """

    device: int | None
    label: str
    slices: RecordArray


def rows(recording: Recording) -> tuple[Row, ...]:
    """Return the rows of the host's threads, then those of each device's streams.

    What would cross another record of its thread, or overlap one of its stream, goes to a
    further row of the same thread or stream.
    """
    return (*_host_rows(recording), *_device_rows(recording))


def table(recording: Recording, kind: str) -> RecordArray:
    """Return the array of `recording` that holds the records of one of `KINDS`."""
    if kind in ACTIVITY_KINDS:
        return recording.activities
    if kind in CALL_KINDS:
        return recording.calls
    return recording.ranges if kind == "range" else recording.compilations


def groups(recording: Recording) -> dict[int | None, str]:
    """Return what there are rows of, and how to call it: the host, under None, and each device.

    Devices that did nothing are among them.
    """
    devices = {*recording.devices, *np.unique(recording.activities["device"]).tolist()}
    labels: dict[int | None, str] = {None: "Host"}
    for device in sorted(devices):
        name = recording.devices.get(device)
        labels[device] = f"GPU-{device} ({name})" if name else f"GPU-{device}"
    return labels


def _host_rows(recording: Recording) -> Iterator[Row]:
    first_call_kind = KINDS.index(CALL_KINDS[0])
    slices = np.concatenate(
        [
            _slices(recording.ranges, KINDS.index("range")),
            _slices(recording.compilations, KINDS.index("compilation")),
            _slices(recording.calls, first_call_kind + recording.calls["kind"]),
        ]
    )
    tables = (recording.ranges, recording.compilations, recording.calls)
    owners = np.concatenate([records["thread"] for records in tables])
    for thread, label in _thread_labels(recording, owners).items():
        yield from _separated(None, label, slices[owners == thread], nests=True)


def _thread_labels(recording: Recording, owners: RecordArray) -> dict[int, str]:
    repeats = Counter(recording.threads.values())
    labels = {}
    for thread in np.unique(owners).tolist():
        name = recording.threads.get(thread, "thread")
        labels[thread] = name if repeats[name] == 1 else f"{name} {thread}"
    return labels


def _device_rows(recording: Recording) -> Iterator[Row]:
    activities = recording.activities
    slices = _slices(activities, activities["kind"])
    for device in np.unique(activities["device"]).tolist():
        for is_null in (True, False):
            chosen = (activities["device"] == device) & (activities["is_null_stream"] == is_null)
            for stream in np.unique(activities["stream"][chosen]).tolist():
                label = "null stream" if is_null else f"stream {stream}"
                own = slices[chosen & (activities["stream"] == stream)]
                yield from _separated(device, label, own, nests=False)


def _slices(records: RecordArray, kind: int | RecordArray) -> RecordArray:
    slices = np.zeros(len(records), SLICE)
    slices["kind"] = kind
    slices["index"] = np.arange(len(records))
    for column in ("name", "start", "end"):
        slices[column] = records[column]
    return slices


def _separated(device: int | None, label: str, slices: RecordArray, nests: bool) -> Iterator[Row]:
    slices = slices[np.lexsort((-slices["end"], slices["start"]))]
    places, slices["depth"] = _places(slices["start"], slices["end"], nests)
    for place in range(places.max() + 1):
        suffix = f" ({place + 1})" if place else ""
        yield Row(device, label + suffix, slices[places == place])


def _places(
    starts: RecordArray, ends: RecordArray, nests: bool
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return for each interval the first row that has room for it, and its depth there."""
    places = np.empty((2, len(starts)), np.int32)
    open_ends: list[list[int]] = []  # of each row, the outermost first
    for first in range(0, len(starts), _BATCH):
        batch = slice(first, first + _BATCH)
        found = []
        for start, end in zip(starts[batch].tolist(), ends[batch].tolist(), strict=True):
            row = _with_room(open_ends, start, end, nests)
            found.append((row, len(open_ends[row])))
            open_ends[row].append(end)
        places[:, batch] = np.transpose(found)
    return places[0], places[1]


def _with_room(open_ends: list[list[int]], start: int, end: int, nests: bool) -> int:
    """Return the first row where nothing is open or, if they may nest, all that is ends later."""
    for row, around in enumerate(open_ends):
        while around and around[-1] <= start:
            around.pop()
        if not around or (nests and end <= around[-1]):
            return row
    open_ends.append([])
    return len(open_ends) - 1
