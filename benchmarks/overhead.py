"""What gpubench itself costs, against CuPy's benchmark where there is a GPU; prints ratios.

python benchmarks/overhead.py
"""

import statistics
import subprocess
import sys
import time

import gpubench
from gpubench.devices import current_platform


def import_ratio(n=15):
    """Time of `import gpubench` in a fresh interpreter over that of `import numpy`."""

    def once(module):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        return time.perf_counter() - begin

    pairs = [(once("gpubench"), once("numpy")) for _ in range(n)]
    return statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)


def range_cost(n=100_000):
    """Seconds that an empty `time_range` block takes."""
    block = gpubench.time_range("overhead")
    begin = time.perf_counter()
    for _ in range(n):
        with block:
            pass
    return (time.perf_counter() - begin) / n


def fixed_cost():
    """Seconds that `benchmark` of a function that does nothing takes beyond its samples."""
    return statistics.median(_timed_no_op() for _ in range(5))


def _timed_no_op():
    begin = time.perf_counter()
    gpubench.benchmark(lambda: None, n_repeat=1, n_warmup=1)
    return time.perf_counter() - begin


def against_cupyx(n=2000, n_rounds=5):
    """Compare with ``cupyx.profiler.benchmark`` on a short kernel, alternating."""
    import cupy as cp
    from cupyx.profiler import benchmark as cupyx_benchmark

    a = cp.random.default_rng(0).random(1000, dtype="f4")

    def theirs(n):
        begin = time.perf_counter()
        times = cupyx_benchmark(cp.sqrt, (a,), n_repeat=n, n_warmup=10).gpu_times[0]
        return times, (time.perf_counter() - begin) / n

    def ours(n):
        begin = time.perf_counter()
        result = gpubench.benchmark(cp.sqrt, (a,), n_repeat=n, n_warmup=10)
        return result.gpu_times[0], (time.perf_counter() - begin) / n

    theirs(10)
    ours(10)
    rounds = [(theirs(n), ours(n), theirs(500), ours(500)) for _ in range(n_rounds)]

    def middle(which, value):
        return statistics.median(value(r[which]) for r in rounds)

    def spread(run):
        return float(run[0].std() / run[0].mean())

    def median(run):
        return statistics.median(run[0].tolist())

    yield "relative std, one sample a gate / cupyx", middle(3, spread) / middle(2, spread)
    yield (
        "wall time a repeat, bursts / cupyx",
        middle(1, lambda r: r[1]) / middle(0, lambda r: r[1]),
    )
    yield "wall time a repeat, cupyx (us)", 1e6 * middle(0, lambda r: r[1])
    yield "wall time a repeat, bursts (us)", 1e6 * middle(1, lambda r: r[1])
    yield "wall time a repeat, one sample a gate (us)", 1e6 * middle(3, lambda r: r[1])
    yield "median, cupyx (us)", 1e6 * middle(0, median)
    yield "median, one sample a gate (us)", 1e6 * middle(3, median)
    yield "median, bursts - one sample a gate (us)", 1e6 * (middle(1, median) - middle(3, median))


def main():
    print(f"import gpubench / import numpy: {import_ratio():.3f}")
    print(f"an empty time_range (us): {1e6 * range_cost():.3f}")
    print(f"benchmark() of nothing, fixed cost (us): {1e6 * fixed_cost():.0f}")
    if current_platform().name != "cuda":
        print("no GPU: the ratios against cupyx.profiler were not measured")
        return
    for what, value in against_cupyx():
        print(f"{what}: {value:.3f}")


if __name__ == "__main__":
    main()
