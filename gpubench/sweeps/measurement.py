"""What a sweep measured: one value for each region in each configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpubench.result import BenchmarkResult

Status = Literal["ok", "failed", "interrupted"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """One region in one configuration, or the configuration that failed.

    Attributes
    ----------
    config : mapping of str to object
        The function's arguments, by their parameters' names.
    region : str
        The region's name; the function's, if it has no regions or failed.
    status : {"ok", "failed", "interrupted"}
        Failed: the function raised. Interrupted: Ctrl-C came before all samples were there.
    error : str
        What it raised, in one line; empty if nothing.
    result : BenchmarkResult or None
        The times, one sample for each run of the function: the sum over the region's entries.
        None if there is no sample.
    entries : float
        How often a run entered the region, on average.
    throttled : ndarray of bool, shape (n,)
        Which samples were taken while the GPU was slowed down.
    n_discarded : int
        How many such samples were thrown away and taken anew.
    collected : mapping of str to ndarray
        Values of the collectors that gave numbers, one for each time that they were asked; NaN
        where one failed.
    labels : mapping of str to str
        Values of the collectors that gave text: the last.
    counters : mapping of str to float
        Hardware counters by their metric, for one run of the function.
    units : mapping of str to str
        What collectors' values and counters are in, by their names, where that is known.
    """

    config: Mapping[str, object]
    region: str
    status: Status = "ok"
    error: str = ""
    result: BenchmarkResult | None = None
    entries: float = 1.0
    throttled: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    n_discarded: int = 0
    collected: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
