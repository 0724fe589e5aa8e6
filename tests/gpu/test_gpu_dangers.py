"""Calls that could block a GPU held by a gate, and whatever else must end normally."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from gpubench import benchmark

cp = pytest.importorskip("cupy")
work = pytest.importorskip("work")


def codes(result):
    return {note.code for note in result.notes}


@pytest.fixture(autouse=True)
def _gpu_stays_usable():
    begin = time.perf_counter()
    yield
    cp.cuda.Device().synchronize()
    assert int(cp.arange(10).sum()) == 45
    assert time.perf_counter() - begin < 60


def test_synchronizing_call():
    def wait():
        work.spin(100e-6)
        cp.cuda.Device().synchronize()

    result = benchmark(wait, n_repeat=20)
    assert result.method == "events"
    assert "waits-inside" in codes(result)
    assert 98e-6 < result.gpu[0].median < 200e-6


def test_call_that_fetches_a_value():
    a = cp.ones(1000)
    result = benchmark(lambda: float(a.sum()), n_repeat=20)
    assert "waits-inside" in codes(result)


def test_call_that_synchronizes_sometimes():
    n_calls = 0

    def sometimes():
        nonlocal n_calls
        n_calls += 1
        work.spin(10e-6)
        if n_calls % 7 == 0:
            cp.cuda.Device().synchronize()

    result = benchmark(sometimes, n_repeat=100)
    assert result.cpu_times.size == 100
    assert codes(result) & {"waits-inside", "expired-gate"}


@pytest.mark.parametrize("n", [2000, 5000])
def test_many_launches(n):
    result = benchmark(work.many_launches, (n,), n_repeat=10)
    assert result.cpu_times.size == 10
    assert result.gpu[0].median > n * 0.5e-6


def test_as_many_launches_as_fit():
    result = benchmark(work.many_launches, (900,), n_repeat=10)
    assert result.method == "gated"


@pytest.mark.parametrize("method", ["gated", "graph", "events", "host"])
@pytest.mark.parametrize("good_calls", [0, 3, 12])
def test_raising_call(method, good_calls):
    left = good_calls

    def fail():
        nonlocal left
        work.spin(100e-6)
        left -= 1
        if left < 0:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        benchmark(fail, n_repeat=50, method=method)


def test_ctrl_c_keeps_what_was_measured():
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = benchmark(work.spin, (1e-3,), n_repeat=10**6)
    timer.join()
    assert result.interrupted
    assert result.cpu_times.size > 100


def test_max_duration_counts_the_gpus_time():
    a = cp.ones((4096, 4096), "f4")
    cp.matmul(a, a)
    begin = time.perf_counter()
    result = benchmark(cp.matmul, (a, a), n_repeat=10**6, max_duration=0.5)
    assert 0.4 < time.perf_counter() - begin < 1.0
    assert result.stopped_by == "max_duration"


def test_flushes_count_too():
    a = cp.zeros(10**6, "f4")
    begin = time.perf_counter()
    benchmark(a.copy, n_repeat=10**6, cache="cold", max_duration=0.2)
    assert time.perf_counter() - begin < 0.5


SCRIPT = """
import cupy as cp, gpubench
a = cp.ones(1000, "f4")
result = gpubench.benchmark(cp.sqrt, (a,), n_repeat=20)
print(result.method, [note.code for note in result.notes])
"""


def run(*command, **environment):
    return subprocess.run(
        [*command, sys.executable, "-c", SCRIPT],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    ).stdout


def test_launch_blocking():
    begin = time.perf_counter()
    output = run(CUDA_LAUNCH_BLOCKING="1")
    assert time.perf_counter() - begin < 60
    assert "events" in output
    assert "no-gate" in output


def test_profiler_attached():
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("Nsight Compute is not installed")
    output = run(ncu, "--clock-control", "none", "--launch-count", "5")
    assert "gated" in output or "events" in output


def test_without_cuda_bindings_a_stream_is_held(monkeypatch):
    from gpubench.devices.cuda import CudaContext, CudaDevice

    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    # made anew, unlike the one that the device keeps
    monkeypatch.setattr(CudaDevice, "every_stream", lambda self: CudaContext(self))
    result = benchmark(work.spin, (100e-6,), n_repeat=20)
    assert result.method == "gated"
    assert 98e-6 < result.gpu[0].median < 105e-6
    assert "no-context-events" in codes(result)
