"""The page that shows a timeline: what it is made of, what data it holds, and that it runs."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from example_recordings import BEGIN, MAIN, Recorded
from large_recording import launches
from timeline_pages import Page, page_of, rows_of

from gpubench.render import timeline

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "@@script@@",
    "\u2028\u2029\ud800\0",
    "\"'&amp;\\\n",
]


def details_of(data, kind):
    """Return the details of the records of a kind."""
    columns = data["records"]
    pairs = zip(columns["kind"], columns["detail"], strict=True)
    return [detail for number, detail in pairs if data["kinds"][number] == kind]


def everything():
    recorded = Recorded()
    recorded.range("outer", 0, 100, domain="training")
    recorded.compilation("cupy_add", 2, 6, source="nvrtc")
    recorded.launch("add", 10, 20, 5, grid=(4, 2, 1), block=(256, 1, 1), registers=32)
    recorded.copy(15, 30, 10, 4_000_000, source="pageable", is_async=False)
    recorded.activity("memset", "memset", 45, 5, bytes=100, target="device", graph_id=3)
    recorded.call("cuLaunchKernel", 20, 1, kind="driver", status=700, thread=2002)
    recorded.launch("other", 50, 60, 5, device=1, stream=0, is_null_stream=True)
    recorded.range("mark", 90, 0)
    return recorded.recording(100, devices={0: "a GPU", 1: "", 2: "idle"})


def test_the_page_is_whole_and_fetches_nothing(tmp_path):
    page = page_of(everything(), tmp_path)
    assert page.one(tag="title")["text"] == "Timeline, 100 us"
    assert page.one(tag="html")["lang"] == "en"
    assert "default-src 'none'" in page.one(**{"http-equiv": "Content-Security-Policy"})["content"]
    assert not [each for each in page.elements if {"src", "href", "onload"} & set(each)]
    assert [each.get("type") for each in page.all(tag="script")] == ["application/json", "module"]
    text = (tmp_path / "timeline.html").read_text("utf-8")
    assert not re.search(r"https?:|url\(|@import|@@", text)


def test_without_scripts_the_page_says_what_it_can(tmp_path):
    page = page_of(everything(), tmp_path)
    assert "Trace.table()" in page.one(tag="noscript")["text"]
    assert page.one(id="summary")["text"] == (
        "100 us · GPU-0 (a GPU) busy 20.0% · GPU-1 busy 5.0% · GPU-2 (idle) busy 0.0%"
    )
    assert page.one(tag="canvas")["aria-label"] == "Timeline: " + page.one(id="summary")["text"]
    assert page.notes == []


def test_the_data_are_the_recording(tmp_path):
    data = page_of(everything(), tmp_path).data
    assert (data["first"], data["last"]) == (0, 100_000)
    assert [group["label"] for group in data["groups"]] == [
        "Host", "GPU-0 (a GPU)", "GPU-1", "GPU-2 (idle)",
    ]  # fmt: skip
    assert [group["share"] for group in data["groups"]] == [None, 0.2, 0.05, 0.0]
    assert rows_of(data) == {
        ("Host", "MainThread"): [
            ("range", "outer", 0, 100, 0),
            ("compilation", "cupy_add", 2, 6, 1),
            ("runtime", "cudaLaunchKernel", 10, 4, 1),
            ("runtime", "cudaMemcpy", 15, 4, 1),
            ("runtime", "cudaLaunchKernel", 50, 4, 1),
            ("range", "mark", 90, 0, 1),
        ],
        ("Host", "thread 2002"): [("driver", "cuLaunchKernel", 20, 1, 0)],
        ("GPU-0 (a GPU)", "stream 7"): [
            ("kernel", "add", 20, 5, 0),
            ("memcpy", "memcpy HtoD", 30, 10, 0),
            ("memset", "memset", 45, 5, 0),
        ],
        ("GPU-1", "null stream"): [("kernel", "other", 60, 5, 0)],
    }


def test_the_details_of_each_kind(tmp_path):
    data = page_of(everything(), tmp_path).data
    configurations = data["configurations"]
    add, other = (configurations[detail] for detail in details_of(data, "kernel"))
    #      graph, bytes, from, to, async, grid, block, registers, shared
    assert add == [0, 0, 0, 0, 0, 4, 2, 1, 256, 1, 1, 32, 0]
    assert other == [0] * 13
    (copy,) = (configurations[detail] for detail in details_of(data, "memcpy"))
    pageable, device = map(data["memoryKinds"].index, ("pageable", "device"))
    assert copy == [0, 4_000_000, pageable, device, *[0] * 9]
    (memset,) = (configurations[detail] for detail in details_of(data, "memset"))
    assert memset == [3, 100, 0, device, *[0] * 9]
    assert details_of(data, "driver") == [700]
    assert details_of(data, "runtime") == [0, 0, 0]
    domains = [data["names"][detail] for detail in details_of(data, "range")]
    assert domains == ["training", "gpubench"]
    assert [data["names"][detail] for detail in details_of(data, "compilation")] == ["nvrtc"]


def test_activities_know_their_calls(tmp_path):
    data = page_of(everything(), tmp_path).data
    rows = [record for row in rows_of(data).values() for record in row]
    pairs = {
        rows[place][1]: rows[call][1:3]
        for place, call in enumerate(data["records"]["call"])
        if call >= 0
    }
    assert pairs == {
        "add": ("cudaLaunchKernel", 10),
        "memcpy HtoD": ("cudaMemcpy", 15),
        "other": ("cudaLaunchKernel", 50),
    }


def test_what_overlaps_is_in_different_places(tmp_path):
    recorded = Recorded()
    recorded.range("one", 0, 50)
    recorded.range("crosses", 25, 50)
    recorded.launch("first", 0, 10, 10)
    recorded.launch("second", 5, 15, 10)
    rows = rows_of(page_of(recorded.recording(100), tmp_path).data)
    assert {key: [record[1] for record in row] for key, row in rows.items()} == {
        ("Host", "MainThread"): ["one", "cudaLaunchKernel", "cudaLaunchKernel"],
        ("Host", "MainThread (2)"): ["crosses"],
        ("GPU-0 (a GPU)", "stream 7"): ["first"],
        ("GPU-0 (a GPU)", "stream 7 (2)"): ["second"],
    }


def test_what_began_before_the_recording_or_ends_after_it_is_in_view(tmp_path):
    recorded = Recorded()
    recorded.range("early", -5, 10)
    recorded.launch("late", 90, 95, 20)
    data = page_of(recorded.recording(100), tmp_path).data
    assert (data["first"], data["last"]) == (-5000, 115_000)


def test_an_empty_recording_says_so(tmp_path):
    page = page_of(Recorded().recording(0, devices={}, threads={}), tmp_path)
    assert page.notes == ["Nothing was recorded."]
    assert page.one(id="summary")["text"] == "0 ns"
    assert page.data["rows"] == []


def test_hostile_names_are_only_text(tmp_path):
    recorded = Recorded()
    for number, name in enumerate(HOSTILE):
        recorded.launch(name, 10 * number, 10 * number + 5, 3)
        recorded.range(name, 10 * number, 5, domain=name)
    hostile = "".join(HOSTILE)
    page = page_of(recorded.recording(100, devices={0: hostile}, threads={MAIN: hostile}), tmp_path)
    assert len(page.all(tag="script")) == 2
    assert set(HOSTILE) < set(page.data["names"])
    assert page.data["rows"][0]["label"] == hostile
    assert "</script><script>alert(1)</script><!--" in page.one(id="summary")["text"]
    assert page.all(tag="script")[1]["text"].count("alert") == 0


def test_very_long_names_are_shortened_in_the_middle(tmp_path):
    recorded = Recorded()
    recorded.launch("a" * 5000 + "b" * 5000, 0, 10, 5)
    recorded.launch("c" * 1000, 0, 20, 5)
    names = page_of(recorded.recording(50), tmp_path).data["names"]
    assert "a" * 700 + " … " + "b" * 300 in names
    assert "c" * 1000 in names


def test_what_is_left_out_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "_MOST_RECORDS", 5)
    page = page_of(launches(10), tmp_path)
    assert page.notes == [
        "Only the first 5 of 20 records are on this page, those of the first 13.0 us. "
        "Trace.export_chrome_trace writes all of them."
    ]
    assert page.data["last"] == 13_000
    assert rows_of(page.data) == {
        ("Host", "MainThread"): [
            ("runtime", "cudaLaunchKernel", start, 2, 0) for start in (0, 5, 10)
        ],
        ("GPU-0 (a GPU)", "stream 7"): [
            ("kernel", "work", 3, 4.999, 0),
            ("memcpy", "work", 8, 4.999, 0),
        ],
    }
    assert "busy 90.9%" in page.one(id="summary")["text"]  # of the whole recording


def test_what_recording_lost_and_cost_is_said(tmp_path):
    recording = Recorded().recording(
        10, n_dropped=1234, launch_time=2e-6, recorded_launch_time=8e-6
    )
    notes = page_of(recording, tmp_path).notes
    assert notes[1].startswith("1,234 records were lost")
    assert notes[2].startswith(
        "Recording made a launch take 8.00 us on the host instead of 2.00 us"
    )


def test_the_largest_page_is_under_15_mb_and_exact(tmp_path):
    recording = launches(100_000)
    page = page_of(recording, tmp_path)
    assert (tmp_path / "timeline.html").stat().st_size < 15e6
    assert page.notes == []
    data = page.data
    starts = np.array(data["records"]["start"])
    calls, activities = starts[:100_000].cumsum(), starts[100_000:].cumsum()
    assert np.array_equal(calls, recording.calls["start"] - BEGIN)
    assert np.array_equal(activities, recording.activities["start"] - BEGIN)
    assert data["records"]["call"][100_000:] == list(range(100_000))
    bytes_of = [data["configurations"][index][1] for index in data["records"]["detail"][100_000:]]
    assert bytes_of == recording.activities["bytes"].tolist()


def test_a_new_page_replaces_the_old_one(tmp_path):
    (tmp_path / "timeline.html").write_text("old")
    page_of(everything(), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["timeline.html"]


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize("example", [everything, lambda: Recorded().recording(0)])
def test_a_browser_runs_the_script_without_an_error(example, tmp_path):
    page_of(example(), tmp_path)
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", "--dump-dom",
        (tmp_path / "timeline.html").as_uri(),
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in run.stderr
    shown = Page(run.stdout)
    assert "hidden" not in shown.one(id="stage")
    legend = [entry["text"] for entry in shown.all(tag="li")]
    assert legend == (
        ["kernels 2", "copies 1", "sets 1", "runtime calls 3", "driver calls 1", "ranges 2",
         "compilations 1"] if example is everything else []
    )  # fmt: skip
