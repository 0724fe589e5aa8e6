"""What a simulated device is made of: its clock, its cache, and what a first launch costs."""

import time

import numpy as np
import pytest

import gpubench
from gpubench.devices.simulated.clock import IDLE_AFTER, IDLE_CLOCK, Clock
from gpubench.devices.simulated.device import L2_BYTES
from gpubench.devices.simulated.memory import (
    L2_BANDWIDTH,
    MEMORY_BANDWIDTH,
    START_TIME,
    Buffer,
    L2Cache,
)

MB = 10**6


def cold(n_bytes):
    return START_TIME + n_bytes / MEMORY_BANDWIDTH


def warm(n_bytes):
    return START_TIME + n_bytes / L2_BANDWIDTH


class TestClock:
    def test_without_a_ramp_it_is_always_full(self):
        clock = Clock(0.5, 0.0)
        assert [clock.duration(1e-3, start) for start in (0.0, 100.0)] == [2e-3, 2e-3]

    def test_it_rises_evenly_with_the_work(self):
        clock = Clock(1.0, 0.1)
        durations = np.array([clock.duration(1e-3, 0.01 * i) for i in range(100)])
        worked = np.cumsum(durations) - durations
        expected = IDLE_CLOCK + (1 - IDLE_CLOCK) * np.minimum(1, worked / 0.1)
        assert 1e-3 / durations == pytest.approx(expected)
        assert durations[0] == pytest.approx(1e-3 / IDLE_CLOCK)
        assert durations[-1] == 1e-3

    def test_it_falls_when_there_was_no_work_for_a_while(self):
        clock = Clock(1.0, 0.1)
        busy = clock.duration(0.1, 0.0)
        assert clock.duration(1e-3, busy + 0.9 * IDLE_AFTER) == 1e-3
        later = busy + 2 * IDLE_AFTER
        assert clock.duration(1e-3, later) == pytest.approx(1e-3 / IDLE_CLOCK)

    def test_it_does_not_fall_behind_a_long_kernel(self):
        clock = Clock(1.0, 0.1)
        end = clock.duration(5 * IDLE_AFTER, 0.0)
        assert clock.duration(1e-3, end) == 1e-3

    def test_a_gpu_heeds_it(self):
        with gpubench.simulated_gpu(jitter=0, clock=0.5) as gpu:
            result = gpubench.benchmark(gpu.launch, (100e-6,), n_repeat=5, method="cupti")
        assert result.gpu_times[0] == pytest.approx(200e-6, abs=1e-8)

    def test_so_does_a_graph(self):
        with gpubench.simulated_gpu(jitter=0, clock=0.5) as gpu:
            gpu.device(0).capture(lambda: gpu.launch(100e-6)).launch()
            gpu.synchronize()
        assert gpu.history[0].durations == pytest.approx([200e-6])

    def test_a_gpu_that_was_idle_begins_slowly(self):
        with gpubench.simulated_gpu(jitter=0, ramp_time=1e3) as gpu:
            gpu.launch(1e-3)
            gpu.synchronize()
        assert gpu.history[0].durations == pytest.approx([1e-3 / IDLE_CLOCK])


class TestCache:
    def test_what_was_read_is_there(self):
        cache, buffer = L2Cache(50 * MB), Buffer(40 * MB)
        assert cache.read(buffer) == cold(40 * MB)
        assert cache.read(buffer) == cache.read(buffer) == warm(40 * MB)

    def test_several_fit_together(self):
        cache, buffers = L2Cache(50 * MB), [Buffer(20 * MB), Buffer(30 * MB)]
        assert [cache.read(each) for each in buffers] == [cold(20 * MB), cold(30 * MB)]
        assert [cache.read(each) for each in buffers] == [warm(20 * MB), warm(30 * MB)]

    def test_what_was_read_longest_ago_is_evicted(self):
        cache = L2Cache(50 * MB)
        old, middle, new = Buffer(20 * MB), Buffer(20 * MB), Buffer(20 * MB)
        for each in (old, middle, new):
            cache.read(each)
        assert cache.read(new) == warm(20 * MB)
        assert cache.read(middle) == warm(20 * MB)
        half = START_TIME + 10 * MB / L2_BANDWIDTH + 10 * MB / MEMORY_BANDWIDTH
        assert cache.read(old) == pytest.approx(half)

    def test_what_is_larger_than_the_cache_is_never_there_and_evicts_all(self):
        cache, small, large = L2Cache(50 * MB), Buffer(10 * MB), Buffer(51 * MB)
        cache.read(small)
        assert [cache.read(large) for _ in range(3)] == [cold(51 * MB)] * 3
        assert cache.read(small) == cold(10 * MB)

    def test_two_buffers_of_one_size_are_different(self):
        cache = L2Cache(50 * MB)
        cache.read(Buffer(10 * MB))
        assert cache.read(Buffer(10 * MB)) == cold(10 * MB)

    @pytest.mark.parametrize(("state", "expected"), [("warm", warm), ("cold", cold)])
    def test_a_benchmark_measures_it_warm_or_cold(self, gpu, state, expected):
        buffer = gpu.buffer(40 * MB)
        result = gpubench.benchmark(gpu.read, (buffer,), n_repeat=5, cache=state, method="cupti")
        assert result.gpu_times[0] == pytest.approx(expected(40 * MB), abs=1e-8)
        assert gpu.device(0).properties.l2_bytes == L2_BYTES

    @pytest.mark.parametrize("n_bytes", [0, -1, 1.5])
    def test_a_buffer_has_a_size(self, gpu, n_bytes):
        with pytest.raises(gpubench.ArgumentError, match="n_bytes"):
            gpu.buffer(n_bytes)

    def test_reads_have_a_name_and_noise(self):
        with gpubench.simulated_gpu(jitter=0.05) as gpu:
            buffer = gpu.buffer(40 * MB)
            for _ in range(50):
                gpu.read(buffer, "mine")
            gpu.synchronize()
        lengths = [op.durations[0] for op in gpu.history[1:]]
        assert {op.kernels for op in gpu.history} == {("mine",)}
        assert np.std(lengths) / np.mean(lengths) == pytest.approx(0.05, rel=0.4)


class TestFirstLaunch:
    def timed(self, launch):
        begin = time.perf_counter()
        launch()
        return time.perf_counter() - begin

    def test_each_name_costs_the_host_once(self):
        with gpubench.simulated_gpu(compile_time=0.2) as gpu:
            assert self.timed(lambda: gpu.launch(0, "one")) >= 0.2
            assert self.timed(lambda: gpu.launch(0, "one")) < 0.2
            assert self.timed(lambda: gpu.read(gpu.buffer(1), "two")) >= 0.2

    def test_it_is_free_unless_asked_for(self, gpu):
        assert self.timed(lambda: gpu.launch(0, "one")) < 0.1

    def test_a_trace_shows_it(self):
        with gpubench.simulated_gpu(compile_time=0.05) as gpu:
            with gpubench.record_activity() as trace:
                gpu.launch(0, "one")
                gpu.launch(0, "one")
            names = [trace.recording.names[call["name"]] for call in trace.recording.calls]
        assert names == ["cuModuleLoadData", "cudaLaunchKernel", "cudaLaunchKernel"]


@pytest.mark.parametrize(
    "parameters", [{"clock": 0}, {"clock": -1}, {"ramp_time": -1}, {"compile_time": -1}]
)
def test_impossible_hardware_is_refused(parameters):
    (name,) = parameters
    with pytest.raises(gpubench.ArgumentError, match=name):
        gpubench.simulated_gpu(**parameters)
