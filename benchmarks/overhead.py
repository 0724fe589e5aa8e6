"""What gpubench itself costs: beside NumPy, the standard library, NVTX and CuPy's benchmark.

    python benchmarks/overhead.py

Prints seconds, and ratios to something that does about the same. `host_ratios` needs no GPU; the
tests hold it against `LIMITS`.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import gpubench
from gpubench.comparison.judgement import N_RESAMPLES, judge, resample_pairs
from gpubench.devices import current_platform
from gpubench.stats import summarize

LIMITS = {
    "import gpubench / import numpy": 0.5,
    "a time_range / a context manager of contextlib": 3.0,
    "statistics of 1e6 samples / sorting them": 12.0,
    "a verdict on 30 blocks / resampling them one by one": 0.5,
    "listing a cache of 5,000 entries / asking for the size of each": 15.0,
}
"""What the ratios of `host_ratios` must stay below, with room for a busy machine."""


def least(work, n):
    """Seconds of the fastest of several calls."""
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def import_ratio(n=9):
    """Time of `import gpubench` in a fresh interpreter over that of `import numpy`."""

    def once(module):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        return time.perf_counter() - begin

    pairs = [(once("gpubench"), once("numpy")) for _ in range(n)]
    return min(a for a, _ in pairs) / min(b for _, b in pairs)


def entering(block, n=20_000):
    """Seconds that entering and leaving a block takes."""

    def loop():
        for _ in range(n):
            with block():
                pass

    return least(loop, 5) / n


def range_cost():
    """Seconds that an empty `time_range` block takes."""
    block = gpubench.time_range("overhead")
    return entering(lambda: block)


@contextlib.contextmanager
def _nothing():
    yield


def statistics_cost(n=10**6):
    """Seconds that the statistics of `n` samples take, and sorting them."""
    samples = np.random.default_rng(0).random(n)
    return least(lambda: summarize(samples), 3), least(lambda: np.sort(samples), 3)


def verdict_cost(n_blocks=30):
    """Seconds that a verdict takes, and as many resamples made one by one."""
    rng = np.random.default_rng(0)
    blocks = 1 + 0.01 * rng.random((2, n_blocks))

    def resample():
        chosen = rng.integers(0, n_blocks, (N_RESAMPLES, n_blocks))
        np.median(np.log(blocks[1] / blocks[0])[chosen], axis=1)

    return least(lambda: judge([resample_pairs(*blocks, rng)], 0.01), 3), least(resample, 3)


def listing_cost(n=5000):
    """Seconds that listing a cache takes, and asking the system about each of its files."""
    with tempfile.TemporaryDirectory() as folder:
        for i in range(n):
            Path(folder, f"{i:040x}.cubin").write_bytes(b"0" * 40)

        def ask():
            with os.scandir(folder) as entries:
                sum(entry.stat().st_size for entry in entries)

        return least(lambda: gpubench.kernel_cache(folder), 3), least(ask, 3)


def host_ratios():
    """Yield what each thing costs in units of something like it, by name."""
    yield "import gpubench / import numpy", import_ratio()
    yield "a time_range / a context manager of contextlib", range_cost() / entering(_nothing)
    for name, cost in (
        ("statistics of 1e6 samples / sorting them", statistics_cost),
        ("a verdict on 30 blocks / resampling them one by one", verdict_cost),
        ("listing a cache of 5,000 entries / asking for the size of each", listing_cost),
    ):
        ours, theirs = cost()
        yield name, ours / theirs


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
    print(f"an empty time_range (us): {1e6 * range_cost():.3f}")
    print(f"benchmark() of nothing, fixed cost (us): {1e6 * fixed_cost():.0f}")
    print(f"statistics of 1e6 samples (s): {statistics_cost()[0]:.3f}")
    print(f"a verdict on 30 blocks (ms): {1e3 * verdict_cost()[0]:.2f}")
    print(f"listing a cache of 5,000 entries (ms): {1e3 * listing_cost()[0]:.1f}")
    for what, value in host_ratios():
        print(f"{what}: {value:.3f} (limit {LIMITS[what]})")
    if current_platform().name != "cuda":
        print("no GPU: the ratios against cupyx.profiler and the rate of records were not measured")
        return
    for what, value in against_cupyx():
        print(f"{what}: {value:.3f}")
    from records import KINDS, recorded

    for name, kinds in KINDS.items():
        recorded(kinds, 1000)
        print(f"records of {name}: {recorded(kinds, 50_000)['kernels/s']:,.0f} kernels/s")


if __name__ == "__main__":
    main()
