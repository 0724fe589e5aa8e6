"""What ran on a real GPU: every framework's kernels, each at the call that launched it."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import gpubench
from gpubench import benchmark, record_activity

cp = pytest.importorskip("cupy")
pytest.importorskip("cupti")

KERNELS = ["kernel", "runtime", "driver"]


def names(trace, kind="kernel"):
    recording = trace.recording
    return [recording.names[row["name"]] for row in recording.of_kind(kind)]


def calls_of(trace):
    """The names of the calls that launched the kernels."""
    recording = trace.recording
    launches = recording.launches()
    assert (launches >= 0).all()
    return [recording.names[recording.calls["name"][i]] for i in launches]


def traced(call):
    """A trace of three calls, after one that may compile."""
    call()
    with record_activity() as trace:
        for _ in range(3):
            call()
    assert trace.recording.n_dropped == 0
    return trace


class TestCupy:
    def test_elementwise(self):
        a = cp.ones(10**6, "f4")
        trace = traced(lambda: cp.sqrt(a))
        assert names(trace) == ["cupy_sqrt__float32_float32"] * 3
        kernel = trace.recording.of_kind("kernel")[0]
        assert np.prod(kernel["grid"]) * np.prod(kernel["block"]) >= 10**6 / 4
        assert kernel["registers"] > 0
        assert 1_000 < kernel["end"] - kernel["start"] < 100_000
        assert kernel["is_null_stream"]
        calls_of(trace)

    def test_a_reduction_of_cubs(self):
        a = cp.ones(10**6, "f4")
        with gpubench.use_accelerators("cub"):
            trace = traced(a.sum)
        assert len(names(trace)) == 6
        assert all("cub" in name or "Reduce" in name for name in names(trace))

    def test_a_raw_kernel(self):
        kernel = cp.RawKernel('extern "C" __global__ void mine() {}', "mine")
        trace = traced(lambda: kernel((4,), (32,), ()))
        assert names(trace) == ["mine"] * 3
        row = trace.recording.of_kind("kernel")[0]
        assert (row["grid"].tolist(), row["block"].tolist()) == ([4, 1, 1], [32, 1, 1])

    def test_a_graph(self):
        a = cp.ones(1000, "f4")
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            cp.sqrt(a)
            stream.begin_capture()
            cp.sqrt(a), cp.exp(a)
            graph = stream.end_capture()
        trace = traced(lambda: graph.launch(stream))
        assert len(names(trace)) == 6
        kernels = trace.recording.of_kind("kernel")
        assert kernels["graph_id"].all()
        assert len(set(kernels["correlation_id"].tolist())) == 3
        assert all("GraphLaunch" in name for name in calls_of(trace))

    def test_copies_and_sets(self):
        a = cp.ones(10**6, "f4")
        host = np.ones(10**6, "f4")
        pinned = cp.cuda.alloc_pinned_memory(host.nbytes)
        with record_activity() as trace:
            a.get()
            a.data.copy_from_host_async(pinned.ptr, host.nbytes)
            a.data.memset(0, host.nbytes)
        recording = trace.recording
        down, up = recording.of_kind("memcpy")
        assert recording.names[down["name"]] == "memcpy DtoH"
        assert recording.names[up["name"]] == "memcpy HtoD"
        assert (down["target_memory"], up["source_memory"]) == (1, 2)  # pageable, pinned
        assert down["bytes"] == up["bytes"] == host.nbytes
        (zeroed,) = recording.of_kind("memset")
        assert zeroed["bytes"] == host.nbytes

    def test_ranges_hold_their_kernels(self):
        a = cp.ones(10**6, "f4")
        cp.sqrt(a), cp.exp(a)
        with record_activity() as trace:
            with gpubench.time_range("root"):
                cp.sqrt(a)
            with gpubench.time_range("power"):
                cp.exp(a)
        lines = trace.ranges().splitlines()
        (root,) = (i for i, line in enumerate(lines) if line.endswith("root"))
        assert "sqrt" in lines[root + 1]

    def test_streams_and_threads(self):
        a = cp.ones(10**6, "f4")
        side = cp.cuda.Stream(non_blocking=True)

        def work():
            with side:
                cp.exp(a)

        work(), cp.sqrt(a)
        with record_activity() as trace:
            cp.sqrt(a)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        rows = dict(zip(names(trace), trace.recording.of_kind("kernel"), strict=True))
        root, power = rows["cupy_sqrt__float32_float32"], rows["cupy_exp__float32_float32"]
        assert root["is_null_stream"]
        assert not power["is_null_stream"]
        threads = {trace.recording.calls["thread"][i] for i in trace.recording.launches().tolist()}
        assert threads == {threading.get_native_id(), thread.native_id}


class TestOtherFrameworks:
    def test_pytorch(self):
        torch = pytest.importorskip("torch")
        a = torch.rand(10**6, device="cuda")
        trace = traced(lambda: a.sin() + a)
        assert len(names(trace)) == 6
        assert sum("sin" in name for name in names(trace)) == 3
        calls_of(trace)

    def test_torch_compile(self):
        torch = pytest.importorskip("torch")
        a = torch.rand(10**6, device="cuda")
        call = torch.compile(lambda a: a.sin().relu() + a)
        trace = traced(lambda: call(a))
        assert len(names(trace)) == 3
        assert all(name.startswith("triton_") for name in names(trace))
        result = benchmark(call, (a,), n_repeat=30, method="cupti")
        assert [round(kernel.calls) for kernel in result.kernels] == [1]

    def test_numba(self):
        cuda = pytest.importorskip("numba.cuda")
        try:
            kernel = cuda.jit("void(float32[:])")(lambda a: None)
        except Exception as error:  # noqa: BLE001  # what it misses here is its own affair
            pytest.skip(f"numba can't compile here: {error}")
        a = cuda.to_device(np.ones(32, "f4"))
        trace = traced(lambda: kernel[1, 32](a))
        assert len(names(trace)) == 3

    def test_jax(self):
        jax = pytest.importorskip("jax")
        if jax.default_backend() != "gpu":
            pytest.skip("this JAX has no GPU")
        call = jax.jit(lambda a: jax.numpy.sin(a) + a)
        a = jax.numpy.ones(10**6, "f4")
        trace = traced(lambda: call(a).block_until_ready())
        assert len(names(trace)) >= 3


class TestMethod:
    @pytest.mark.parametrize(
        ("call", "n_kernels"),
        [
            (lambda a: cp.sqrt(a), 1),
            (lambda a: cp.sqrt(cp.sum(a**2, axis=-1)), 3),
        ],
    )
    def test_every_call_is_credited_with_its_kernels(self, call, n_kernels):
        a = cp.ones((256, 1024), "f4")
        result = benchmark(call, (a,), n_repeat=600, method="cupti")
        assert sum(kernel.calls for kernel in result.kernels) == pytest.approx(n_kernels)
        assert (result.gpu_times > 0).all()
        assert (result.busy_times <= result.gpu_times + 1e-12).all()

    def test_it_agrees_with_the_gate_on_long_work(self):
        a = cp.ones(10**8, "f4")
        gated = benchmark(cp.sqrt, (a,), n_repeat=20)
        recorded = benchmark(cp.sqrt, (a,), n_repeat=20, method="cupti")
        assert recorded.busy[0].median == pytest.approx(gated.gpu[0].median, rel=0.01)

    def test_a_side_stream_is_seen(self):
        a = cp.ones(10**7, "f4")
        side = cp.cuda.Stream(non_blocking=True)

        def call():
            with side:
                cp.sqrt(a)

        result = benchmark(call, n_repeat=20, method="cupti")
        assert result.gpu[0].median > 10e-6

    def test_no_gpu_work(self):
        result = benchmark(lambda: None, n_repeat=20, method="cupti")
        assert "no-activity" in [note.code for note in result.notes]


def test_times_are_on_one_clock_with_the_host():
    a = cp.ones(10**6, "f4")
    cp.sqrt(a)
    with record_activity() as trace, gpubench.time_range("all"):
        cp.sqrt(a)
        cp.cuda.runtime.deviceSynchronize()
    recording = trace.recording
    (block,) = recording.ranges
    (kernel,) = recording.of_kind("kernel")
    call = recording.calls[recording.launches()[-1]]
    assert block["start"] < call["start"] < kernel["start"] < kernel["end"] < block["end"]


def test_another_profiler_is_told_from():
    pytest.importorskip("torch")
    program = """
import torch, gpubench
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
    with gpubench.record_activity():
        pass
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert "UnsupportedError" in done.stderr
    assert "PyTorch's" in done.stderr


def test_recordings_one_after_the_other():
    a = cp.ones(1000, "f4")
    for _ in range(20):
        with record_activity(KERNELS) as trace:
            cp.sqrt(a)
        assert len(names(trace)) == 1


@pytest.mark.gpus(2)
def test_two_devices():
    arrays = []
    for device in (0, 1):
        with cp.cuda.Device(device):
            arrays.append(cp.ones(10**6, "f4"))
            cp.sqrt(arrays[-1])
    with record_activity() as trace:
        for device, a in enumerate(arrays):
            with cp.cuda.Device(device):
                cp.sqrt(a)
    assert trace.recording.of_kind("kernel")["device"].tolist() == [0, 1]
