"""`Trace`: one value for all that a recording shows."""

import gzip
import json

import pytest
from example_recordings import Recorded

import gpubench
from gpubench import ArgumentError, Trace, UnsupportedError


@pytest.fixture
def trace():
    recorded = Recorded()
    recorded.range("step", 0, 90)
    for i in range(3):
        recorded.launch("sqrt", 20 * i, 20 * i + 6, 5)
    recorded.copy(60, 66, 10, 4096)
    return Trace(recorded.recording(100))


def test_every_view_shows_the_kernel(trace):
    for view in (trace.table, trace.ranges, trace.timeline, trace.activity_summary):
        assert "sqrt" in view()
    assert "GPU-0" in trace.device_summary()
    assert str(trace) == trace.table()
    assert repr(trace).startswith("<Trace of 100 us: 4 activities")
    assert (trace.to_dataframe()["name"] == "sqrt").sum() == 3


def test_a_loop_that_waits_for_launches_is_found(trace):
    worst, *_ = trace.diagnose()
    assert worst.code == "launch-bound"


def test_it_is_saved_and_read(trace, tmp_path):
    path = tmp_path / "step.npz"
    trace.save(path)
    again = Trace.load(path)
    assert again.table() == trace.table()
    path.write_bytes(b"nothing")
    with pytest.raises(ArgumentError, match=r"step\.npz"):
        Trace.load(path)


def test_it_is_exported(trace, tmp_path):
    trace.export_chrome_trace(tmp_path / "step.json.gz")
    events = json.loads(gzip.decompress((tmp_path / "step.json.gz").read_bytes()))["traceEvents"]
    assert sum(event.get("name") == "sqrt" for event in events) == 3
    trace.timeline_html(tmp_path / "step.html")
    assert "sqrt" in (tmp_path / "step.html").read_text(encoding="utf-8")


def test_ipython_shows_the_table(trace):
    pretty = pytest.importorskip("IPython.lib.pretty")
    assert pretty.pretty(trace) == trace.table()
    assert pretty.pretty(Trace()) == "<Trace: its block hasn't ended>"


def test_before_the_end_there_is_nothing():
    with pytest.raises(UnsupportedError, match="before its block has ended"):
        gpubench.Trace().diagnose()
