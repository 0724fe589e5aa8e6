"""Results to render, made of round figures."""

from typing import Any

import numpy as np

from gpubench.result import BenchmarkResult


def make_result(
    cpu_us: Any = (5.0, 6.0, 7.0), gpu_us: Any = ((8.0, 10.0, 12.0),), **changes: Any
) -> BenchmarkResult:
    """Return a result with these times in microseconds, and with the other fields as given."""
    n = len(cpu_us)
    fields: dict[str, Any] = {
        "name": "f",
        "cpu_times": np.asarray(cpu_us, dtype=float) * 1e-6,
        "gpu_times": np.asarray(gpu_us, dtype=float).reshape(-1, n) * 1e-6,
        "busy_times": np.empty((0, n)),
        "kernels": (),
        "devices": tuple(range(len(gpu_us))),
        "method": "gated",
        "cache": "warm",
        "samples_per_gate": 1,
        "floor": None,
        "clock_step": None,
        "n_warmup": 10,
        "first_call_time": None,
        "first_call_compile_time": None,
        "compilations": (),
        "stopped_by": "n_repeat",
        "notes": (),
        "environment": {},
    }
    return BenchmarkResult(**{**fields, **changes})
