"""method="cupti": times from records, attributed by external id, on a simulated GPU."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import gpubench
from gpubench import UnsupportedError, benchmark
from gpubench.devices.records import ACTIVITY, LINK, Records
from gpubench.devices.sharing import is_recording
from gpubench.devices.simulated.gpu import SimulatedDevice
from gpubench.devices.simulated.source import SimulatedSource
from gpubench.timers.attribution import external_ids, spans


@pytest.fixture
def gpu():
    with gpubench.simulated_gpu(jitter=0) as gpu:
        yield gpu


def codes(result):
    return [note.code for note in result.notes]


class TestBenchmark:
    def test_span_busy_and_kernels(self, gpu):
        def call():
            gpu.launch(5e-6, "a")
            gpu.launch(2e-6, "b")
            gpu.launch(2e-6, "b")

        result = benchmark(call, n_repeat=100, method="cupti")
        assert result.method == "cupti"
        assert result.gpu_times == pytest.approx(np.full((1, 100), 10.8e-6), abs=3e-9)
        assert result.busy_times == pytest.approx(np.full((1, 100), 9e-6), abs=3e-9)
        seen = [(each.name, each.calls, round(each.median_time, 8)) for each in result.kernels]
        assert seen == [("a", 1.0, 5e-6), ("b", 2.0, 2e-6)]
        assert (result.floor, result.clock_step) == (0.0, None)
        assert not is_recording(gpu)

    def test_a_short_kernel_needs_no_note(self, gpu):
        result = benchmark(gpu.launch, (0.6e-6,), n_repeat=50, method="cupti")
        assert result.gpu[0].median == pytest.approx(0.6e-6, abs=2e-9)
        assert "near-floor" not in codes(result)
        assert "coarse-clock" not in codes(result)

    def test_streams_that_overlap(self, gpu):
        side = gpu.stream()

        def call():
            gpu.launch(10e-6)
            with side:
                gpu.launch(40e-6)

        result = benchmark(call, n_repeat=20, method="cupti")
        assert result.busy[0].median == pytest.approx(40e-6, rel=0.01)
        assert "side-stream" not in codes(result)

    def test_streams_that_wait_for_the_host_are_held_too(self, gpu):
        side = gpu.stream()

        def call():
            with side:
                gpu.launch(0.2e-3)
            time.sleep(1e-3)
            gpu.launch(0.2e-3)

        result = benchmark(call, n_repeat=10, method="cupti")
        assert result.gpu[0].median == pytest.approx(0.2e-3, rel=0.05)
        assert result.busy[0].median == pytest.approx(0.2e-3, rel=0.05)

    def test_where_they_can_not_be_held_a_note_says_so(self, gpu, monkeypatch):
        def refuse(self):
            raise UnsupportedError("old driver")

        monkeypatch.setattr(SimulatedDevice, "every_stream", refuse)
        side = gpu.stream()

        def call():
            gpu.launch(20e-6)
            with side:
                gpu.launch(20e-6)

        assert "gaps-included" in codes(benchmark(call, n_repeat=10, method="cupti"))

    def test_the_time_is_kept_to(self, gpu):
        begin = time.perf_counter()
        result = benchmark(
            gpu.launch, (20e-3,), n_repeat=1000, max_duration=0.5, n_warmup=2, method="cupti"
        )
        assert time.perf_counter() - begin < 1.2
        assert result.stopped_by == "max_duration"

    def test_lost_records_are_noted(self, gpu, monkeypatch):
        collect = SimulatedSource.collect

        def lossy(self):
            records = collect(self)
            return replace(records, activities=records.activities[::2], n_dropped=1)

        monkeypatch.setattr(SimulatedSource, "collect", lossy)
        result = benchmark(gpu.launch, (5e-6,), n_repeat=20, method="cupti")
        assert "dropped-records" in codes(result)

    def test_a_source_that_fails_at_the_end_costs_nothing(self, gpu, monkeypatch):
        def fail(self):
            gpu.source = None
            raise UnsupportedError("can't be closed")

        monkeypatch.setattr(SimulatedSource, "close", fail)
        assert benchmark(gpu.launch, (5e-6,), n_repeat=5, method="cupti").cpu.n == 5

    def test_nothing_on_the_gpu(self, gpu):
        result = benchmark(lambda: None, n_repeat=20, method="cupti")
        assert not result.gpu_times.any()
        assert codes(result) == ["no-activity"]
        assert result.kernels == ()

    def test_a_function_that_waits(self, gpu):
        def call():
            gpu.launch(5e-6)
            gpu.synchronize()
            gpu.launch(5e-6)

        result = benchmark(call, n_repeat=20, method="cupti")
        assert result.busy[0].median == pytest.approx(10e-6, rel=0.01)
        assert result.gpu[0].median > 12e-6
        assert "gaps-included" in codes(result)

    def test_a_function_that_waits_now_and_then(self, gpu):
        n_calls = 0

        def call():
            nonlocal n_calls
            n_calls += 1
            gpu.launch(5e-6)
            if n_calls > 60 and n_calls % 3 == 0:
                gpu.synchronize()

        result = benchmark(call, n_repeat=100, method="cupti")
        assert result.method == "cupti"
        assert result.gpu_times == pytest.approx(np.full((1, 100), 5e-6), abs=3e-9)
        assert "gaps-included" in codes(result)

    def test_no_calls_ahead(self, gpu):
        result = benchmark(gpu.launch, (5e-6,), n_repeat=10, n_warmup=0, method="cupti")
        assert result.gpu[0].median == pytest.approx(5e-6, abs=2e-9)

    def test_flushes_and_setup_are_not_counted(self, gpu):
        def setup():
            gpu.launch(50e-6, "setup")
            return (5e-6,)

        result = benchmark(
            gpu.launch, setup=setup, cache="cold", n_repeat=10, n_warmup=3, method="cupti"
        )
        assert result.gpu_times == pytest.approx(np.full((1, 10), 5e-6), abs=3e-9)
        assert [kernel.name for kernel in result.kernels] == ["kernel"]

    def test_several_devices(self):
        with gpubench.simulated_gpu(n_devices=2, jitter=0) as gpu:

            def call():
                gpu.launch(10e-6)
                gpu.use_device(1)
                gpu.launch(30e-6)
                gpu.use_device(0)

            result = benchmark(call, n_repeat=20, devices=(0, 1), method="cupti")
        assert [row.median for row in result.gpu] == pytest.approx([10e-6, 30e-6], rel=0.01)
        assert [row.median for row in result.busy] == pytest.approx([10e-6, 30e-6], rel=0.01)

    def test_work_of_other_threads_is_told_apart(self, gpu):
        stop = threading.Event()
        side = gpu.stream()

        def disturb():
            with side:
                while not stop.is_set():
                    gpu.launch(7e-6, "strange")
                    side.synchronize()

        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            result = benchmark(gpu.launch, (5e-6, "ours"), n_repeat=50, method="cupti")
        finally:
            stop.set()
            thread.join()
        assert [kernel.name for kernel in result.kernels] == ["ours"]
        assert result.gpu_times == pytest.approx(np.full((1, 50), 5e-6), abs=3e-9)
        assert "other-threads" in codes(result)

    def test_inside_of_a_recording(self, gpu):
        with gpubench.record_activity(["kernel"]) as trace:
            result = benchmark(gpu.launch, (5e-6, "k"), n_repeat=20, method="cupti")
        assert result.gpu[0].median == pytest.approx(5e-6, abs=2e-9)
        assert len(trace.recording.activities) >= 30

    def test_an_exception_ends_the_recording(self, gpu):
        def call():
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            benchmark(call, n_repeat=5, n_warmup=0, method="cupti")
        assert not is_recording(gpu)

    def test_it_can_be_saved_and_read(self, gpu):
        result = benchmark(gpu.launch, (5e-6,), n_repeat=10, method="cupti")
        again = gpubench.BenchmarkResult.from_dict(result.to_dict())
        assert again == result
        assert again.kernels == result.kernels
        assert "gpu_0_busy_time_s" in result.to_dataframe()

    def test_the_panel_shows_busy_times_and_kernels(self, gpu):
        panel = benchmark(gpu.launch, (5e-6, "k"), n_repeat=10, method="cupti").summary()
        assert "\n  busy " in panel
        assert "\n  1 times 5.00 us: k" in panel

    def test_without_a_gpu(self, no_cupy):
        with pytest.raises(UnsupportedError, match="method='cupti' needs a GPU"):
            benchmark(lambda: None, method="cupti")

    def test_compare(self, gpu):
        arms = {"a": lambda: gpu.launch(5e-6), "b": lambda: gpu.launch(10e-6)}
        comparison = gpubench.compare(arms, n_blocks=8, method="cupti", check=False)
        assert comparison.ratio["b"] == pytest.approx(2, rel=0.01)


class TestSpans:
    """Intervals in nanoseconds, each of one call."""

    def spans(self, intervals, place, n):
        activities = np.zeros(len(intervals), ACTIVITY)
        for row, (start, end) in zip(activities, intervals, strict=True):
            row["start"], row["end"] = start, end
        span, busy = spans(activities, np.array(place, int), n)
        return (span * 1e9).round().tolist(), (busy * 1e9).round().tolist()

    @pytest.mark.parametrize(
        ("intervals", "place", "span", "busy"),
        [
            ([], [], [0, 0], [0, 0]),
            ([(10, 20)], [1], [0, 10], [0, 10]),
            ([(10, 20), (30, 35)], [0, 0], [25, 0], [15, 0]),
            ([(30, 35), (10, 20)], [0, 0], [25, 0], [15, 0]),
            ([(10, 40), (15, 20), (35, 50)], [0, 0, 0], [40, 0], [40, 0]),
            ([(10, 20), (15, 30)], [0, 1], [10, 15], [10, 15]),
            ([(100, 120), (10, 20), (110, 130)], [1, 0, 1], [10, 30], [10, 30]),
        ],
    )
    def test_of_two_calls(self, intervals, place, span, busy):
        assert self.spans(intervals, place, 2) == (span, busy)


def test_links_decide_and_nothing_else():
    """A kernel that runs during one call belongs to the call that launched it."""
    activities = np.zeros(4, ACTIVITY)
    activities["correlation_id"] = [3, 1, 2, 9]
    links = np.zeros(3, LINK)
    links["correlation_id"], links["external_id"] = [2, 1, 3], [20, 10, 30]
    none = Records.joined([], [], 0)
    records = Records(activities, none.calls, none.ranges, links, [])
    assert external_ids(records).tolist() == [30, 10, 20, 0]
    assert external_ids(Records.joined([], [], 0)).tolist() == []
