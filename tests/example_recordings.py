"""Recordings made of round figures: times in microseconds from the beginning of the block."""

from typing import Any

import numpy as np

from gpubench.activity.recording import Recording
from gpubench.devices.records import (
    ACTIVITY,
    ACTIVITY_KINDS,
    CALL,
    CALL_KINDS,
    MEMORY_KINDS,
    RANGE,
)

BEGIN = 5_000_000_000
"""Nanoseconds of the clock at which recordings here begin."""

MAIN = 1001
"""The native id of the main thread."""


class Recorded:
    """Collects records; `recording` makes the value.

    >>> recorded = Recorded()
    >>> recorded.launch("sqrt", 0, 10, 5)
    1
    >>> recorded.recording(100).duration
    100000
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rows: dict[str, list[dict[str, Any]]] = {
            "activities": [], "calls": [], "ranges": [], "compilations": []
        }  # fmt: skip
        self._n_ids = 0

    def next_id(self) -> int:
        """Return a correlation id that is free."""
        self._n_ids += 1
        return self._n_ids

    def _name(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def _add(self, table: str, name: str, start: float, duration: float, **fields: Any) -> None:
        first = BEGIN + round(start * 1000)
        times = {"start": first, "end": first + round(duration * 1000)}
        self.rows[table].append({"name": self._name(name), **times, **fields})

    def activity(
        self, kind: str, name: str, start: float, duration: float, *,
        device: int = 0, stream: int = 7, source: str = "", target: str = "", **fields: Any,
    ) -> None:  # fmt: skip
        """Add what a device did: kind is "kernel", "memcpy" or "memset"."""
        self._add(
            "activities", name, start, duration, kind=ACTIVITY_KINDS.index(kind), device=device,
            stream=stream, source_memory=MEMORY_KINDS.index(source),
            target_memory=MEMORY_KINDS.index(target), **fields,
        )  # fmt: skip

    def call(
        self, name: str, start: float, duration: float, *,
        thread: int = MAIN, kind: str = "runtime", **fields: Any,
    ) -> None:  # fmt: skip
        """Add a call of CUDA's API."""
        kind_index = CALL_KINDS.index(kind)
        self._add("calls", name, start, duration, kind=kind_index, thread=thread, **fields)

    def launch(
        self, kernel: str, at: float, start: float, duration: float, *,
        call: float = 4, thread: int = MAIN, **fields: Any,
    ) -> int:  # fmt: skip
        """Add a launch of `call` us at `at` and the kernel; return their correlation id."""
        number = self.next_id()
        self.call("cudaLaunchKernel", at, call, thread=thread, correlation_id=number)
        self.activity("kernel", kernel, start, duration, correlation_id=number, **fields)
        return number

    def copy(
        self, at: float, start: float, duration: float, n_bytes: int, *,
        direction: str = "HtoD", source: str = "pinned", target: str = "device",
        is_async: bool = True, call: float = 4, thread: int = MAIN, **fields: Any,
    ) -> int:  # fmt: skip
        """Add a copy and the call that asked for it; return their correlation id."""
        number = self.next_id()
        name = "cudaMemcpyAsync" if is_async else "cudaMemcpy"
        self.call(name, at, call, thread=thread, correlation_id=number)
        self.activity(
            "memcpy", f"memcpy {direction}", start, duration, correlation_id=number,
            bytes=n_bytes, is_async=is_async, source=source, target=target, **fields,
        )  # fmt: skip
        return number

    def range(
        self, name: str, start: float, duration: float, *,
        domain: str = "gpubench", thread: int = MAIN,
    ) -> None:  # fmt: skip
        """Add a range of a host thread; of no duration, a mark."""
        self._add("ranges", name, start, duration, domain=self._name(domain), thread=thread)

    def compilation(
        self, name: str, start: float, duration: float, *, source: str = "nvrtc", thread: int = MAIN
    ) -> None:
        """Add what CuPy compiled."""
        self._add("compilations", name, start, duration, domain=self._name(source), thread=thread)

    def recording(self, duration: float, **fields: Any) -> Recording:
        """Make the recording of a block that took `duration` microseconds."""
        return Recording(
            begin=BEGIN,
            end=BEGIN + round(duration * 1000),
            kinds=("kernel", "memcpy", "memset", "runtime", "driver", "range", "compilation"),
            activities=_table(ACTIVITY, self.rows["activities"]),
            calls=_table(CALL, self.rows["calls"]),
            ranges=_table(RANGE, self.rows["ranges"]),
            compilations=_table(RANGE, self.rows["compilations"]),
            names=tuple(self.names),
            **{"devices": {0: "a GPU"}, "threads": {MAIN: "MainThread"}, **fields},
        )


def _table(dtype: np.dtype, rows: list[dict[str, Any]]) -> np.ndarray:
    table = np.zeros(len(rows), dtype)
    for row, fields in zip(table, rows, strict=True):
        for key, value in fields.items():
            row[key] = value
    return table[np.lexsort((-table["end"], table["start"]))]
