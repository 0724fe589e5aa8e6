"""The memory of a simulated device, as far as it takes time: buffers, and the L2 cache."""

from __future__ import annotations

import threading
from dataclasses import dataclass

MEMORY_BANDWIDTH = 4.5e12
"""Bytes a second that are read from memory, about those of an H200."""

L2_BANDWIDTH = 8.7e12
"""Bytes a second that are read from the L2 cache, likewise."""

START_TIME = 1.5e-6
"""Seconds until a kernel that reads is up to speed, likewise."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """Some memory; nothing is in it.

    Attributes
    ----------
    n_bytes : int
        Its size.
    """

    n_bytes: int


class L2Cache:
    """A cache that evicts what was read longest ago.

    Buffers are read from their beginning to their end. So one that is larger than the cache is
    never found there: by its end, its beginning has been evicted.
    """

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes = n_bytes
        self._held: dict[Buffer, int] = {}  # bytes of each, what was read longest ago first
        self._lock = threading.Lock()  # each stream has a thread of its own

    def read(self, buffer: Buffer) -> float:
        """Read a whole buffer, and return the seconds that it takes."""
        with self._lock:
            hit = self._held.pop(buffer, 0)
            if buffer.n_bytes > self._n_bytes:
                hit = 0
            self._make_room(min(buffer.n_bytes, self._n_bytes))
            self._held[buffer] = min(buffer.n_bytes, self._n_bytes)
        return START_TIME + hit / L2_BANDWIDTH + (buffer.n_bytes - hit) / MEMORY_BANDWIDTH

    def _make_room(self, n_bytes: int) -> None:
        excess = sum(self._held.values()) + n_bytes - self._n_bytes
        for buffer in list(self._held):
            if excess <= 0:
                return
            evicted = min(excess, self._held[buffer])
            excess -= evicted
            self._held[buffer] -= evicted
            if not self._held[buffer]:
                del self._held[buffer]
