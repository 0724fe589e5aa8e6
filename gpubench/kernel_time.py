"""What one kernel took in the calls of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelTime:
    """What one kernel took in the calls of a benchmark.

    Attributes
    ----------
    name : str
        As in the source.
    calls : float
        How often one call of the function ran it, on average.
    median_time : float
        Seconds of one run, the median over all runs on all devices.
    """

    name: str
    calls: float
    median_time: float
