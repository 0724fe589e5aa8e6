"""Activity records of a simulated GPU."""

from __future__ import annotations

import itertools
import threading
import time
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

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
from gpubench.devices.simulated.events import GRAPH_GAP, Operation

if TYPE_CHECKING:
    from gpubench.devices.simulated.gpu import SimulatedGpu


class SimulatedSource:
    """Keeps the calls that launch something, and finds what they launched in the history."""

    sees_nvtx = False
    delivery_time = 0.0

    def __init__(self, gpu: SimulatedGpu) -> None:
        self._gpu = gpu
        self._n_seen = len(gpu.history)
        self._kinds: set[str] = set()
        self._names = NameTable()
        self._correlation_ids = itertools.count(1)
        self._calls = array("q")
        self._links = array("q")
        self._thread = threading.local()
        gpu.source = self

    def now(self) -> int:
        """Return the time on the clock of the records, in nanoseconds."""
        return time.perf_counter_ns()

    def enable(self, kinds: Collection[str]) -> None:
        """Record these too, from now on."""
        self._kinds |= set(kinds)

    @contextmanager
    def call(self, name: str) -> Iterator[int]:
        """Record a call of the simulated API; yields its correlation id."""
        number = next(self._correlation_ids)
        start = time.perf_counter_ns()
        try:
            yield number
        finally:
            end = time.perf_counter_ns()
            if "runtime" in self._kinds:
                thread = threading.get_native_id()
                self._calls.extend((self._names[name], start, end, thread, number))
            if stack := getattr(self._thread, "external_ids", None):
                self._links.extend((number, stack[-1]))

    def push(self, external_id: int) -> None:
        """Link calls of this thread to the id from now on."""
        if not hasattr(self._thread, "external_ids"):
            self._thread.external_ids = []
        self._thread.external_ids.append(external_id)

    def pop(self) -> None:
        """Link them to the id again that was pushed before."""
        self._thread.external_ids.pop()

    def collect(self) -> Records:
        """Return what was recorded since the last call."""
        history = self._gpu.history
        done = history[self._n_seen :]
        self._n_seen += len(done)
        activities = array("q")
        for op in done:
            if op.correlation_id and "kernel" in self._kinds:
                self._add_kernels(activities, op)
        calls, links = self._calls, self._links
        self._calls, self._links = array("q"), array("q")
        return Records(
            activities=_table(ACTIVITY, _ACTIVITY_COLUMNS, activities),
            calls=_table(CALL, _CALL_COLUMNS, calls),
            ranges=no_records(RANGE),
            links=_table(LINK, _LINK_COLUMNS, links),
            names=self._names(),
        )

    def _add_kernels(self, activities: array[int], op: Operation) -> None:
        graph_id = op.correlation_id if op.name == "graph" else 0
        end = op.end_time
        for name, duration in zip(reversed(op.kernels), reversed(op.durations), strict=True):
            start = end - duration
            times = (round(start * 1e9), round(end * 1e9))
            place = (op.device, op.stream, op.stream == 0)
            activities.extend((self._names[name], *times, *place, op.correlation_id, graph_id))
            end = start - GRAPH_GAP

    def close(self) -> None:
        """Record nothing more."""
        self._gpu.source = None


_ACTIVITY_COLUMNS = (
    "name", "start", "end", "device", "stream", "is_null_stream", "correlation_id", "graph_id"
)  # fmt: skip
_CALL_COLUMNS = ("name", "start", "end", "thread", "correlation_id")
_LINK_COLUMNS = ("correlation_id", "external_id")


def _table(dtype: np.dtype[Any], columns: Sequence[str], flat: array[int]) -> RecordArray:
    """Make a table of numbers that stand one row behind the other."""
    rows = np.array(flat, np.int64).reshape(-1, len(columns))
    table = np.zeros(len(rows), dtype)
    for name, column in zip(columns, rows.T, strict=True):
        table[name] = column
    return table
