"""``track_*``, ``peakmem_*`` and ``mem_*``: a single value that isn't a time."""

from __future__ import annotations

import copy
import sys
from importlib import import_module
from pathlib import Path

from gpubench.arguments import finite_number
from gpubench.errors import UnsupportedError
from gpubench.suites.execution import Execution, Reading


def returned_value(execution: Execution) -> Reading:
    """Return what the benchmark returns, in its ``unit``.

    Raises
    ------
    ArgumentError
        If that is no finite number.
    """
    value = finite_number("what it returns", execution.call())  # type: ignore[arg-type]
    return Reading(value=value, unit=str(execution.get("unit", "unit")))


def peak_bytes(execution: Execution) -> Reading:
    """Return the most memory of the host that this process had by the end of a call."""
    execution.call()
    return Reading(value=float(_peak_rss()), unit="bytes")


def copied_bytes(execution: Execution) -> Reading:
    """Return by how much a copy of what the benchmark returns adds to its size, as asv does.

    Raises
    ------
    UnsupportedError
        If pympler, which can tell, isn't installed.
    """
    try:
        asizeof = import_module("pympler.asizeof").asizeof
    except ImportError:
        raise UnsupportedError("mem_* needs the package 'pympler': pip install pympler") from None
    made = execution.call()
    return Reading(value=asizeof([made, copy.copy(made)]) - asizeof([made, made]), unit="bytes")


def _peak_rss() -> int:
    # Not getrusage() first: on Linux it remembers the parent's memory from before the exec.
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        raise UnsupportedError("the system doesn't tell a process's peak memory") from None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
