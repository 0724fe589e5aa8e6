"""The metrics of Nsight Compute: sets of them by name, and what several kernels' values make.

A metric's name is ``unit__counter.rollup.submetric``, for example
``sm__throughput.avg.pct_of_peak_sustained_elapsed``; some have fewer parts. Source: the chapter
"Metrics Structure" of NVIDIA's Kernel Profiling Guide
(https://docs.nvidia.com/nsight-compute/ProfilingGuide/).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from gpubench.arguments import callable_name
from gpubench.errors import ArgumentError
from gpubench.stats import FloatArray

UserReduction = Callable[[FloatArray], float]
"""Makes one value of those of a region's kernels, which come in the order of their launch."""

Reduction = Callable[[FloatArray, FloatArray], float]
"""The same, with the kernels' times as the second argument."""

TIME = "gpu__time_duration.sum"
"""The time of a kernel, in nanoseconds."""

COMPUTE_THROUGHPUT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_THROUGHPUT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"

# The two throughputs and the time are in ncu's section "GPU Speed Of Light Throughput"; the names
# of the other metrics are in its sections Memory and Compute Workload Analysis, Occupancy and
# Roofline. All of them exist from Volta to Hopper (ncu --query-metrics --chips).
METRIC_SETS: Mapping[str, tuple[str, ...]] = {
    "memory": (
        COMPUTE_THROUGHPUT,
        MEMORY_THROUGHPUT,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "lts__t_bytes.sum",
        "lts__t_sector_hit_rate.pct",
        "l1tex__t_bytes.sum",
        "l1tex__t_sector_hit_rate.pct",
    ),
    "compute": (
        COMPUTE_THROUGHPUT,
        MEMORY_THROUGHPUT,
        "sm__inst_executed.sum",
        "sm__inst_executed.avg.per_cycle_active",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    ),
    "roofline": (
        COMPUTE_THROUGHPUT,
        MEMORY_THROUGHPUT,
        "dram__bytes.sum",
        *(
            f"smsp__sass_thread_inst_executed_op_{kind}{operation}_pred_on.sum"
            for kind in "hfd"
            for operation in ("add", "mul", "fma")
        ),
        "sm__inst_executed_pipe_tensor.sum",
    ),
}
"""Metrics by what they are for: each set tells what limits a region, too."""

_NAME = re.compile(r"\w+(\.\w+)*", re.ASCII)


def metric_names(metrics: str | Iterable[str]) -> tuple[str, ...]:
    """Return the metrics that were asked for, without repeats.

    Parameters
    ----------
    metrics : str or iterable of str
        Names of metrics and of `METRIC_SETS`. Whether a metric exists is ncu's to say.

    Returns
    -------
    tuple of str
        In the order given.

    Raises
    ------
    ArgumentError
        If there is none, or one that can't be a metric's name.
    """
    wanted = (metrics,) if isinstance(metrics, str) else metrics
    try:
        wanted = list(wanted)
    except TypeError:
        raise ArgumentError(f"counters must be a list of metrics, got {metrics!r}") from None
    names: dict[str, None] = {}
    for name in wanted:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            sets = ", ".join(map(repr, METRIC_SETS))
            raise ArgumentError(
                "counters must hold names of single metrics, such as 'dram__bytes_read.sum', or "
                f"of sets ({sets}); got {name!r}"
            )
        if "__" not in name and name not in METRIC_SETS:
            sets = ", ".join(map(repr, METRIC_SETS))
            raise ArgumentError(f"counters: {name!r} is neither a metric nor a set ({sets})")
        names.update(dict.fromkeys(METRIC_SETS.get(name, (name,))))
    if not names:
        raise ArgumentError("counters must name at least one metric, got none")
    return tuple(names)


def reductions(
    metrics: Iterable[str], reduce: UserReduction | Mapping[str, UserReduction] | None
) -> dict[str, Reduction]:
    """Return how each metric's values are reduced.

    Parameters
    ----------
    metrics : iterable of str
        Names of metrics.
    reduce : callable or mapping of str to callable, optional
        What to reduce all of them by, or some; the others go by `reduction`.

    Raises
    ------
    ArgumentError
        If `reduce` is neither, or names a metric that isn't collected.
    """
    names = list(metrics)
    own = reduce if isinstance(reduce, Mapping) else dict.fromkeys(names, reduce)
    for name, function in own.items():
        if name not in names:
            raise ArgumentError(f"reduce names {name!r}, which is not among the counters")
        if function is not None and not callable(function):
            raise ArgumentError(f"reduce must be a function of an array, got {function!r}")
    return {
        name: reduction(name) if (function := own.get(name)) is None else _by_user(function)
        for name in names
    }


def reduction(metric: str) -> Reduction:
    """Return how the values of several kernels make one, as the metric's name demands.

    What ends in ``.sum``, ``.max`` or ``.min`` is added, or the largest or smallest counts; what
    ends in ``.avg``, a mean over the GPU's units, becomes the mean over the kernels. Everything
    else (percentages, rates, ratios) becomes their mean weighted by the kernels' times.
    """
    return _BY_LAST_PART.get(metric.rpartition(".")[2], _weighted_mean)


def _weighted_mean(values: FloatArray, times: FloatArray) -> float:
    known = np.isfinite(times).all() and times.sum() > 0
    return float(np.average(values, weights=times if known else None))


_BY_LAST_PART: Mapping[str, Reduction] = {
    "sum": lambda values, _: float(values.sum()),
    "max": lambda values, _: float(values.max()),
    "min": lambda values, _: float(values.min()),
    "avg": lambda values, _: float(values.mean()),
}


def _by_user(function: UserReduction) -> Reduction:
    def reduced(values: FloatArray, _: FloatArray) -> float:
        value = function(values.copy())
        try:
            return float(value)
        except (TypeError, ValueError):
            name = callable_name(function)
            raise ArgumentError(f"reduce={name} must return a number, returned {value!r}") from None

    return reduced
