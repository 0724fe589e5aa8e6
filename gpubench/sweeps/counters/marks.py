"""How configurations and regions are marked for Nsight Compute, and read back from a report.

While a configuration is counted, two NVTX process ranges are open: one that the kernels are
filtered by, and one that says which configuration it is. Unlike ranges that nest, they hold for
all threads of the process. A region is a range of the thread that is in it. All of them have
numbers for names, in a domain of their own: whatever regions are called, and whatever other
ranges the function opens, a report is read without guessing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from gpubench.devices.names import NameTable
from gpubench.ranges import recording
from gpubench.ranges.backends import Annotation
from gpubench.ranges.label import Label

DOMAIN = "gpubench-counters"

_COUNTED = "counted"

FILTER = f"{DOMAIN}@{_COUNTED}"
"""What ``--nvtx-include`` is told: in a process range of that name, as no ``/`` follows it."""

_MARK = re.compile(r"\b(configuration|region) (\d+)\b")


@contextmanager
def counted(index: int) -> Iterator[None]:
    """Let the kernels that are launched in the block count for a configuration."""
    ranges = [_range(f"configuration {index}"), _range(_COUNTED)]
    ids = [each.start() for each in ranges]
    try:
        yield
    finally:
        for each, range_id in zip(reversed(ranges), reversed(ids), strict=True):
            each.end(range_id)


class RegionMarks:
    """The `RegionClock` that takes no time, but marks the regions.

    Attributes
    ----------
    names : NameTable
        The regions' names, by their numbers.
    """

    def __init__(self) -> None:
        self.names = NameTable()
        self._thread = threading.local()

    def enter(self, name: str, outer: tuple[Annotation, ...]) -> Annotation:
        """Open a region's range."""
        mark = _range(f"region {self.names[name]}")
        mark.push()
        self._thread.open = [*outer, mark]
        return mark

    def leave(self, entry: Annotation) -> None:
        """Close a region's range; those that were opened in it since open anew."""
        opened: list[Annotation] = self._thread.open
        place = next(i for i, mark in enumerate(opened) if mark is entry)
        for mark in opened[place:]:
            mark.pop()
        del opened[place]
        for mark in opened[place:]:
            mark.push()


def read_marks(ranges: Iterable[str]) -> tuple[int | None, frozenset[int]]:
    """Return the configuration and the regions in which a kernel was launched.

    Parameters
    ----------
    ranges : iterable of str
        Texts with the names of the ranges of `DOMAIN` that were open.

    Returns
    -------
    configuration : int or None
        Its index; None if none was being counted.
    regions : frozenset of int
        Numbers of the regions.
    """
    configuration = None
    regions = set()
    for text in ranges:
        for kind, number in _MARK.findall(text):
            if kind == "region":
                regions.add(int(number))
            else:
                configuration = int(number)
    return configuration, frozenset(regions)


def _range(name: str) -> Annotation:
    return recording.annotate(Label(name, None, DOMAIN, None, None))
