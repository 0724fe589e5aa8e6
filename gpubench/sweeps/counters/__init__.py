"""Hardware counters of a sweep's regions, read by NVIDIA's Nsight Compute (``ncu``)."""

from gpubench.sweeps.counters.collect import CounterReport, collect_counters, report_path
from gpubench.sweeps.counters.limits import limited_by
from gpubench.sweeps.counters.metrics import metric_names, reductions

__all__ = [
    "CounterReport",
    "collect_counters",
    "limited_by",
    "metric_names",
    "reductions",
    "report_path",
]
