"""Names of records, kept once each."""

from __future__ import annotations

import threading


class NameTable:
    """Strings, each with an index; threads may share one."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> int:
        index = self._indices.get(name)
        if index is None:
            with self._lock:
                index = self._indices.setdefault(name, len(self._indices))
        return index

    def __call__(self) -> tuple[str, ...]:
        """All of them, in the order of their indices."""
        with self._lock:
            return tuple(self._indices)
