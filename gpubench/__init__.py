"""GPU benchmarks whose numbers are right: short kernels, any stream, any framework.

>>> import gpubench
>>> print(gpubench.benchmark(sum, ([1, 2, 3],), n_repeat=100))  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpubench.accelerator import Accelerators, accelerators, use_accelerators
    from gpubench.activity.recorder import record_activity
    from gpubench.activity.scope.scoped_timer import ScopedTimer
    from gpubench.activity.scope.timing import (
        TIMING_ALL,
        TIMING_GRAPH,
        TIMING_KERNEL,
        TIMING_KERNEL_BUILTIN,
        TIMING_MEMCPY,
        TIMING_MEMSET,
        TimingResult,
        timing_begin,
        timing_end,
        timing_print,
    )
    from gpubench.activity.trace import Trace
    from gpubench.cache import KernelCache, kernel_cache
    from gpubench.comparison import (
        Comparison,
        RunComparison,
        compare,
        compare_accelerators,
        compare_runs,
    )
    from gpubench.compilation import CompilationLog, watch_compilations
    from gpubench.cutensor import preload_cutensor
    from gpubench.devices.simulated import simulated_gpu
    from gpubench.errors import (
        ArgumentError,
        GpubenchError,
        MissingExtraError,
        UnsupportedError,
    )
    from gpubench.measure import benchmark
    from gpubench.notes import Note
    from gpubench.ranges import mark, profile, time_range
    from gpubench.render.table import table
    from gpubench.result import BenchmarkResult
    from gpubench.startup import ColdStart, cold_start
    from gpubench.stats import Statistics
    from gpubench.storage import Record, SavedResults, load, save
    from gpubench.suites.run import run_suite
    from gpubench.sweeps.collectors import collect
    from gpubench.sweeps.configurations import product
    from gpubench.sweeps.decorator import sweep
    from gpubench.sweeps.outcome import SweepResult
    from gpubench.sweeps.regions import annotate
    from gpubench.sweeps.roofline import Peaks
    from gpubench.sweeps.thermal import ThermalPolicy

__version__ = "0.1.0"

_HOMES = {
    "Accelerators": "accelerator",
    "ArgumentError": "errors",
    "BenchmarkResult": "result",
    "ColdStart": "startup",
    "Comparison": "comparison",
    "CompilationLog": "compilation",
    "GpubenchError": "errors",
    "KernelCache": "cache",
    "MissingExtraError": "errors",
    "Note": "notes",
    "Peaks": "sweeps.roofline",
    "Record": "storage",
    "RunComparison": "comparison",
    "SavedResults": "storage",
    "ScopedTimer": "activity.scope.scoped_timer",
    "Statistics": "stats",
    "SweepResult": "sweeps.outcome",
    "TIMING_ALL": "activity.scope.timing",
    "TIMING_GRAPH": "activity.scope.timing",
    "TIMING_KERNEL": "activity.scope.timing",
    "TIMING_KERNEL_BUILTIN": "activity.scope.timing",
    "TIMING_MEMCPY": "activity.scope.timing",
    "TIMING_MEMSET": "activity.scope.timing",
    "ThermalPolicy": "sweeps.thermal",
    "TimingResult": "activity.scope.timing",
    "Trace": "activity.trace",
    "UnsupportedError": "errors",
    "accelerators": "accelerator",
    "annotate": "sweeps.regions",
    "benchmark": "measure",
    "cold_start": "startup",
    "collect": "sweeps.collectors",
    "compare": "comparison",
    "compare_accelerators": "comparison",
    "compare_runs": "comparison",
    "kernel_cache": "cache",
    "load": "storage",
    "load_ipython_extension": "integrations.ipython",
    "mark": "ranges",
    "preload_cutensor": "cutensor",
    "product": "sweeps.configurations",
    "profile": "ranges",
    "record_activity": "activity.recorder",
    "run_suite": "suites.run",
    "save": "storage",
    "simulated_gpu": "devices.simulated",
    "sweep": "sweeps.decorator",
    "table": "render.table",
    "time_range": "ranges",
    "timing_begin": "activity.scope.timing",
    "timing_end": "activity.scope.timing",
    "timing_print": "activity.scope.timing",
    "unload_ipython_extension": "integrations.ipython",
    "use_accelerators": "accelerator",
    "watch_compilations": "compilation",
}

__all__ = [
    "TIMING_ALL",
    "TIMING_GRAPH",
    "TIMING_KERNEL",
    "TIMING_KERNEL_BUILTIN",
    "TIMING_MEMCPY",
    "TIMING_MEMSET",
    "Accelerators",
    "ArgumentError",
    "BenchmarkResult",
    "ColdStart",
    "Comparison",
    "CompilationLog",
    "GpubenchError",
    "KernelCache",
    "MissingExtraError",
    "Note",
    "Peaks",
    "Record",
    "RunComparison",
    "SavedResults",
    "ScopedTimer",
    "Statistics",
    "SweepResult",
    "ThermalPolicy",
    "TimingResult",
    "Trace",
    "UnsupportedError",
    "accelerators",
    "annotate",
    "benchmark",
    "cold_start",
    "collect",
    "compare",
    "compare_accelerators",
    "compare_runs",
    "kernel_cache",
    "load",
    "mark",
    "preload_cutensor",
    "product",
    "profile",
    "record_activity",
    "run_suite",
    "save",
    "simulated_gpu",
    "sweep",
    "table",
    "time_range",
    "timing_begin",
    "timing_end",
    "timing_print",
    "use_accelerators",
    "watch_compilations",
]


def __getattr__(name: str) -> object:
    """Import a public name from its module at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_HOMES, *(name for name in globals() if name.startswith("__"))])
