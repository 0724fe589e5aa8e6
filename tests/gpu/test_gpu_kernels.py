"""CuPy's kernels by name: what CUPTI records, what a graph shows, and whose they are."""

import functools
import subprocess
import sys

import pytest

import gpubench
from gpubench.activity.kernels import back_end_of, kernel_names
from gpubench.devices import current_platform
from gpubench.devices.cuda import CudaPlatform

cp = pytest.importorskip("cupy")
pytest.importorskip("cupti")


@functools.cache
def a():
    return cp.ones((256, 256, 16), "f4")


@functools.cache
def m():
    return cp.ones((256, 256), "f4")


CALLS = {
    "sum": lambda: a().sum(),
    "prod": lambda: a().prod(),
    "argmax": lambda: a().argmax(),
    "cumsum": lambda: cp.cumsum(a()),
    "mean": lambda: a().mean(),
    "sort": lambda: cp.sort(a().ravel()),
    "a + a": lambda: a() + a(),
    "matmul": lambda: m() @ m(),
}
OWN = dict.fromkeys(CALLS, "CuPy") | {"matmul": "cuBLAS"}
WITH_CUB = OWN | {
    "sum": "cub",
    "prod": "cub",
    "argmax": "cub+CuPy",  # converts the indices
    "cumsum": "CuPy+cub",  # copies its argument
    "mean": "cub+CuPy",  # divides
}


def refuse(self):
    raise gpubench.UnsupportedError("no records today")


def find(call):
    platform = current_platform()
    return kernel_names(call, platform, platform.device(0))


@pytest.mark.parametrize(("names", "expected"), [((), OWN), (("cub",), WITH_CUB)])
@pytest.mark.parametrize("call", CALLS)
def test_back_ends(monkeypatch, call, names, expected):
    with gpubench.use_accelerators(*names):
        CALLS[call]()
        recorded = find(CALLS[call])
        monkeypatch.setattr(CudaPlatform, "activity_source", refuse)
        captured = find(CALLS[call])
    assert recorded.source == "cupti"
    assert back_end_of(recorded.names) == expected[call]
    if call == "matmul":
        assert "cuBLAS API during stream capture" in captured.reason
    else:
        assert captured.names == recorded.names
        assert captured.source == "graph"


def test_a_call_without_kernels():
    assert find(lambda: None).source == "cupti"


def test_a_captured_graph_is_named_by_its_kernels():
    graph = current_platform().device(0).capture(lambda: (a() + a(), a() * a()))
    assert find(graph.launch).names == graph.kernel_names


def test_in_a_recorded_block():
    CALLS["sum"]()
    with gpubench.record_activity(["kernel"]) as trace:
        CALLS["a + a"]()
        found = find(CALLS["sum"])
    recorded = [trace.recording.names[i] for i in trace.recording.activities["name"]]
    assert found.source == "cupti"
    assert found.names == tuple(dict.fromkeys(recorded[1:]))


SCRIPT = """
import cupy, torch
from gpubench.activity.kernels import kernel_names
from gpubench.devices import current_platform
platform = current_platform()
a = cupy.ones(1000)
a.sum()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
    print(kernel_names(a.sum, platform, platform.device(0)).source)
    a.sum()
print(sum("Reduce" in event.name for event in profile.events()))
"""


def test_another_profiler_goes_on():
    pytest.importorskip("torch")
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    source, n_records = run.stdout.split()
    assert source == "graph"
    assert int(n_records) >= 1
