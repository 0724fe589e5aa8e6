"""What gpubench makes of traces that it recorded on a real GPU; see data/README.md."""

from pathlib import Path

import numpy as np
import pytest
from timeline_pages import page_of, rows_of
from trace_events import document_of, events_of

from gpubench import Trace

FOLDER = Path(__file__).parent / "data" / "traces"
SCENES = sorted(path.stem for path in FOLDER.glob("*.npz"))


def recorded(scene):
    return Trace.load(FOLDER / f"{scene}.npz")


def codes(trace):
    return [finding.code for finding in trace.diagnose().findings]


def launched_in(trace, name):
    """Return the names of what was launched while a range was open, by calls and clocks."""
    recording = trace.recording
    spans = [r for r in recording.ranges if recording.names[r["name"]] == name]
    found = []
    for activity, row in zip(recording.activities, recording.launches(), strict=True):
        call = recording.calls[row]
        if any(
            r["thread"] == call["thread"] and r["start"] <= call["start"] <= r["end"] for r in spans
        ):
            found.append(recording.names[activity["name"]])
    return found


@pytest.mark.parametrize("scene", SCENES)
class TestEach:
    def test_every_activity_has_its_call_and_follows_it(self, scene):
        recording = recorded(scene).recording
        rows = recording.launches()
        assert (rows >= 0).all()
        assert (recording.calls["start"][rows] < recording.activities["start"]).all()
        assert (recording.activities["start"] <= recording.activities["end"]).all()
        assert recording.n_dropped == 0

    def test_the_table_adds_up(self, scene):
        trace = recorded(scene)
        lines = str(trace).splitlines()
        recording = trace.recording
        for name, count in zip(
            *np.unique(recording.activities["name"], return_counts=True), strict=True
        ):
            whole = recording.names[name]
            start = whole.partition("<")[0].partition("(")[0].split("::")[-1].split()[-1][:8]
            assert any(start in line for line in lines), whole
            assert count
        n = len(recording.activities)
        assert f"{n} activities" in lines[0]
        assert "GPU-0 (NVIDIA H200) was busy for " in str(trace)

    def test_the_chrome_trace_holds_all(self, scene, tmp_path):
        recording = recorded(scene).recording
        events = events_of(document_of(recording, tmp_path / "trace.json"))
        in_rows = [e for e in events["X"] if e["cat"] in {"kernel", "memcpy", "memset"}]
        assert len(in_rows) == len(recording.activities)
        assert len(events["s"]) == len(recording.activities)

    def test_the_page_holds_all(self, scene, tmp_path):
        recording = recorded(scene).recording
        rows = rows_of(page_of(recording, tmp_path).data)
        shown = [each for row in rows.values() for each in row]
        kinds = {"kernel", "memcpy", "memset"}
        assert sum(kind in kinds for kind, *_ in shown) == len(recording.activities)

    def test_the_frame_holds_all(self, scene):
        pytest.importorskip("pandas")
        trace = recorded(scene)
        frame = trace.to_dataframe()
        recording = trace.recording
        tables = (recording.activities, recording.calls, recording.ranges, recording.compilations)
        assert len(frame) == sum(map(len, tables))


def test_a_launch_bound_loop():
    trace = recorded("launch_bound")
    assert codes(trace) == ["slow-recording", "launch-bound", "tiny-kernels"]
    assert launched_in(trace, "loop") == ["cupy_sqrt__float32_float32"] * 200
    launch_bound = trace.diagnose().findings[1]
    assert 0.25 < launch_bound.share < 0.95
    assert "Capture a CUDA graph" in launch_bound.advice


def test_copies():
    trace = recorded("copies")
    assert codes(trace) == ["pageable-copies", "synchronizing-copies"]
    assert launched_in(trace, "pinned") == ["memcpy HtoD", "memset"] * 5
    assert (
        launched_in(trace, "pageable")
        == [
            "memcpy HtoD",
            "cupy_sqrt__float32_float32",
            "memcpy DtoH",
        ]
        * 5
    )
    assert trace.recording.of_kind("memcpy")["bytes"].tolist() == [16_000_000] * 15


def test_compiling():
    trace = recorded("compiling")
    assert "compilation" in codes(trace)
    compiled = [trace.recording.names[name] for name in trace.recording.compilations["name"]]
    assert compiled == ["fresh_0", "cupy_multiply__float32_float_float32", "fresh_1"]


def test_graphs_and_threads():
    trace = recorded("streams_and_graphs")
    assert launched_in(trace, "other thread") == ["cupy_sin__float32_float32"] * 20
    main = launched_in(trace, "main thread")
    assert sorted(set(main)) == [
        "cupy_add__float32_float_float32",
        "cupy_exp__float32_float32",
        "cupy_sqrt__float32_float32",
    ]
    assert len(main) == 60
    activities = trace.recording.activities
    of_graph = activities[activities["graph_id"] > 0]
    assert len(of_graph) == 40
    assert set(activities["stream"][activities["is_null_stream"]]) == {7}


def test_frameworks():
    trace = recorded("frameworks")
    assert launched_in(trace, "Triton") == ["triton_poi_fused_add_relu_sin_0"] * 3
    assert len(launched_in(trace, "CuPy")) == 6
    of_torch = launched_in(trace, "PyTorch")
    assert sum("sin_kernel_cuda" in name for name in of_torch) == 3
    assert sum("gemm" in name for name in of_torch) == 6


def test_the_null_stream():
    trace = recorded("null_stream")
    (finding,) = (each for each in trace.diagnose().findings if each.code == "null-stream")
    assert 0.4 < finding.share < 0.7
    assert "non-blocking" in finding.advice
