"""What each kernel, copy, set and graph launch took, as a flat list: NVIDIA Warp's interface.

The names and the flags' values are Warp's. Other than there, every framework's work is seen, and
times are the device's own, not those between events.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import NamedTuple, SupportsIndex

import numpy as np

from gpubench.activity.recording import Recording
from gpubench.activity.scope.gpu_clock import wait_for_gpus
from gpubench.arguments import whole_number
from gpubench.devices.records import ACTIVITY_KINDS, RecordArray
from gpubench.errors import UnsupportedError

TIMING_KERNEL = 1
"""Kernels."""

TIMING_KERNEL_BUILTIN = 2
"""Kernels too: a record doesn't tell those of a library, which Warp means, from the user's own."""

TIMING_MEMCPY = 4
"""Copies."""

TIMING_MEMSET = 8
"""Sets of memory."""

TIMING_GRAPH = 16
"""Launches of CUDA graphs as a whole; what runs in them counts as kernel, copy or set as well."""

TIMING_ALL = 0xFFFFFFFF
"""All of these."""

_ASKED_BY = (TIMING_KERNEL | TIMING_KERNEL_BUILTIN, TIMING_MEMCPY, TIMING_MEMSET)
"""The flags that ask for each of `ACTIVITY_KINDS`."""

_FLAG = np.array([TIMING_KERNEL, TIMING_MEMCPY, TIMING_MEMSET])
"""The flag that each of `ACTIVITY_KINDS` falls under."""


class TimingResult(NamedTuple):
    """What one activity took.

    Attributes
    ----------
    device : str
        Where it ran, for example ``"cuda:0"``.
    name : str
        A kernel's name, ``"memcpy HtoD"`` and the like, ``"memset"`` or ``"graph"``.
    filter : int
        `TIMING_KERNEL`, `TIMING_MEMCPY`, `TIMING_MEMSET` or `TIMING_GRAPH`.
    elapsed : float
        Milliseconds. A graph's are those from the start of what began first in it to the end of
        what ended last.
    """

    device: str
    name: str
    filter: int
    elapsed: float


def timing_begin(activity_filter: SupportsIndex = TIMING_ALL, synchronize: bool = True) -> None:
    """Begin to record what the GPUs do, until `timing_end`.

    Pairs of the two may nest, and run in several threads and tasks: each pair has its own list,
    which shows the work of all threads.

    Parameters
    ----------
    activity_filter : int
        What to record: a sum of `TIMING_KERNEL`, `TIMING_MEMCPY`, `TIMING_MEMSET` and
        `TIMING_GRAPH`.
    synchronize : bool
        Whether to wait for the GPUs first. Otherwise, work from before may be in the list.

    Raises
    ------
    ArgumentError
        If `activity_filter` isn't such a number.
    UnsupportedError
        If nothing can be recorded: no GPU, no cupti-python, another profiler at work. The
        message says which, and what to do.
    """
    wanted = whole_number("activity_filter", activity_filter, at_least=0)
    with ExitStack() as stack:
        if synchronize:
            wait_for_gpus()
        results = stack.enter_context(timed_activities(wanted))
        _begun.append(_Begun(threading.current_thread(), _task(), results, stack.pop_all()))


def timing_end(synchronize: bool = True) -> list[TimingResult]:
    """End what `timing_begin` began last, in this task if there, else in this thread.

    Parameters
    ----------
    synchronize : bool
        Whether to wait for the GPUs first. Otherwise, work that isn't done is not in the list.

    Returns
    -------
    list of TimingResult
        What ran, in the order in which the host asked for it.

    Raises
    ------
    UnsupportedError
        If this thread has begun nothing.
    """
    of_thread = [begun for begun in _begun if begun.thread is threading.current_thread()]
    if not of_thread:
        raise UnsupportedError("timing_end() ends nothing: this thread has no open timing_begin()")
    of_task = [begun for begun in of_thread if begun.task is _task()]
    begun = (of_task or of_thread)[-1]
    _begun.remove(begun)
    with begun.recording:
        if synchronize:
            wait_for_gpus()
    return begun.results


def timing_print(results: Sequence[TimingResult], indent: str = "") -> None:
    """Print what ran in three tables: each activity, totals by activity, totals by device.

    Parameters
    ----------
    results : sequence of TimingResult
        What `timing_end` returned.
    indent : str
        What each line begins with.
    """
    from gpubench.render.timing import timing_tables

    print(timing_tables(results, indent))


@contextmanager
def timed_activities(activity_filter: int) -> Iterator[list[TimingResult]]:
    """Record while the block runs, without waiting for the GPUs at its ends.

    Yields
    ------
    list of TimingResult
        Empty until the block has ended without an exception.

    Raises
    ------
    UnsupportedError
        If nothing can be recorded; the message says why.
    """
    from gpubench.activity.recorder import record_activity

    results: list[TimingResult] = []
    kinds = [
        kind
        for kind, flags in zip(ACTIVITY_KINDS, _ASKED_BY, strict=True)
        if activity_filter & (flags | TIMING_GRAPH)
    ]
    with record_activity(kinds, synchronize=False) as trace:
        yield results
    results += timing_results(trace.recording, activity_filter)
    if trace.recording.n_dropped:
        warnings.warn(
            f"{trace.recording.n_dropped} activities were lost for want of room: the list is "
            "incomplete; record less of them at a time",
            RuntimeWarning,
            stacklevel=2,
        )


def timing_results(recording: Recording, activity_filter: int) -> list[TimingResult]:
    """Return the activities of a recording that the flags ask for, in the order of their calls."""
    activities = recording.activities
    is_asked = np.array([bool(activity_filter & flags) for flags in _ASKED_BY])
    rows = _rows(activities[is_asked[activities["kind"]]])
    if activity_filter & TIMING_GRAPH:
        rows = np.concatenate([_graph_rows(activities, len(recording.names)), rows])
    # Correlation ids count calls; the one that launches a graph is that of all its nodes.
    is_node = rows["filter"] != TIMING_GRAPH
    rows = rows[np.lexsort((rows["start"], is_node, rows["correlation_id"]))]
    names = np.array([*recording.names, "graph"], object)[rows["name"]]
    devices = [f"cuda:{number}" for number in rows["device"].tolist()]
    elapsed = (rows["duration"] * 1e-6).tolist()
    return list(map(TimingResult, devices, names.tolist(), rows["filter"].tolist(), elapsed))


def asked_for(activity_filter: int) -> str:
    """Return in words what the flags ask for, for example ``"kernels, copies"``."""
    words = ("kernels", "copies", "sets", "graph launches")
    flags = (*_ASKED_BY, TIMING_GRAPH)
    return ", ".join(
        word for word, flag in zip(words, flags, strict=True) if activity_filter & flag
    )


@dataclass(frozen=True, eq=False)
class _Begun:
    """An open `timing_begin`: whose it is, the list to be, and what ends the recording."""

    thread: threading.Thread
    task: object
    results: list[TimingResult]
    recording: ExitStack


_begun: list[_Begun] = []


def _task() -> object:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs
        return None


_ROW = np.dtype(
    [
        ("correlation_id", "u4"),
        ("start", "i8"),
        ("duration", "i8"),
        ("device", "i4"),
        ("name", "i4"),
        ("filter", "i4"),
    ]
)
"""A result to be: an activity, or a graph launch."""


def _rows(activities: RecordArray) -> RecordArray:
    rows = np.empty(len(activities), _ROW)
    for field in ("correlation_id", "start", "device", "name"):
        rows[field] = activities[field]
    rows["duration"] = activities["end"] - activities["start"]
    rows["filter"] = _FLAG[activities["kind"]]
    return rows


def _graph_rows(activities: RecordArray, name: int) -> RecordArray:
    nodes = activities[activities["graph_id"] != 0]
    nodes = nodes[np.lexsort((nodes["start"], nodes["correlation_id"]))]
    first = np.unique(nodes["correlation_id"], return_index=True)[1]
    rows = _rows(nodes[first])
    if len(first):
        rows["duration"] = np.maximum.reduceat(nodes["end"], first) - rows["start"]
    rows["name"] = name
    rows["filter"] = TIMING_GRAPH
    return rows
