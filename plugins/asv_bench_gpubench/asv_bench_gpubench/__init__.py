"""GPU benchmarks for asv: ``gputime_*`` and ``GpuTime*``, and a clock for its own ``time_*``.

asv finds this package by its distribution's name, and the benchmarks' type in `benchmarks`.
"""

from asv_bench_gpubench.clock import SynchronizedClock

__all__ = ["SynchronizedClock"]
