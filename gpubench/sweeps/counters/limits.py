"""What limits a region: the rule of Nsight Compute's Speed-of-Light section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from gpubench.sweeps.counters.metrics import COMPUTE_THROUGHPUT, MEMORY_THROUGHPUT

Limit = Literal["compute", "memory", "latency"]

LATENCY_BELOW = 60.0
"""Percent of the peak: if neither throughput reaches it, the GPU mostly waits."""


def limited_by(counters: Mapping[str, float]) -> Limit | None:
    """Say what limits a region: its arithmetic, its memory traffic, or waiting.

    Parameters
    ----------
    counters : mapping of str to float
        A region's counters, as each of the named sets collects them:
        ``sm__throughput.avg.pct_of_peak_sustained_elapsed`` and
        ``gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed``, in percent.

    Returns
    -------
    {"compute", "memory", "latency"} or None
        The larger of the two; ``"latency"`` if both are below `LATENCY_BELOW`; None if one of
        them is missing.

    Notes
    -----
    Source: the rule and its threshold are those of the section "GPU Speed Of Light Throughput"
    (SpeedOfLight.py, "Latency Issue") that comes with Nsight Compute; for a grid too small to
    fill the GPU, a cause of latency, it has words of its own.

    Examples
    --------
    >>> limited_by(
    ...     {
    ...         "sm__throughput.avg.pct_of_peak_sustained_elapsed": 31.0,
    ...         "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 91.0,
    ...     }
    ... )
    'memory'
    """
    compute = counters.get(COMPUTE_THROUGHPUT)
    memory = counters.get(MEMORY_THROUGHPUT)
    if compute is None or memory is None:
        return None
    if max(compute, memory) < LATENCY_BELOW:
        return "latency"
    return "compute" if compute >= memory else "memory"
