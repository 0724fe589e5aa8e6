"""Joining kernels to configurations and regions, and reducing their counters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpubench.sweeps.counters.metrics import TIME, Reduction
from gpubench.sweeps.counters.parse import Kernel

Place = tuple[int, "str | None"]
"""The index of a configuration and the name of a region; None for the whole run."""


@dataclass(frozen=True)
class Joined:
    """Counters by where they were counted.

    Attributes
    ----------
    values : mapping of (int, str or None) to mapping of str to float
        By `Place`, then by metric.
    missing : mapping of str to str
        Metrics that lack a value somewhere: a kernel that has none.
    """

    values: Mapping[Place, Mapping[str, float]]
    missing: Mapping[str, str]


def join(
    kernels: Sequence[Kernel], regions: Sequence[str], reductions: Mapping[str, Reduction]
) -> Joined:
    """Join kernels to the places that they were launched in.

    A kernel counts for every region that was open, and for the whole run.

    Parameters
    ----------
    kernels : sequence of Kernel
        In the order of their launch.
    regions : sequence of str
        The regions' names, by their numbers.
    reductions : mapping of str to callable
        What is wanted, and how to reduce it.
    """
    places: defaultdict[Place, list[Kernel]] = defaultdict(list)
    missing: dict[str, str] = {}
    for kernel in kernels:
        for name in (None, *sorted(regions[number] for number in kernel.regions)):
            places[kernel.config, name].append(kernel)
        missing |= {name: kernel.name for name in reductions if name not in kernel.values}
    return Joined(
        {place: _reduced(inside, reductions) for place, inside in places.items()}, missing
    )


def _reduced(kernels: Sequence[Kernel], reductions: Mapping[str, Reduction]) -> dict[str, float]:
    """Reduce what all kernels have; a sum that lacks one would be wrong."""
    times = np.array([kernel.values.get(TIME, np.nan) for kernel in kernels])
    return {
        name: reduce(np.array([kernel.values[name] for kernel in kernels]), times)
        for name, reduce in reductions.items()
        if all(name in kernel.values for kernel in kernels)
    }
