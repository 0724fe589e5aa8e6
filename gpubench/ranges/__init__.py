"""Ranges and marks on a profiler's timeline, and the switch of the profiler itself."""

from gpubench.ranges.annotation import mark, time_range
from gpubench.ranges.backends import Backend, backend
from gpubench.ranges.profiler import profile

__all__ = ["Backend", "backend", "mark", "profile", "time_range"]
