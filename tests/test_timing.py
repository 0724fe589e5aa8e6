import asyncio
import sys
import threading
import types
from contextlib import contextmanager

import numpy as np
import pytest
from example_recordings import Recorded

import gpubench
from gpubench.activity.scope import timing
from gpubench.activity.scope.timing import (
    TIMING_ALL,
    TIMING_GRAPH,
    TIMING_KERNEL,
    TIMING_KERNEL_BUILTIN,
    TIMING_MEMCPY,
    TIMING_MEMSET,
    TimingResult,
    timing_begin,
    timing_end,
    timing_print,
    timing_results,
)
from gpubench.errors import ArgumentError, UnsupportedError


def rows(recording, activity_filter=TIMING_ALL):
    return [
        (r.device, r.name, r.filter, round(r.elapsed, 6))
        for r in timing_results(recording, activity_filter)
    ]


@pytest.fixture
def mixed():
    recorded = Recorded()
    recorded.launch("sqrt", 0, 10, 5)
    recorded.copy(20, 30, 100, 4096)
    recorded.activity("memset", "memset", 200, 2, correlation_id=recorded.next_id(), device=1)
    return recorded.recording(300)


def test_flags_have_warps_values():
    flags = (TIMING_KERNEL, TIMING_KERNEL_BUILTIN, TIMING_MEMCPY, TIMING_MEMSET, TIMING_GRAPH)
    assert flags == (1, 2, 4, 8, 16)
    assert TIMING_ALL == 0xFFFFFFFF


# Results of a recording


def test_results_name_the_device_the_activity_its_flag_and_milliseconds(mixed):
    assert rows(mixed) == [
        ("cuda:0", "sqrt", TIMING_KERNEL, 0.005),
        ("cuda:0", "memcpy HtoD", TIMING_MEMCPY, 0.1),
        ("cuda:1", "memset", TIMING_MEMSET, 0.002),
    ]


@pytest.mark.parametrize(
    ("activity_filter", "names"),
    [
        (TIMING_KERNEL, ["sqrt"]),
        (TIMING_KERNEL_BUILTIN, ["sqrt"]),
        (TIMING_MEMCPY | TIMING_MEMSET, ["memcpy HtoD", "memset"]),
        (TIMING_GRAPH, []),
        (0, []),
    ],
)
def test_results_are_those_that_the_flags_ask_for(mixed, activity_filter, names):
    assert [name for _, name, *_ in rows(mixed, activity_filter)] == names


def test_results_are_in_the_order_of_the_calls_not_of_the_starts():
    recorded = Recorded()
    recorded.launch("late", 0, 90, 5, stream=7)
    recorded.launch("early", 4, 10, 5, stream=8)
    assert [name for _, name, *_ in rows(recorded.recording(100))] == ["late", "early"]


def test_a_graph_launch_lasts_from_its_first_start_to_its_last_end():
    recorded = Recorded()
    for at in (0, 500):
        launch = recorded.next_id()
        recorded.call("cudaGraphLaunch", at, 5, correlation_id=launch)
        common = {"correlation_id": launch, "graph_id": 3}
        recorded.activity("kernel", "long", at + 10, 200, stream=7, **common)
        recorded.activity("kernel", "short", at + 30, 5, stream=8, **common)
        recorded.activity("memset", "memset", at + 20, 5, stream=8, **common)
    recorded.launch("alone", 900, 910, 5)
    recording = recorded.recording(1000)
    graph = ("cuda:0", "graph", TIMING_GRAPH, 0.2)
    assert rows(recording, TIMING_GRAPH) == [graph, graph]
    nodes = [
        ("cuda:0", "long", TIMING_KERNEL, 0.2),
        ("cuda:0", "memset", TIMING_MEMSET, 0.005),
        ("cuda:0", "short", TIMING_KERNEL, 0.005),
    ]
    alone = ("cuda:0", "alone", TIMING_KERNEL, 0.005)
    assert rows(recording) == [graph, *nodes, graph, *nodes, alone]


def test_nothing_recorded_gives_an_empty_list():
    assert rows(Recorded().recording(100)) == []


def test_results_are_plain_values(mixed):
    (first, *_) = timing_results(mixed, TIMING_ALL)
    assert first == TimingResult("cuda:0", "sqrt", TIMING_KERNEL, 0.005)
    assert [type(value) for value in first] == [str, str, int, float]


def test_strange_names_stay_as_they_are():
    recorded = Recorded()
    name = 'void f<"a\nb">(int)' + "x" * 5000
    recorded.launch(name, 0, 10, 5)
    assert rows(recorded.recording(100))[0][1] == name


# Printing


def test_print_shows_tables_with_the_indentation(mixed, capsys):
    timing_print(timing_results(mixed, TIMING_ALL), "    ")
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("    ") for line in lines if line)
    assert any("sqrt" in line and "0.005000" in line and "cuda:0" in line for line in lines)


def test_print_says_so_if_there_is_nothing(capsys):
    timing_print([])
    assert len(capsys.readouterr().out.splitlines()) == 1


# Recording


class StandIn:
    """A recorder that tells of its use and delivers what it is given."""

    def __init__(self):
        self.log = []
        self.recording = Recorded().recording(10)

    @contextmanager
    def record_activity(self, kinds=None, *, synchronize=True):
        self.log.append(("record", tuple(kinds), synchronize))
        trace = types.SimpleNamespace(recording=None)
        yield trace
        self.log.append("end")
        trace.recording = self.recording


@pytest.fixture
def recorder(monkeypatch):
    stand_in = StandIn()
    module = types.SimpleNamespace(record_activity=stand_in.record_activity)
    monkeypatch.setitem(sys.modules, "gpubench.activity.recorder", module)
    monkeypatch.setattr(timing, "wait_for_gpus", lambda: stand_in.log.append("wait"))
    return stand_in


def test_gpus_are_waited_for_before_both_ends(recorder, mixed):
    recorder.recording = mixed
    timing_begin()
    assert [r.name for r in timing_end()] == ["sqrt", "memcpy HtoD", "memset"]
    everything = ("kernel", "memcpy", "memset")
    assert recorder.log == ["wait", ("record", everything, False), "wait", "end"]


def test_each_end_waits_or_not_as_it_is_told(recorder):
    timing_begin(synchronize=False)
    timing_end()
    timing_begin()
    timing_end(synchronize=False)
    waits = [entry for entry in recorder.log if isinstance(entry, str)]
    assert waits == ["wait", "end", "wait", "end"]


@pytest.mark.parametrize(
    ("activity_filter", "kinds"),
    [
        (TIMING_KERNEL, ("kernel",)),
        (TIMING_KERNEL_BUILTIN, ("kernel",)),
        (TIMING_MEMCPY | TIMING_MEMSET, ("memcpy", "memset")),
        (TIMING_GRAPH, ("kernel", "memcpy", "memset")),
        (np.int64(TIMING_MEMSET), ("memset",)),
    ],
)
def test_only_what_is_needed_is_recorded(recorder, activity_filter, kinds):
    timing_begin(activity_filter)
    timing_end()
    assert ("record", kinds, False) in recorder.log


def test_lost_records_are_told_of(recorder):
    recorder.recording = Recorded().recording(10, n_dropped=7)
    timing_begin()
    with pytest.warns(RuntimeWarning, match="7 activities were lost"):
        assert timing_end() == []


@pytest.mark.parametrize("activity_filter", ["kernel", -1, 1.0, None, True])
def test_a_filter_that_is_no_sum_of_flags_is_refused(recorder, activity_filter):
    with pytest.raises(ArgumentError, match="activity_filter"):
        timing_begin(activity_filter)
    assert recorder.log == []


def test_an_end_without_a_beginning_is_refused():
    with pytest.raises(UnsupportedError, match="timing_begin"):
        timing_end()


def test_where_nothing_can_be_recorded_the_beginning_says_so(no_cupy):
    with pytest.raises(UnsupportedError, match="no GPU found"):
        timing_begin()
    with pytest.raises(UnsupportedError, match="timing_begin"):
        timing_end()


def names():
    return [result.name for result in timing_end()]


def test_kernels_of_a_simulated_gpu(gpu):
    gpu.launch(1e-3, "before")
    timing_begin()
    gpu.launch(2e-3, "sqrt")
    gpu.launch(1e-3, "sum")
    sqrt, total = timing_end()
    gpu.launch(1e-3, "after")
    assert (sqrt.device, sqrt.name, total.name) == ("cuda:0", "sqrt", "sum")
    assert sqrt.elapsed == pytest.approx(2, rel=1e-3)
    assert total.elapsed == pytest.approx(1, rel=1e-3)


def test_graphs_of_a_simulated_gpu(gpu):
    device = gpu.device(0)

    def work():
        gpu.launch(2e-3, "a")
        gpu.launch(1e-3, "b")

    graph = device.capture(work)
    timing_begin()
    graph.launch()
    results = timing_end()
    assert [r.name for r in results] == ["graph", "a", "b"]
    assert results[0].elapsed == pytest.approx(3, rel=1e-2)


def test_pairs_nest(gpu):
    timing_begin()
    gpu.launch(1e-3, "first")
    timing_begin()
    gpu.launch(1e-3, "second")
    assert names() == ["second"]
    gpu.launch(1e-3, "third")
    assert names() == ["first", "second", "third"]


def test_devices_are_told_apart():
    with gpubench.simulated_gpu(jitter=0, n_devices=2) as gpu:
        timing_begin()
        gpu.launch(1e-3, "first")
        gpu.use_device(1)
        gpu.launch(1e-3, "second")
        assert [(r.device, r.name) for r in timing_end()] == [
            ("cuda:0", "first"),
            ("cuda:1", "second"),
        ]


def test_each_thread_ends_what_it_began(gpu):
    begun, ended = threading.Event(), threading.Event()
    found = {}

    def other():
        timing_begin(TIMING_MEMCPY)
        begun.set()
        ended.wait(10)
        found["other"] = names()

    thread = threading.Thread(target=other)
    timing_begin(TIMING_KERNEL)
    thread.start()
    begun.wait(10)
    gpu.launch(1e-3, "sqrt")
    found["main"] = names()
    ended.set()
    thread.join()
    assert found == {"main": ["sqrt"], "other": []}


def test_each_task_ends_what_it_began(gpu):
    async def record(activity_filter, waits):
        timing_begin(activity_filter)
        for _ in range(waits):
            await asyncio.sleep(0)
        gpu.launch(1e-3, "sqrt")
        return names()

    async def main():
        return await asyncio.gather(record(TIMING_KERNEL, 1), record(TIMING_MEMCPY, 5))

    assert asyncio.run(main()) == [["sqrt"], []]


def test_what_a_task_began_can_be_ended_after_it(gpu):
    async def begin():
        timing_begin()

    asyncio.run(begin())
    gpu.launch(1e-3, "sqrt")
    assert names() == ["sqrt"]
