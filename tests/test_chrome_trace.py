"""Files in the trace-event format: what they hold, and that viewers can read them."""

import gzip
import re
import time
import tracemalloc
from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from example_recordings import BEGIN, MAIN, Recorded
from large_recording import launches
from trace_events import document_of, events_of, labels_of, ns, row_of, strictly_parsed

from gpubench.render import chrome

OTHER = 2002
HOSTILE = [
    "",
    '"',
    "\\",
    'a\\"',
    "line\nbreak\ttab\0",
    "\ud800",
    "é\u2028😀",
    "</script>",
    "x" * 5000,
]


# ---- Recordings that are hard to draw


def nothing():
    return Recorded().recording(0, devices={}, threads={})


def crossing_ranges():
    recorded = Recorded()
    recorded.range("outer", 0, 100)
    recorded.range("crosses", 50, 100)
    recorded.range("in both", 60, 10)
    recorded.range("crosses both", 70, 120)
    recorded.range("same as outer", 0, 100)
    recorded.range("mark", 100, 0)
    recorded.range("at the end of another", 150, 10)
    recorded.compilation("cupy_add", 95, 20)
    recorded.call("cudaMalloc", 149, 2)
    return recorded.recording(200)


def several_threads_and_devices():
    recorded = Recorded()
    recorded.launch("one", 0, 10, 5)
    recorded.launch("two", 0, 10, 5, thread=OTHER, device=1)
    recorded.launch("three", 10, 15, 5, thread=OTHER, device=1, stream=0, is_null_stream=True)
    recorded.launch("four", 20, 30, 5, thread=3003, stream=13)
    threads = {MAIN: "MainThread", OTHER: "Thread-1", 9009: "idle"}
    return recorded.recording(50, devices={0: "a GPU", 1: "", 5: "idle"}, threads=threads)


def graph():
    recorded = Recorded()
    number = recorded.next_id()
    recorded.call("cudaGraphLaunch", 0, 10, correlation_id=number)
    recorded.call("cuGraphLaunch", 1, 8, kind="driver", correlation_id=number)
    for node in range(6):
        recorded.activity(
            "kernel", "node", 20 + 4 * node, 9, correlation_id=number, graph_id=3, stream=9
        )
    return recorded.recording(100)


def kernels_that_overlap_by_nanoseconds():
    recorded = Recorded()
    for number in range(10):
        recorded.launch("chained", 5 * number, 7 + 5 * number, 5.002)
    return recorded.recording(100)


def clocks_that_disagree():
    recorded = Recorded()
    recorded.launch("begins before its call", 10, 8, 5)
    recorded.launch("ends before its call", 30, 20, 5)
    recorded.launch("takes no time", 40, 50, 0)
    recorded.range("open when the recording began", -7.5, 20)
    return recorded.recording(100)


def every_kernel_before_its_call():
    recorded = Recorded()
    recorded.launch("ends before its call", 30, 20, 5)
    return recorded.recording(100)


def hostile_names():
    recorded = Recorded()
    for number, name in enumerate(HOSTILE):
        recorded.launch(name, 10 * number, 10 * number + 5, 3)
        recorded.range(name, 10 * number, 8, domain=name)
        recorded.range(name, 10 * number, 0)
        recorded.compilation(name, 10 * number + 6, 1, source=name)
    return recorded.recording(100, devices={0: '"\\\ud800'}, threads={MAIN: "\\"})


def calls_not_recorded():
    recorded = Recorded()
    recorded.activity("kernel", "orphan", 5, 5, correlation_id=77)
    return recorded.recording(20)


@pytest.mark.parametrize(
    "example",
    [
        nothing,
        crossing_ranges,
        several_threads_and_devices,
        graph,
        kernels_that_overlap_by_nanoseconds,
        clocks_that_disagree,
        every_kernel_before_its_call,
        hostile_names,
        calls_not_recorded,
    ],
)
def test_every_recording_makes_a_valid_file(example, tmp_path):
    recording = example()
    events = events_of(document_of(recording, tmp_path / "trace.json"))
    is_mark = recording.ranges["start"] == recording.ranges["end"]
    records = (recording.activities, recording.calls, recording.ranges, recording.compilations)
    assert len(events["i"]) == is_mark.sum()
    assert len(events["X"]) == sum(map(len, records)) - is_mark.sum()


# ---- What is in them


def test_a_launch_word_for_word(tmp_path):
    recorded = Recorded()
    recorded.launch(
        "sqrt", 1.5, 10, 5.25, grid=(4, 2, 1), block=(256, 1, 1), registers=32, shared_bytes=1024
    )
    document = document_of(recorded.recording(20), tmp_path / "trace.json")
    place = {"pid": 1, "tid": 3}
    device = {"pid": 2, "tid": 4}
    arrow = {"id": 1, "cat": "launch", "name": "launch"}
    assert document == {
        "displayTimeUnit": "ns",
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Host"}},
            {"ph": "M", "name": "process_sort_index", "pid": 1, "args": {"sort_index": 1}},
            {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "GPU-0 (a GPU)"}},
            {"ph": "M", "name": "process_sort_index", "pid": 2, "args": {"sort_index": 2}},
            {"ph": "M", "name": "thread_name", **place, "args": {"name": "MainThread"}},
            {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": 3}},
            {"ph": "M", "name": "thread_name", **device, "args": {"name": "stream 7"}},
            {"ph": "M", "name": "thread_sort_index", **device, "args": {"sort_index": 4}},
            {
                "ph": "X", "cat": "runtime", "name": "cudaLaunchKernel", **place,
                "ts": 1.5, "dur": 4.0, "args": {"correlation": 1},
            },
            {
                "ph": "X", "cat": "kernel", "name": "sqrt", **device, "ts": 10.0, "dur": 5.25,
                "args": {
                    "grid": [4, 2, 1], "block": [256, 1, 1], "registers": 32,
                    "shared bytes": 1024, "correlation": 1,
                },
            },
            {"ph": "s", **arrow, **place, "ts": 1.5},
            {"ph": "f", "bp": "e", **arrow, **device, "ts": 10.0},
        ],
        "otherData": {
            "began at (ns of the recording's clock)": BEGIN,
            "duration (us)": 20.0,
            "recorded": ["kernel", "memcpy", "memset", "runtime", "driver", "range", "compilation"],
            "records lost": 0,
        },
    }  # fmt: skip


def test_what_is_said_of_each_kind(tmp_path):
    recorded = Recorded()
    recorded.copy(0, 10, 5, 100_000, source="pageable", is_async=False)
    recorded.activity("memset", "memset", 20, 4, bytes=8_000, target="device", graph_id=9)
    recorded.activity("memset", "instant", 30, 0, bytes=8)
    recorded.call("cuLaunchKernel", 40, 1, kind="driver", status=700)
    recorded.range("step", 50, 1, domain="training")
    recorded.compilation("cupy_add", 60, 1, source="nvrtc")
    events = events_of(document_of(recorded.recording(70), tmp_path / "trace.json"))
    said = {event["name"]: (event["cat"], event["args"]) for event in events["X"]}
    copy = {"bytes": 100_000, "GB/s": 20, "from": "pageable", "to": "device", "async": False}
    assert said == {
        "cudaMemcpy": ("runtime", {"correlation": 1}),
        "memcpy HtoD": ("memcpy", {**copy, "correlation": 1}),
        "memset": (
            "memset",
            {
                "bytes": 8000,
                "GB/s": 2,
                "to": "device",
                "async": False,
                "correlation": 0,
                "graph": 9,
            },
        ),
        "instant": ("memset", {"bytes": 8, "async": False, "correlation": 0}),
        "cuLaunchKernel": ("driver", {"correlation": 0, "status": 700}),
        "step": ("range", {"domain": "training"}),
        "cupy_add": ("compilation", {"source": "nvrtc"}),
    }


def test_threads_and_streams_have_rows_of_their_own(tmp_path):
    document = document_of(several_threads_and_devices(), tmp_path / "trace.json")
    events = events_of(document)
    assert labels_of(events) == {
        "Host": ["MainThread", "Thread-1", "thread 3003"],
        "GPU-0 (a GPU)": ["stream 7", "stream 13"],
        "GPU-1": ["null stream", "stream 7"],
        "GPU-5 (idle)": [],
    }
    assert row_of(events, "three") == ["null stream"]


def test_threads_of_one_name_are_told_apart(tmp_path):
    recorded = Recorded()
    recorded.call("cudaMalloc", 0, 1)
    recorded.call("cudaMalloc", 0, 1, thread=OTHER)
    recording = recorded.recording(10, threads={MAIN: "worker", OTHER: "worker"})
    events = events_of(document_of(recording, tmp_path / "trace.json"))
    assert labels_of(events)["Host"] == [f"worker {MAIN}", f"worker {OTHER}"]


def test_what_crosses_another_range_gets_another_row(tmp_path):
    events = events_of(document_of(crossing_ranges(), tmp_path / "trace.json"))
    assert row_of(events, "outer") == row_of(events, "same as outer") == ["MainThread"]
    assert row_of(events, "crosses") == ["MainThread (2)"]
    assert row_of(events, "in both") == ["MainThread"]
    assert row_of(events, "crosses both") == ["MainThread (3)"]


def test_of_two_that_begin_together_the_longer_holds_the_other(tmp_path):
    recorded = Recorded()
    recorded.range("shorter", 0, 10)
    recorded.call("longer", 0, 20)
    events = events_of(document_of(recorded.recording(100), tmp_path / "trace.json"))
    assert [event["name"] for event in events["X"]] == ["longer", "shorter"]
    assert labels_of(events)["Host"] == ["MainThread"]


def test_activities_of_a_stream_that_overlap_get_another_row_even_if_one_lies_in_the_other(
    tmp_path,
):
    recorded = Recorded()
    recorded.launch("long", 0, 10, 50)
    recorded.launch("within", 5, 20, 10)
    recorded.launch("later", 10, 60, 10)
    events = events_of(document_of(recorded.recording(100), tmp_path / "trace.json"))
    assert labels_of(events)["GPU-0 (a GPU)"] == ["stream 7", "stream 7 (2)"]
    assert row_of(events, "within") == ["stream 7 (2)"]
    assert row_of(events, "later") == ["stream 7"]


def test_marks_are_instants(tmp_path):
    recorded = Recorded()
    recorded.range("epoch", 12.5, 0, domain="training")
    (mark,) = events_of(document_of(recorded.recording(20), tmp_path / "trace.json"))["i"]
    assert mark == {
        "ph": "i", "s": "t", "cat": "range", "name": "epoch", "pid": 1, "tid": 3, "ts": 12.5,
        "args": {"domain": "training"},
    }  # fmt: skip


def test_an_arrow_leads_from_a_graph_launch_to_each_of_its_kernels(tmp_path):
    events = events_of(document_of(graph(), tmp_path / "trace.json"))
    assert [event["ts"] for event in events["s"]] == [0.0] * 6
    assert [event["ts"] for event in events["f"]] == [20.0, 24.0, 28.0, 32.0, 36.0, 40.0]


def test_an_arrow_never_leads_back_in_time(tmp_path):
    events = events_of(document_of(clocks_that_disagree(), tmp_path / "trace.json"))
    # The range that was open at the beginning shifts all by 7.5 us.
    assert [event["ts"] for event in events["s"]] == [17.5, 47.5]
    assert [event["ts"] for event in events["f"]] == [17.5, 57.5]


def test_counters_follow_the_bytes_in_flight_of_each_device(tmp_path):
    recorded = Recorded()
    recorded.copy(0, 10, 10, 300)
    recorded.copy(5, 15, 5, 200, stream=13)
    recorded.copy(15, 20, 5, 50)
    recorded.copy(30, 40, 5, 7, device=1)
    events = events_of(document_of(recorded.recording(60), tmp_path / "trace.json"))
    levels = defaultdict(list)
    for event in events["C"]:
        levels[event["pid"]].append((event["ts"], event["args"]["bytes"]))
    assert levels == {
        2: [(0, 0), (10, 300), (15, 500), (20, 50), (25, 0)],
        3: [(0, 0), (40, 7), (45, 0)],
    }


def test_times_are_exact_to_the_nanosecond_after_days(tmp_path):
    recorded = Recorded()
    day = 86_400e6
    recorded.range("late", 3 * day + 0.001, 0.999)
    (event,) = events_of(document_of(recorded.recording(4 * day), tmp_path / "trace.json"))["X"]
    assert (ns(event["ts"]), ns(event["dur"])) == (3 * 86_400 * 10**9 + 1, 999)


# ---- Readers with weaknesses


def test_names_come_back_as_they_are_or_escaped(tmp_path):
    events = events_of(document_of(hostile_names(), tmp_path / "trace.json"))
    names = [event["name"] for event in events["X"] if event["cat"] == "kernel"]
    assert names == [name.replace("\ud800", "\\ud800") for name in HOSTILE]
    assert 'GPU-0 ("\\\\ud800)' in labels_of(events)


def test_nothing_that_perfetto_misreads(tmp_path):
    chrome.write(hostile_names(), tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text("utf-8")
    assert text.startswith('{"displayTimeUnit":"ns","traceEvents":[')
    assert text.endswith("}")
    assert not re.search(r'(?<!\\)(\\\\)+"', text)
    assert not re.search(r"(?<!\\)(\\\\)*\\ud", text)


# ---- Writing


def test_gz_is_compressed(tmp_path):
    chrome.write(graph(), tmp_path / "trace.json")
    chrome.write(graph(), str(tmp_path / "trace.json.gz"))
    compressed = (tmp_path / "trace.json.gz").read_bytes()
    assert compressed[:2] == b"\x1f\x8b"
    assert gzip.decompress(compressed) == (tmp_path / "trace.json").read_bytes()


class Broken(tuple):
    def __getitem__(self, index):
        raise KeyboardInterrupt


def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("old")
    recording = graph()
    with pytest.raises(KeyboardInterrupt):
        chrome.write(replace(recording, names=Broken(recording.names)), path)
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]
    assert path.read_text() == "old"


def test_a_new_file_replaces_the_old_one_and_is_as_readable(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("old")
    usual = path.stat().st_mode
    events_of(document_of(graph(), path))
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]
    assert path.stat().st_mode == usual


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "nowhere" / "trace.json"
    with pytest.raises(FileNotFoundError) as raised:
        chrome.write(graph(), path)
    assert raised.value.filename == str(path)


def test_a_folder_is_not_overwritten(tmp_path):
    (tmp_path / "trace.json").mkdir()
    with pytest.raises(OSError, match=r"trace\.json"):
        chrome.write(graph(), tmp_path / "trace.json")
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]


def test_long_recordings_are_written_bit_by_bit(tmp_path):
    path = tmp_path / "trace.json"
    recording = launches(20_000)
    tracemalloc.start()
    chrome.write(recording, path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.75 * path.stat().st_size
    phases = Counter(event["ph"] for event in strictly_parsed(path.read_bytes())["traceEvents"])
    assert phases["X"] == 40_000
    assert phases["s"] == phases["f"] == 20_000
    assert phases["C"] == 1 + 20_000


def test_a_million_records_take_well_under_a_minute(tmp_path):
    recording = launches(20_000)
    began = time.process_time()
    chrome.write(recording, tmp_path / "trace.json")
    assert time.process_time() - began < 30 * 40_000 / 1_000_000
