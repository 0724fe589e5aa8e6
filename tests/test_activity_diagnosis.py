"""Each rule on both sides of its threshold, what it costs to the nanosecond, and what it says."""

import inspect
import re
import time
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from example_recordings import MAIN, Recorded

from gpubench.activity.diagnosis import diagnose
from gpubench.activity.diagnosis.rules import RULES
from gpubench.devices.records import CALL
from gpubench.notes import Note

OTHER = 1002
"""The native id of another thread."""


def launch_loop(n=100, every=10.0, takes=2.0, delay=6.0, recorded=None, **fields):
    """Kernels that the host launches one by one, each in time for none but itself."""
    recorded = recorded or Recorded()
    for i in range(n):
        recorded.launch("sqrt", every * i, every * i + delay, takes, **fields)
    return recorded


def busy(until, recorded=None, begin=0.0, every=100.0, **fields):
    """Kernels that follow each other without a gap, all launched in the beginning."""
    recorded = recorded or Recorded()
    for i in range(round((until - begin) / every)):
        recorded.launch("gemm", begin - 90 + i, begin + every * i, every, call=1, **fields)
    return recorded


def pause(length, at=500.0, end=1000.0, launch=None):
    """A device that is busy but for one gap, ended by a launch that begins then."""
    recorded = Recorded()
    recorded.launch("a", 0, 0, at)
    launch = at + length - 5 if launch is None else launch
    recorded.launch("b", launch, at + length, end - at - length)
    return recorded


def copying(cost):
    """A device that is busy but for a copy that the host waits for, and what follows from it."""
    recorded = Recorded()
    recorded.launch("a", 0, 0, 500)
    recorded.copy(490, 500, 3, 4096, direction="DtoH", source="device", target="pinned",
                  is_async=False, call=14)  # fmt: skip
    recorded.launch("b", 505, 500 + cost, 500 - cost, call=2)
    return recorded


def waiting(length, call="cudaStreamSynchronize", **fields):
    """A device that runs dry while the host waits for it."""
    recorded = pause(length, launch=500 + length - 5)
    recorded.call(call, 490, 12, **fields)
    return recorded


def pageable(takes):
    """Copies of pageable memory between kernels, without a gap."""
    recorded = Recorded()
    recorded.launch("a", 0, 0, 500)
    recorded.copy(5, 500, takes, round(takes * 8000), source="pageable")
    recorded.launch("b", 10, 500 + takes, 500 - takes)
    return recorded


def turns(held):
    """The null stream and another that run by turns, though the latter is ready."""
    recorded = Recorded()
    recorded.launch("null", 0, 0, 500, is_null_stream=True, stream=7, call=1)
    recorded.launch("other", 500 - held - 1, 500, 500, stream=13, call=1)
    return recorded


def compiling(takes):
    recorded = busy(1000)
    recorded.compilation("cupy_sum", 100, takes)
    return recorded


def tiny(n=50, n_long=49, takes=9.999, gap=1.0):
    """Short kernels with a gap before each, launched ahead of time, then long ones without."""
    recorded = Recorded()
    for i in range(n):
        recorded.launch("sqrt", -100, i * (takes + gap), takes, call=1)
    for i in range(n_long):
        begin = n * (takes + gap) - gap
        recorded.launch("gemm", -100, begin + 10 * i, 10, call=1)
    return recorded


SIDES = {
    "dropped-records": (busy(1000).recording(1000, n_dropped=1), busy(1000).recording(1000), 0),
    "slow-recording": (
        busy(1000).recording(1000, delivery_time=50e-6),
        busy(1000).recording(1000, delivery_time=49.9e-6),
        0.05,
    ),
    "launch-bound": (pause(50).recording(1000), pause(49.999).recording(1000), 0.05),
    "host-busy": (
        pause(1005, launch=1500, end=3000).recording(3000),
        pause(1005, launch=1499.999, end=3000).recording(3000),
        1005 / 3000,
    ),
    "synchronizing-copies": (copying(10).recording(1000), copying(9.999).recording(1000), 0.01),
    "synchronizing-calls": (waiting(10).recording(1000), waiting(9.999).recording(1000), 0.01),
    "pageable-copies": (pageable(10).recording(1000), pageable(9.999).recording(1000), 0.01),
    "null-stream": (turns(50).recording(1000), turns(49.999).recording(1000), 0.05),
    "compilation": (compiling(10).recording(1000), compiling(9.999).recording(1000), 0.01),
    "tiny-kernels": (tiny().recording(1000), tiny(49).recording(1000), 0.049),
    "no-gpu-work": (Recorded().recording(1000), busy(1000).recording(1000), 0),
    "not-recorded": (
        replace(busy(1000).recording(1000), kinds=("kernel", "memcpy", "memset", "compilation")),
        busy(1000).recording(1000),
        0,
    ),
}


def found(recording, code):
    """The only finding with that code."""
    (finding,) = (each for each in diagnose(recording) if each.code == code)
    return finding


def codes(recording):
    return [finding.code for finding in diagnose(recording)]


class TestThresholds:
    @pytest.mark.parametrize("code", SIDES)
    def test_seen_on_one_side_only(self, code):
        beyond, within, share = SIDES[code]
        assert codes(beyond).count(code) == 1
        assert code not in codes(within)
        finding = found(beyond, code)
        assert finding.share == pytest.approx(share, rel=1e-12)
        assert finding.cost_time == pytest.approx(share * beyond.duration * 1e-9, rel=1e-12)

    def test_each_rule_has_its_sides(self):
        assert list(SIDES) == [rule.__name__.replace("_", "-") for rule in RULES]

    @pytest.mark.parametrize("n_streams", [1, 3])
    def test_nothing_is_said_of_a_busy_device(self, n_streams):
        recorded = Recorded()
        for stream in range(n_streams):
            busy(1000, recorded, stream=7 + stream)
        assert codes(recorded.recording(1000)) == []

    def test_nothing_is_said_of_work_queued_ahead_with_small_gaps(self):
        recorded = Recorded()
        for i in range(49):
            recorded.launch("gemm", i, 100 + 20.0 * i, 19, call=1)
        assert codes(recorded.recording(1100)) == []

    def test_every_finding_says_what_to_do(self):
        for code, (beyond, _, _) in SIDES.items():
            finding = found(beyond, code)
            assert isinstance(finding, Note)
            assert finding.message.endswith(".")
            assert finding.advice.endswith(".")

    def test_docstrings_state_the_threshold(self):
        for rule in RULES:
            assert re.search(r"[.]$", inspect.getdoc(rule).splitlines()[0])


class TestLaunchBound:
    def test_a_loop_of_short_kernels(self):
        recording = launch_loop().recording(1000)
        finding = found(recording, "launch-bound")
        assert finding.share == pytest.approx(0.792)
        assert finding.cost_time == pytest.approx(792e-6)
        assert finding.table == "activities"
        assert sorted(finding.rows.tolist()) == list(range(1, 100))
        assert (finding.message, finding.advice) == (
            "GPU-0 was idle for 792 us (79.2% of the recording) in 99 gaps, while the host was "
            "launching what came next.",
            "Capture a CUDA graph, fuse kernels, or give each launch more work.",
        )
        assert finding.examples[0] == "at 0.016 ms: sqrt, 2.00 us, costs 8.00 us"

    def test_the_longest_gaps_come_first(self):
        recorded = Recorded()
        for start, at in ((0, 0), (20, 15), (90, 85), (60, 55)):
            recorded.launch(f"at {start}", at, start, 5)
        recording = recorded.recording(100)
        finding = found(recording, "launch-bound")
        names = [recording.names[row["name"]] for row in recording.activities[finding.rows]]
        assert names == ["at 60", "at 90", "at 20"]
        assert finding.cost_time == pytest.approx(75e-6)

    @pytest.mark.parametrize(("call_end", "share"), [(10, 0), (10.001, 0.5), (60, 0.5)])
    def test_the_host_was_late_if_the_call_ended_within_the_gap(self, call_end, share):
        recorded = Recorded()
        recorded.launch("a", 0, 0, 10)
        recorded.launch("b", 5, 60, 40, call=call_end - 5)
        assert sum(each.share for each in diagnose(recorded.recording(100))) == share

    def test_a_device_is_idle_if_all_its_streams_are(self):
        recorded = launch_loop()
        recorded.launch("gemm", -10, 0, 496, stream=9)
        assert found(recorded.recording(1000), "launch-bound").share == pytest.approx(0.4)

    def test_of_several_devices_the_one_that_loses_most(self):
        recorded = launch_loop(10)
        launch_loop(20, 5, 2, 3, recorded, device=3)
        recording = recorded.recording(100)
        finding = found(recording, "launch-bound")
        assert finding.share == pytest.approx(0.72)
        assert "GPU-0 was idle for 72.0 us" in finding.message
        assert finding.message.endswith(" Others: GPU-3 57.0%.")
        assert set(recording.activities["device"][finding.rows]) == {0}

    def test_a_device_is_not_idle_for_another_that_is(self):
        recorded = launch_loop(device=1)
        busy(1000, recorded, device=0)
        finding = found(recorded.recording(1000), "launch-bound")
        assert finding.message.startswith("GPU-1 was idle for 792 us")
        assert "Others" not in finding.message

    def test_whichever_thread_launches(self):
        recorded = Recorded()
        for i in range(10):
            recorded.launch("sqrt", 10 * i, 10 * i + 6, 2, thread=(MAIN, OTHER)[i % 2])
        assert found(recorded.recording(100), "launch-bound").share == pytest.approx(0.72)

    def test_what_recording_adds_to_launches_is_left_out(self):
        recorded = launch_loop()
        recording = recorded.recording(1000, launch_time=2e-6, recorded_launch_time=5e-6)
        finding = found(recording, "launch-bound")
        assert finding.share == pytest.approx(0.495)
        assert "(3.00 us that recording adds to each are left out)." in finding.message
        recording = recorded.recording(1000, launch_time=2e-6, recorded_launch_time=11e-6)
        assert codes(recording) == []

    @pytest.mark.parametrize("times", [(None, 5e-6), (2e-6, None), (5e-6, 2e-6)])
    def test_unless_that_is_unknown(self, times):
        recording = launch_loop().recording(
            1000, launch_time=times[0], recorded_launch_time=times[1]
        )
        finding = found(recording, "launch-bound")
        assert finding.share == pytest.approx(0.792)
        assert "left out" not in finding.message

    def test_not_within_a_graph(self):
        recorded = Recorded()
        number = recorded.next_id()
        recorded.call("cudaGraphLaunch", 0, 4, correlation_id=number)
        for i in range(100):
            recorded.activity("kernel", "sqrt", 10 + 10 * i, 2, correlation_id=number, graph_id=1)
        assert codes(recorded.recording(1010)) == []

    def test_not_without_the_launching_calls(self):
        recorded = Recorded()
        for i in range(10):
            recorded.activity("kernel", "sqrt", 10 * i, 2, correlation_id=i + 1)
        recording = replace(recorded.recording(100), kinds=("kernel",))
        assert codes(recording) == ["not-recorded"]

    def test_time_outside_of_the_recording_does_not_count(self):
        recorded = Recorded()
        recorded.launch("a", -50, -40, 20)
        recorded.launch("b", 30, 40, 70)
        recorded.launch("c", 140, 150, 10)
        assert found(recorded.recording(100), "launch-bound").share == pytest.approx(0.4)

    def test_not_while_compiling(self):
        recorded = pause(400)
        recorded.compilation("k", 500, 200)
        assert codes(recorded.recording(1000)) == ["compilation"]
        recorded = pause(400)
        recorded.compilation("k", 500, 199)
        assert codes(recorded.recording(1000)) == ["launch-bound", "compilation"]


class TestHostBusy:
    def test_what_it_says(self):
        recorded = pause(5000, at=1000, end=10000)
        finding = found(recorded.recording(10000), "host-busy")
        assert finding.message == (
            "GPU-0 was idle for 5.00 ms (50.0% of the recording) in 1 gap, while the host did "
            "something else for over 1.00 ms each time."
        )
        assert finding.examples == ("at 6.000 ms: b, 4.00 ms, costs 5.00 ms",)
        assert finding.rows.tolist() == [1]

    def test_its_share_matters_too(self):
        recording = pause(1005, at=1000, end=200_000).recording(100_500)
        assert found(recording, "host-busy").share == pytest.approx(0.01)
        assert codes(pause(1005, at=1000, end=200_000).recording(100_501)) == []

    def test_after_a_wait(self):
        recorded = pause(3000, at=500, end=10_000, launch=3400)
        recorded.call("cudaDeviceSynchronize", 400, 110)
        assert codes(recorded.recording(10_000)) == ["host-busy"]

    def test_not_during_a_wait(self):
        recorded = pause(3000, at=500, end=10_000, launch=3400)
        recorded.call("cudaFree", 400, 2900)
        assert codes(recorded.recording(10_000)) == ["synchronizing-calls"]


class TestSynchronizingCopies:
    def test_what_it_says(self):
        recording = copying(36).recording(1000)
        finding = found(recording, "synchronizing-copies")
        assert finding.message == (
            "The host waited for 1 copy, and GPU-0 did nothing else, for 36.0 us (3.6% of the "
            "recording)."
        )
        assert finding.examples == ("at 0.500 ms: memcpy DtoH, 3.00 us, costs 36.0 us",)
        assert recording.names[recording.activities["name"][finding.rows[0]]] == "memcpy DtoH"

    def copied(self, **fields):
        """The codes for a busy device between two parts of whose work a copy is."""
        recorded = Recorded()
        recorded.launch("a", 0, 0, 500)
        recorded.copy(495, 500, 20, 4096, **{"call": 30, **fields})
        recorded.launch("b", 1, 520, 480, stream=9)
        return codes(recorded.recording(1000))

    def test_one_that_is_not_asynchronous(self):
        assert self.copied(is_async=False) == ["synchronizing-copies"]

    def test_one_that_pageable_memory_makes_wait(self):
        to_host = {"source": "device", "target": "pageable"}
        assert "synchronizing-copies" in self.copied(**to_host)
        assert "synchronizing-copies" in self.copied(**to_host, call=25)
        assert "synchronizing-copies" not in self.copied(**to_host, call=24.999)

    def test_not_one_whose_call_merely_took_long(self):
        assert self.copied() == []

    @pytest.mark.parametrize("inside", ["device", "array"])
    def test_not_one_within_a_device(self, inside):
        assert self.copied(is_async=False, source=inside) == []

    def test_not_one_of_a_graph(self):
        assert self.copied(is_async=False, graph_id=1) == []

    def test_not_beside_other_work(self):
        recorded = copying(36)
        recorded.launch("beside", 3, 400, 200, stream=9)
        assert codes(recorded.recording(1000)) == []

    def test_other_work_is_taken_off(self):
        recorded = Recorded()
        recorded.launch("a", 0, 0, 500)
        recorded.copy(480, 490, 50, 1, is_async=False, call=70)
        recorded.launch("beside", 3, 510, 15, stream=9)
        recorded.launch("b", 560, 570, 430)
        finding = found(recorded.recording(1000), "synchronizing-copies")
        assert finding.cost_time == pytest.approx((10 + 45) * 1e-6)

    def test_one_that_waited_for_the_device_before(self):
        recorded = Recorded()
        recorded.launch("a", 0, 0, 500)
        recorded.copy(10, 505, 20, 4096, is_async=False, call=525)
        recorded.launch("b", 540, 550, 450)
        recording = recorded.recording(1000)
        assert codes(recording) == ["synchronizing-copies"]
        assert diagnose(recording)[0].cost_time == pytest.approx(50e-6)

    def test_not_what_the_host_did_after_it(self):
        recorded = Recorded()
        recorded.launch("a", 0, 0, 500)
        recorded.copy(490, 500, 100, 4096, is_async=False, call=115)
        recorded.launch("b", 3000, 3010, 990)
        recording = recorded.recording(4000)
        assert codes(recording) == ["host-busy", "synchronizing-copies"]
        assert [each.cost_time for each in diagnose(recording)] == pytest.approx([2410e-6, 105e-6])

    def test_without_its_call(self):
        recorded = Recorded()
        recorded.launch("a", 0, 0, 500)
        recorded.activity("memcpy", "memcpy HtoD", 500, 20, source="pinned", target="device")
        recorded.launch("b", 1, 520, 480)
        recording = recorded.recording(1000)
        assert found(recording, "synchronizing-copies").share == pytest.approx(0.02)
        assert codes(replace(recording, calls=np.zeros(0, CALL))) == ["synchronizing-copies"]

    def test_of_several_devices_the_one_that_loses_most(self):
        recorded = Recorded()
        for device, takes in ((0, 20), (1, 50)):
            busy(500, recorded, device=device, every=500)
            recorded.copy(500, 501, takes, 1, is_async=False, call=takes + 2, device=device)
            busy(1000, recorded, 502 + takes, device=device, every=448)
        finding = found(recorded.recording(1000), "synchronizing-copies")
        assert finding.message.startswith("The host waited for 1 copy, and GPU-1 did nothing")
        assert finding.share == pytest.approx(0.052)
        assert finding.message.endswith(" Others: GPU-0 2.2%.")


class TestSynchronizingCalls:
    def test_what_it_says(self):
        recorded = Recorded()
        for i in range(10):
            recorded.launch("sqrt", 100 * i, 100 * i + 6, 50)
            name = "cudaFree" if i % 5 == 4 else "cudaStreamSynchronize"
            recorded.call(name, 100 * i + 10, 50 + i)
        recording = recorded.recording(1000)
        assert codes(recording) == ["synchronizing-calls"]
        finding = diagnose(recording)[0]
        assert finding.share == pytest.approx(0.45)
        assert finding.message == (
            "GPU-0 ran dry and was idle for 450 us (45.0% of the recording) because the host was "
            "in calls that wait: cudaStreamSynchronize (8), cudaFree (1)."
        )
        assert finding.table == "calls"
        assert len(finding.rows) == 9
        assert finding.examples[1] == "at 0.110 ms: cudaStreamSynchronize, 51.0 us, costs 50.0 us"

    @pytest.mark.parametrize(
        "name",
        [
            "cudaDeviceSynchronize",
            "cudaStreamSynchronize_v3020",
            "cudaEventSynchronize",
            "cudaMemcpy",
            "cudaMemcpy2D_ptds",
            "cudaMalloc",
            "cudaMallocHost",
            "cudaMallocManaged",
            "cudaHostAlloc",
            "cudaFree",
            "cudaFreeHost",
            "cuCtxSynchronize",
            "cuStreamSynchronize_ptsz",
            "cuEventSynchronize",
            "cuMemcpyDtoH_v2",
            "cuMemAlloc_v2",
            "cuMemAllocManaged",
            "cuMemFree_v2",
            "cuMemFreeHost",
            "cuMemHostAlloc",
        ],
    )
    def test_calls_that_wait(self, name):
        assert codes(waiting(100, name).recording(1000)) == ["synchronizing-calls"]

    @pytest.mark.parametrize(
        "name",
        [
            "cudaLaunchKernel",
            "cudaMemcpyAsync",
            "cudaMallocAsync",
            "cudaFreeAsync",
            "cuMemAllocAsync_ptsz",
            "cuMemFreeAsync",
            "cuMemcpyDtoHAsync_v2",
            "cuMemGetInfo",
            "mycudaFree",
        ],
    )
    def test_calls_that_do_not(self, name):
        assert codes(waiting(100, name).recording(1000)) == ["launch-bound"]

    def test_not_of_a_thread_that_launches_nothing(self):
        assert codes(waiting(100, thread=OTHER).recording(1000)) == ["launch-bound"]

    def test_not_if_there_was_more_to_do(self):
        recorded = busy(1000)
        recorded.call("cudaStreamSynchronize", 50, 700)
        assert codes(recorded.recording(1000)) == []

    def test_not_at_the_end(self):
        recorded = busy(500)
        recorded.call("cudaDeviceSynchronize", 50, 950)
        assert codes(recorded.recording(1000)) == []

    def test_that_ended_before_the_device_ran_dry(self):
        recorded = pause(100)
        recorded.call("cudaStreamSynchronize", 400, 99.999)
        assert codes(recorded.recording(1000)) == ["launch-bound"]

    def test_that_took_half_of_the_gap(self):
        for takes, code in ((50, "synchronizing-calls"), (49.999, "launch-bound")):
            recorded = pause(100)
            recorded.call("cudaMalloc", 510, takes)
            assert codes(recorded.recording(1000)) == [code]

    def test_followed_by_a_short_one(self):
        recorded = waiting(100)
        recorded.call("cudaFree", 510, 2)
        finding = found(recorded.recording(1000), "synchronizing-calls")
        assert finding.message.endswith("cudaStreamSynchronize (1).")

    def test_that_make_others(self):
        recorded = waiting(100, "cudaDeviceSynchronize")
        recorded.call("cuCtxSynchronize", 491, 10, kind="driver")
        finding = found(recorded.recording(1000), "synchronizing-calls")
        assert finding.message.endswith("cudaDeviceSynchronize (1).")

    def test_of_many_kinds(self):
        recorded = Recorded()
        for i, name in enumerate(("cudaFree", "cudaMalloc", "cuMemAlloc", "cuMemFree", "end")):
            recorded.launch("sqrt", 100 * i, 100 * i + 6, 50)
            recorded.call(name, 100 * i + 10, 50)
        finding = found(recorded.recording(500), "synchronizing-calls")
        assert finding.message.endswith("cudaFree (1), cudaMalloc (1), cuMemAlloc (1), others (1).")


class TestPageableCopies:
    def test_what_it_says(self):
        recorded = busy(1000)
        recorded.copy(0, 100, 30, 300_000, source="pageable")
        recorded.copy(1, 120, 60, 240_000, source="device", target="pageable")
        recorded.copy(2, 300, 60, 240_000)
        recording = recorded.recording(1000)
        finding = found(recording, "pageable-copies")
        assert finding.message == (
            "2 copies from or to pageable memory took 80.0 us (8.0% of the recording), at 6 GB/s."
        )
        assert "pinned memory" in finding.advice
        assert finding.examples == (
            "at 0.120 ms: memcpy HtoD, 60.0 us",
            "at 0.100 ms: memcpy HtoD, 30.0 us",
        )

    def test_without_its_call_or_any(self):
        recording = replace(pageable(20).recording(1000), calls=np.zeros(0, CALL))
        assert codes(recording) == ["pageable-copies"]


class TestNullStream:
    def test_both_wait_for_each_other(self):
        recorded = Recorded()
        recorded.launch("a", 0, 10, 10, stream=7, is_null_stream=True, call=2)
        recorded.launch("b", 4, 20, 10, stream=13, call=1)
        recorded.launch("c", 6, 30, 10, stream=7, is_null_stream=True, call=2)
        recording = recorded.recording(100)
        finding = found(recording, "null-stream")
        assert finding.share == pytest.approx(0.2)
        assert finding.message == (
            "Work on GPU-0's null stream and on other streams was held up by each other for up to "
            "20.0 us (20.0% of the recording): they never run together."
        )
        assert sorted(recording.names[n] for n in recording.activities["name"][finding.rows]) == [
            "a", "c"
        ]  # fmt: skip
        assert finding.examples[0] == "at 0.010 ms: a, 10.0 us"

    @pytest.mark.parametrize("is_null", [True, False])
    def test_not_on_one_kind_of_stream_alone(self, is_null):
        recorded = Recorded()
        recorded.launch("a", 0, 0, 500, stream=7, is_null_stream=is_null, call=1)
        recorded.launch("b", 2, 500, 500, stream=8, is_null_stream=is_null, call=1)
        assert codes(recorded.recording(1000)) == []

    def test_not_what_was_queued_later(self):
        recorded = turns(100)
        recording = recorded.recording(1000)
        recording.calls["end"] = recording.activities["start"]
        assert codes(recording) == []

    def test_not_what_waited_for_its_own_stream(self):
        recorded = Recorded()
        recorded.launch("other", 0, 0, 900, stream=13, call=1)
        recorded.launch("null", 500, 900, 50, stream=7, is_null_stream=True, call=400)
        recorded.launch("other", 2, 950, 50, stream=13, call=1)
        recording = recorded.recording(1000)
        assert found(recording, "null-stream").share == pytest.approx(0.05)

    def test_not_beside_a_stream_that_overlaps(self):
        recorded = turns(400)
        recorded.launch("overlaps", 0, 300, 2, stream=13)
        assert codes(recorded.recording(1000)) == []
        recorded = turns(400)
        recorded.launch("does not", 0, 499.5, 2, stream=13)
        assert codes(recorded.recording(1000)) == ["null-stream"]

    def test_not_on_another_device(self):
        recorded = Recorded()
        recorded.launch("null", 0, 0, 500, is_null_stream=True, call=1)
        recorded.launch("other", 2, 500, 500, stream=13, call=1, device=1)
        assert codes(recorded.recording(1000)) == []

    def test_not_without_the_launching_calls(self):
        recording = replace(turns(400).recording(1000), calls=np.zeros(0, CALL))
        assert codes(recording) == []


class TestCompilation:
    def test_what_it_says(self):
        recorded = busy(1000)
        recorded.compilation("cupy_sum", 100, 200)
        recorded.compilation("preprocess", 150, 50, source="preprocess", thread=OTHER)
        recorded.compilation("cupy_max", 250, 100)
        finding = found(recorded.recording(1000), "compilation")
        assert finding.share == pytest.approx(0.25)
        assert finding.message == (
            "CuPy spent 250 us (25.0% of the recording) on compiling; by where the code came from: "
            "nvrtc (2), preprocess (1)."
        )
        assert finding.table == "compilations"
        assert finding.examples[0] == "at 0.100 ms: cupy_sum, 200 us"

    def test_without_any_work(self):
        recorded = Recorded()
        recorded.compilation("cupy_sum", 100, 2000)
        finding = found(recorded.recording(1000), "compilation")
        assert finding.share == pytest.approx(0.9)


class TestTinyKernels:
    def test_what_it_says(self):
        finding = found(launch_loop().recording(1000), "tiny-kernels")
        assert finding.share == pytest.approx(0.792)
        assert finding.message == (
            "100 of 100 kernels took less than 10.0 us each, and GPU-0 was idle before them for "
            "792 us (79.2% of the recording)."
        )
        assert "CUDA graph" in finding.advice

    def test_most_have_to_be_tiny(self):
        assert codes(tiny(50, 49).recording(1000)) == ["tiny-kernels"]
        assert codes(tiny(50, 50).recording(1000)) == []

    def test_not_those_that_take_longer(self):
        assert codes(tiny(takes=10).recording(1000)) == []

    def test_not_those_of_graphs(self):
        recording = tiny().recording(1000)
        recording.activities["graph_id"][0] = 1
        assert codes(recording) == []

    def test_the_gaps_have_to_matter(self):
        assert codes(tiny(gap=0.2).recording(1000)) == []

    def test_not_the_gaps_with_another_cause(self):
        recorded = tiny(gap=1)
        recorded.launch("sqrt", 1100, 3000, 5, call=1)
        assert found(recorded.recording(4000), "tiny-kernels").cost_time == pytest.approx(49e-6)

    def test_without_calls(self):
        recording = replace(tiny().recording(1000), calls=np.zeros(0, CALL))
        assert codes(recording) == ["tiny-kernels"]


class TestRemarks:
    def test_dropped_records_come_first(self):
        recording = launch_loop().recording(1000, n_dropped=1234)
        assert codes(recording)[0] == "dropped-records"
        assert diagnose(recording)[0].message.startswith("1,234 records were lost")

    def test_what_was_not_recorded_comes_last_and_is_named(self):
        recording = replace(launch_loop().recording(1000), kinds=("kernel", "runtime", "driver"))
        finding = diagnose(recording)[-1]
        assert finding.message == (
            "Not recorded, so not looked at: copies, what the device did in seeming gaps, "
            "compilations."
        )
        assert finding.advice == "Record these kinds as well: 'memcpy', 'memset', 'compilation'."

    def test_no_work_is_no_finding_if_it_was_not_recorded(self):
        recording = replace(Recorded().recording(1000), kinds=("runtime", "driver"))
        assert codes(recording) == ["not-recorded"]

    @pytest.mark.parametrize("duration", [0, 1000])
    def test_of_nothing(self, duration):
        assert codes(Recorded().recording(duration)) == ["no-gpu-work"]
        assert codes(busy(1000).recording(0)) == []
        assert codes(compiling(500).recording(0)) == []


class TestDiagnosis:
    def test_it_is_a_sequence_sorted_by_share(self):
        recorded = launch_loop()
        recorded.compilation("k", 995, 100)
        diagnosis = diagnose(recorded.recording(1095))
        assert isinstance(diagnosis, Sequence)
        assert [each.code for each in diagnosis] == ["launch-bound", "tiny-kernels", "compilation"]
        assert diagnosis[0] is diagnosis.findings[0]
        assert len(diagnosis[1:]) == 2
        shares = [each.share for each in diagnosis]
        assert shares == sorted(shares, reverse=True)

    def test_its_text(self):
        recorded = launch_loop(10)
        recorded.compilation("k", 95, 5)
        assert str(diagnose(recorded.recording(100))) == (
            "launch-bound: GPU-0 was idle for 72.0 us (72.0% of the recording) in 9 gaps,\n"
            "  while the host was launching what came next. Capture a CUDA graph, fuse\n"
            "  kernels, or give each launch more work.\n"
            "    at 0.016 ms: sqrt, 2.00 us, costs 8.00 us\n"
            "    at 0.026 ms: sqrt, 2.00 us, costs 8.00 us\n"
            "    at 0.036 ms: sqrt, 2.00 us, costs 8.00 us\n"
            "\n"
            "compilation: CuPy spent 5.00 us (5.0% of the recording) on compiling; by where\n"
            "  the code came from: nvrtc (1). Warm up before recording, and keep shapes,\n"
            "  dtypes and the kernels' source the same.\n"
            "    at 0.095 ms: k, 5.00 us"
        )

    def test_an_empty_one_says_so(self):
        diagnosis = diagnose(busy(1000).recording(1000))
        assert not diagnosis
        assert str(diagnosis) == "Nothing was found that keeps the GPU from its work."
        assert repr(diagnosis) == "<Diagnosis: nothing found>"

    def test_its_short_form(self):
        diagnosis = diagnose(launch_loop().recording(1000))
        assert repr(diagnosis) == "<Diagnosis: launch-bound 79.2%, tiny-kernels 79.2%>"

    def test_ipython_shows_the_text(self):
        pretty = pytest.importorskip("IPython.lib.pretty").pretty
        diagnosis = diagnose(launch_loop().recording(1000))
        assert pretty(diagnosis) == str(diagnosis)

    def test_its_parts_cannot_be_changed(self):
        diagnosis = diagnose(launch_loop().recording(1000))
        with pytest.raises(FrozenInstanceError):
            diagnosis[0].share = 0
        with pytest.raises(ValueError, match="read-only"):
            diagnosis[0].rows[0] = 0

    def test_two_of_one_recording_are_equal(self):
        recording = launch_loop().recording(1000)
        assert diagnose(recording) == diagnose(recording)
        assert diagnose(recording) != diagnose(busy(1000).recording(1000))
        assert hash(diagnose(recording)) == hash(diagnose(recording))

    @pytest.mark.parametrize(
        "name", ["a\nb\x1b[31m", "", "<b>", "k<" + "float, " * 500 + ">()", "\udc80"]
    )
    def test_any_name_fits_in_a_line(self, name):
        recorded = Recorded()
        for i in range(3):
            recorded.launch(name, 100 * i, 100 * i + 10, 20)
        recorded.compilation(name, 290, 10, source=name)
        for finding in diagnose(recorded.recording(300)):
            for line in finding.examples:
                assert line.isprintable()
                assert len(line) < 100
            assert finding.message.isprintable()

    def test_a_recording_is_left_as_it_was(self):
        recording = copying(100).recording(1000)
        before = {name: getattr(recording, name).copy() for name in ("activities", "calls")}
        diagnose(recording)
        for name, table in before.items():
            assert np.array_equal(getattr(recording, name), table)


class TestSpeed:
    def test_a_million_records(self):
        n = 50_000
        once = launch_loop(10).recording(100)
        many = {name: np.tile(getattr(once, name), n) for name in ("activities", "calls")}
        for rows in many.values():
            shift = np.repeat(np.arange(n), 10)
            rows["start"] += 100_000 * shift
            rows["end"] += 100_000 * shift
            rows["correlation_id"] += (10 * shift).astype(np.uint32)
        recording = replace(once, end=once.begin + 100_000 * n, **many)
        start = time.process_time()
        diagnosis = diagnose(recording)
        assert time.process_time() - start < 20
        assert [each.code for each in diagnosis] == ["launch-bound", "tiny-kernels"]
        assert diagnosis[0].cost_time == pytest.approx(8e-6 * (10 * n - 1))
        assert len(diagnosis[0].rows) == 10 * n - 1
