"""`record_activity` on a simulated GPU: which records a trace holds, and what is shared."""

import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import gpubench
from gpubench import ArgumentError, UnsupportedError, compilation
from gpubench.activity.assembly import assemble
from gpubench.activity.recorder import record_activity
from gpubench.compilation import Compilation, CompilationLog
from gpubench.devices.records import Records
from gpubench.devices.sharing import is_recording, shared
from gpubench.devices.simulated.source import SimulatedSource
from gpubench.ranges.recording import RangeLog

TIME = 20e-6


def names(trace, table="activities"):
    recording = trace.recording
    return [recording.names[row["name"]] for row in getattr(recording, table)]


class TestTrace:
    def test_kernels_with_their_calls(self, gpu):
        with record_activity() as trace:
            gpu.launch(TIME, "a")
            gpu.launch(2 * TIME, "b")
        recording = trace.recording
        assert names(trace) == ["a", "b"]
        assert names(trace, "calls") == ["cudaLaunchKernel"] * 2
        assert recording.launches().tolist() == [0, 1]
        durations = recording.activities["end"] - recording.activities["start"]
        assert durations == pytest.approx([20_000, 40_000], rel=0.1)
        assert np.all(recording.activities["start"] > recording.calls["start"])
        assert np.all(recording.calls["end"] > recording.calls["start"])
        assert set(recording.calls["thread"].tolist()) == {threading.get_native_id()}
        assert recording.threads[threading.get_native_id()] == threading.current_thread().name
        assert recording.devices == {0: "simulated GPU"}

    def test_the_block_is_waited_for_at_both_ends(self, gpu):
        gpu.launch(5e-3, "before")
        with record_activity() as trace:
            gpu.launch(5e-3, "within")
        gpu.launch(TIME, "after")
        assert names(trace) == ["within"]
        assert trace.recording.duration > 5e6

    def test_without_waiting(self, gpu):
        begin = time.perf_counter()
        with record_activity(synchronize=False) as trace:
            gpu.launch(0.5, "long")
        assert time.perf_counter() - begin < 0.4
        assert names(trace) == []
        assert names(trace, "calls") == ["cudaLaunchKernel"]
        assert trace.recording.launch_time is None

    def test_there_is_nothing_in_it_before_the_end(self, gpu):
        with record_activity() as trace:
            assert repr(trace) == "<Trace: its block hasn't ended>"
            with pytest.raises(UnsupportedError, match="before its block has ended"):
                trace.table()
        assert "0 activities" in str(trace)

    def test_a_failing_block_leaves_a_trace_and_its_own_error(self, gpu, monkeypatch):
        def fail():
            raise RuntimeError("the GPU is lost")

        def record():
            with record_activity() as trace:
                traces.append(trace)
                gpu.launch(TIME, "a")
                gpu.synchronize()
                monkeypatch.setattr(gpu, "drain", fail)
                raise KeyError("mine")

        traces = []
        with pytest.raises(KeyError, match="mine"):
            record()
        assert names(*traces) == ["a"]
        assert gpu.source is None

    def test_graphs(self, gpu):
        graph = gpu.device(0).capture(lambda: [gpu.launch(TIME, name) for name in "ab"])
        with record_activity() as trace:
            graph.launch()
        activities = trace.recording.activities
        assert names(trace) == ["a", "b"]
        assert names(trace, "calls") == ["cudaGraphLaunch"]
        assert activities["graph_id"][0] == activities["graph_id"][1] != 0
        assert activities["start"][1] > activities["end"][0]

    def test_devices_streams_and_the_null_stream(self):
        with gpubench.simulated_gpu(n_devices=2) as gpu, record_activity() as trace:
            gpu.launch(TIME, "a")
            gpu.use_device(1)
            with gpu.stream():
                gpu.launch(TIME, "b")
            gpu.use_device(0)
        rows = dict(zip(names(trace), trace.recording.activities, strict=True))
        assert [rows[name]["device"] for name in "ab"] == [0, 1]
        assert [rows[name]["is_null_stream"] for name in "ab"] == [True, False]
        assert set(trace.recording.devices) == {0, 1}

    def test_the_current_device_is_left_as_it_was(self):
        with gpubench.simulated_gpu(n_devices=2) as gpu:
            gpu.use_device(1)
            with record_activity():
                pass
            assert gpu.current_device() == 1

    def test_synchronizing_is_a_call(self, gpu):
        with record_activity() as trace:
            gpu.synchronize()
        assert names(trace, "calls") == ["cudaDeviceSynchronize"]

    def test_what_recording_costs_a_launch(self, gpu):
        with record_activity() as trace:
            pass
        recording = trace.recording
        assert 0 < recording.launch_time < 1e-3
        assert 0 < recording.recorded_launch_time < 1e-3
        assert names(trace) == []

    def test_the_blocks_error_is_not_hidden_by_the_records(self, gpu, monkeypatch):
        def fail(self):
            raise UnsupportedError("no records")

        def record():
            with record_activity():
                monkeypatch.setattr(SimulatedSource, "collect", fail)
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            record()
        assert gpu.source is None

    def test_a_generator_that_is_dropped_while_records_are_taken(self, gpu):
        def recorded():
            with record_activity():
                yield

        dropped = recorded()
        next(dropped)
        collect = gpu.source.collect

        def collecting():
            nonlocal dropped
            dropped = None
            return collect()

        with record_activity() as trace:
            gpu.launch(TIME, "a")
            gpu.source.collect = collecting
        assert names(trace) == ["a"]

    def test_names_of_threads_that_have_ended(self, gpu):
        def work():
            with gpubench.time_range("r"):
                pass

        with record_activity() as trace:
            thread = threading.Thread(target=work, name="loader")
            thread.start()
            thread.join()
        assert "loader" in trace.recording.threads.values()


class TestKinds:
    def test_only_what_is_asked_for(self, gpu):
        with record_activity(["kernel"]) as trace, gpubench.time_range("r"):
            gpu.launch(TIME, "a")
        assert trace.recording.kinds == ("kernel",)
        assert names(trace) == ["a"]
        assert not len(trace.recording.calls)
        assert not len(trace.recording.ranges)

    @pytest.mark.parametrize("kinds", [["kernels"], [""], "kernel", [3], 5])
    def test_others_are_refused(self, gpu, kinds):
        with pytest.raises(ArgumentError, match="kinds must be"), record_activity(kinds):
            pass

    def test_nothing_at_all(self, gpu):
        with record_activity([]) as trace:
            gpu.launch(TIME, "a")
        assert names(trace) == []


class TestRanges:
    def test_ranges_marks_and_threads(self, gpu):
        def work():
            with gpubench.time_range("worker", domain="d"):
                time.sleep(1e-3)

        with record_activity() as trace:
            with gpubench.time_range("outer"), gpubench.time_range("inner"):
                gpubench.mark("now")
            thread = threading.Thread(target=work, name="helper")
            thread.start()
            thread.join()
        recording = trace.recording
        assert names(trace, "ranges") == ["outer", "inner", "now", "worker"]
        outer, inner, now, worker = recording.ranges
        assert outer["start"] <= inner["start"] <= now["start"] == now["end"] <= inner["end"]
        assert inner["end"] <= outer["end"]
        assert recording.names[worker["domain"]] == "d"
        assert worker["thread"] not in (0, outer["thread"])
        assert worker["end"] - worker["start"] > 1e6

    def test_one_object_inside_and_outside_of_the_recording(self, gpu):
        block = gpubench.time_range("r")
        with block, record_activity() as trace, block:
            pass
        with block:
            pass
        assert names(trace, "ranges") == ["r"]

    def test_what_is_open_at_the_end_ends_there(self, gpu):
        block = gpubench.time_range("r")
        with record_activity() as trace:
            block.__enter__()
        block.__exit__(None, None, None)
        (row,) = trace.recording.ranges
        assert row["end"] <= trace.recording.end

    def test_suspended_blocks(self, gpu):
        @gpubench.time_range("steps")
        def steps():
            yield 1
            yield 2

        with record_activity() as trace:
            one, other = steps(), steps()
            next(one), next(other)
            list(one), list(other)
        first, second = trace.recording.ranges
        assert first["start"] < second["start"] < first["end"] < second["end"]

    def test_ranges_that_nvtx_reports_are_not_logged_twice(self, gpu, monkeypatch):
        monkeypatch.setattr(SimulatedSource, "sees_nvtx", True)
        with record_activity() as trace, gpubench.time_range("r"):
            pass
        assert names(trace, "ranges") == []


class TestSharing:
    def test_nested_blocks_have_their_own_time_and_kinds(self, gpu):
        with record_activity(["kernel"]) as outer:
            gpu.launch(TIME, "first")
            with record_activity(["kernel", "runtime"]) as inner:
                gpu.launch(TIME, "second")
            gpu.launch(TIME, "third")
        assert names(outer) == ["first", "second", "third"]
        assert not len(outer.recording.calls)
        assert names(inner) == ["second"]
        assert len(inner.recording.calls) == 1

    def test_the_inner_block_may_outlast_the_outer(self, gpu):
        outer, inner = record_activity(), record_activity()
        first = outer.__enter__()
        gpu.launch(TIME, "a")
        second = inner.__enter__()
        gpu.launch(TIME, "b")
        outer.__exit__(None, None, None)
        gpu.launch(TIME, "c")
        inner.__exit__(None, None, None)
        assert names(first) == ["a", "b"]
        assert names(second) == ["b", "c"]
        assert not is_recording(gpu)

    def test_blocks_in_threads(self, gpu):
        barrier = threading.Barrier(4)
        traces = {}

        def work(number):
            barrier.wait()
            with record_activity() as traces[number]:
                for _ in range(20):
                    gpu.launch(1e-6, f"kernel {number}")

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, trace in traces.items():
            assert names(trace).count(f"kernel {number}") == 20
        assert not is_recording(gpu)

    def test_a_source_that_fails_to_open_leaves_nothing(self, gpu, monkeypatch):
        def fail(self, kinds):
            raise UnsupportedError("not today")

        monkeypatch.setattr(SimulatedSource, "enable", fail)
        with pytest.raises(UnsupportedError, match="not today"), shared(gpu, ["kernel"]):
            pass
        assert gpu.source is None
        assert not is_recording(gpu)

    def test_a_second_source_is_refused(self, gpu):
        source = gpu.activity_source()
        with pytest.raises(UnsupportedError, match="recorded already"), record_activity():
            pass
        source.close()


def test_a_process_may_end_while_it_records():
    code = (
        "import gpubench\n"
        "gpu = gpubench.simulated_gpu().__enter__()\n"
        "def recorded():\n"
        "    with gpubench.record_activity():\n"
        "        yield\n"
        "suspended = recorded(); next(suspended)\n"
        "gpubench.timing_begin()\n"
        "gpu.launch(1e-3)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class TestRefusals:
    def test_no_gpu(self, no_cupy):
        with (
            pytest.raises(UnsupportedError, match="no GPU found: CuPy is not installed"),
            record_activity(),
        ):
            pass

    def test_no_cupti(self, fake_cuda, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupti", None)
        with (
            pytest.raises(UnsupportedError, match=r'pip install "gpubench\[activity\]"'),
            record_activity(),
        ):
            pass


class TestAssembly:
    def test_kernels_are_demangled_and_names_kept_once(self):
        log = RangeLog(lambda: 0)
        records = Records.joined([], ["_Z3addv", "unused"], 3)
        activities = np.zeros(2, records.activities.dtype)
        activities["start"] = 5
        records = Records(activities, records.calls, records.ranges, records.links, ["_Z3addv"], 3)
        recording = assemble(records, log, CompilationLog(), (0, 10), ("kernel",), 0)
        assert recording.names == ("add()",)
        assert recording.n_dropped == 3

    def test_compilations_are_put_on_the_sources_clock(self):
        log = CompilationLog()
        log._entries += [Compilation(("a", "b"), "nvrtc", 1.0), Compilation((), "preprocess", 0.5)]
        log.intervals += [(1.0, 2.0, 7), (2.0, 2.5, 7)]
        empty = Records.joined([], [], 0)
        offset = 5_000_000_000
        span = (offset, offset + 3 * 10**9)
        recording = assemble(
            empty, RangeLog(lambda: 0), log, span, ("compilation",), offset
        ).compilations
        assert recording["start"].tolist() == [6 * 10**9, 7 * 10**9]
        assert (recording["end"] - recording["start"]).tolist() == [10**9, 5 * 10**8]
        assert recording["thread"].tolist() == [7, 7]

    def test_compilations_of_a_block(self, gpu, monkeypatch):
        def compile_with(source):
            return source

        compiler = SimpleNamespace(
            _compile_module_with_cache=compile_with,
            _compile_using_nvrtc_no_warning=lambda source: source,
        )
        monkeypatch.setitem(sys.modules, compilation._COMPILER, compiler)
        with record_activity() as trace:
            compiler._compile_module_with_cache('extern "C" __global__ void add() {}')
        assert names(trace, "compilations") == ["add"]
        assert len(trace.recording.compilations) == 1
