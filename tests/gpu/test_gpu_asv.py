"""The plugin for asv on a real GPU."""

import pathlib
import time
from types import SimpleNamespace

import numpy as np
import pytest

from gpubench import benchmark

cp = pytest.importorskip("cupy")
pytest.importorskip("asv_runner.benchmarks")

PLUGIN = pathlib.Path(__file__).parents[2] / "plugins" / "asv_bench_gpubench"


def bench(monkeypatch, func, **attributes):
    monkeypatch.syspath_prepend(PLUGIN)
    from asv_bench_gpubench.benchmarks.gputime import GpuTimeBenchmark

    return GpuTimeBenchmark("b.gputime_f", func, [SimpleNamespace(**attributes)]).run()


def test_samples_are_what_benchmark_measures(monkeypatch):
    a = cp.ones(10**7, dtype="float32")
    result = bench(monkeypatch, lambda: cp.sqrt(a))
    expected = benchmark(cp.sqrt, (a,), n_repeat=100).gpu[0].median
    assert len(result["samples"]) == 100
    assert np.median(result["samples"]) == pytest.approx(expected, rel=0.05)


def test_a_loop_count_is_applied_once(monkeypatch):
    a = cp.ones(10**7, dtype="float32")
    single = bench(monkeypatch, lambda: cp.sqrt(a))
    several = bench(monkeypatch, lambda: cp.sqrt(a), number=5)
    medians = [np.median(result["samples"]) for result in (single, several)]
    assert medians[1] == pytest.approx(medians[0], rel=0.1)


def test_the_clock_waits_for_what_was_queued(monkeypatch):
    monkeypatch.syspath_prepend(PLUGIN)
    from asv_bench_gpubench import SynchronizedClock

    clock = SynchronizedClock()
    a = cp.ones((4096, 4096), dtype="float32")
    a @ a
    begin = clock()
    for _ in range(50):
        a @ a
    queued = time.perf_counter() - begin
    taken = clock() - begin
    assert taken > 5 * queued
