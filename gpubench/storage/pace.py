"""How often to save while something is measured, which saving disturbs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_MAX_SHARE = 0.05
"""Share of a run's time that may go into saving."""


class Pace:
    """Tells when to save again, such that saving takes little of a run's time."""

    def __init__(self) -> None:
        self._due = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the time for it has come; at first it has."""
        return time.perf_counter() >= self._due

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Save inside the block: the longer it takes, the later it is due again."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            end = time.perf_counter()
            self._due = end + (end - begin) / _MAX_SHARE
