"""The report as it is written: its tables, the data of its charts, and what it lets through."""

import base64
import hashlib
import json
import math
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from example_reports import HOSTILE, hostile, record, suite
from example_sweeps import failed, measured, precision, swept

from gpubench import ArgumentError, MissingExtraError
from gpubench.cli import main
from gpubench.render import report
from gpubench.render.content import visible
from gpubench.render.report import library
from gpubench.render.report.curves import curves
from gpubench.render.report.samples import axis_for, histogram, run_order
from gpubench.storage import Record, SavedResults, save

VOID = {"meta", "input", "wbr"}
US = 1e6
REAL_LIBRARY = library.chart_library


class Page(HTMLParser):
    """A page's elements with their text and their ancestors; fails if tags don't match."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attributes):
        path = " ".join(f"{each['tag']}#{each.get('id')}" for each in self._open)
        self.elements.append({"tag": tag, "text": "", "path": path, **dict(attributes)})
        if tag not in VOID:
            self._open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self._open.pop()["tag"] == tag

    def handle_data(self, text):
        for element in self._open:
            element["text"] += text

    def all(self, within="", **attributes):
        return [
            each
            for each in self.elements
            if within in each["path"]
            and all(each.get(key.rstrip("_")) == value for key, value in attributes.items())
        ]

    def texts(self, within="", **attributes):
        return [each["text"] for each in self.all(within, **attributes)]

    def data(self, within=""):
        """What the charts are drawn of."""
        scripts = self.texts(within, type="application/json")
        return [json.loads(text, parse_constant=pytest.fail) for text in scripts]


@pytest.fixture(autouse=True)
def _quick_library(monkeypatch):
    """Stands for the real library, which takes seconds to put together."""
    monkeypatch.setattr(library, "chart_library", lambda: "window.vegaEmbed = null;")


def written(folder, *files, **options):
    """The page on results that are saved first: lists of records, or texts of sweeps."""
    paths = []
    for number, content in enumerate(files):
        path = folder / f"{number}.json"
        if isinstance(content, str):
            path.write_text(content)
        else:
            save(path, content, environment={"number": number, "host": "somewhere"})
        paths.append(path)
    report.write(report.read_runs(paths), folder / "report.html", **options)
    return Page((folder / "report.html").read_text("utf-8"))


def cells(shown, id_):
    """The cells of a benchmark's line."""
    path = f"tbody#{id_} tr#None"
    return [each["text"] for each in shown.all() if each["path"].endswith(path)][:-1]


class TestTables:
    def test_one_run(self, tmp_path):
        shown = written(tmp_path, suite())
        heads = [
            each["text"] for each in shown.all("table#table thead#None") if each["tag"] == "th"
        ]
        assert heads == [
            "Benchmark", "GPU median", "CPU median", "Value", "Spread", "Samples", "Status",
            "Notes",
        ]  # fmt: skip
        assert cells(shown, "b1") == [
            "suite.Sum.time_sum(dtype='f4', n=1024)", "8.00 us[7.99, 8.01]", "20.0 us[20.0, 20.0]",
            "", "0.6%", "60", "ok", "",
        ]  # fmt: skip
        assert cells(shown, "b7")[-1] == "driftingunstable"
        assert cells(shown, "b8")[1:3] == ["", "5.00 us[4.99, 5.01]"]
        assert cells(shown, "b9")[3] == "1.0 MiB"
        assert cells(shown, "b10")[-2:] == ["failed", ""]
        assert "failed: Traceback:\n  ValueError: too large" in shown.texts("b10", tag="pre")
        assert [each["text"] for each in shown.all("ul#overview", tag="li")] == [
            "11 benchmarks", "9 ok", "1 failed", "1 skipped", "1 with notes",
        ]  # fmt: skip

    def test_runs_are_compared_with_the_first(self, tmp_path):
        shown = written(tmp_path, suite(), [*suite(1.2)[1:], record("suite.time_new")])
        heads = [
            each["text"] for each in shown.all("table#table thead#None") if each["tag"] == "th"
        ]
        assert heads[1:4] == ["0.json", "1.json", "1.json to 0.json"]
        assert cells(shown, "b2")[3].startswith("slower1.200[")
        assert cells(shown, "b7")[3].startswith("same1.000[")
        assert cells(shown, "b9")[3] == "1.200"  # a value, which nothing judges
        assert cells(shown, "b1")[2:4] == ["", ""]
        assert shown.texts("section#comparison", tag="summary") == [
            "only in 0.json: 1", "only in 1.json: 1", "not compared: 2",
        ]  # fmt: skip
        (sentence,) = [text for text in shown.texts("b2", tag="p") if "times slower" in text]
        assert sentence.startswith("1.json ran 1.20")
        (chart,) = shown.data("section#comparison")
        assert chart["margin"] == 0.01
        assert [row["verdict"] for row in chart["rows"]] == ["slower"] * 5 + ["same"] * 2
        assert chart["rows"][-1]["label"] in ("time_noted", "time_host")

    def test_the_margin_decides(self, tmp_path):
        shown = written(tmp_path, suite(), suite(1.2), margin=0.5)
        assert {row["verdict"] for row in shown.data("section#comparison")[0]["rows"]} == {"same"}
        with pytest.raises(ArgumentError, match="margin must be above 0"):
            written(tmp_path, suite(), margin=0)

    def test_runs_without_a_common_benchmark(self, tmp_path):
        shown = written(tmp_path, [record("a")], [record("b")])
        assert "They have no benchmark in common." in shown.texts("section#comparison", tag="p")

    def test_environments_and_what_they_differ_in(self, tmp_path):
        shown = written(tmp_path, suite(), suite())
        rows = [each["text"] for each in shown.all("section#environment", tag="tr")]
        assert rows == ["0.json1.json", "number01", "0.json1.json", "hostsomewheresomewhere"]
        assert shown.texts("section#environment", tag="h3") == ["Different: 1"]

    @pytest.mark.parametrize("n_runs", [1, 2])
    def test_an_environment_of_which_nothing_is_known(self, tmp_path, n_runs):
        save(tmp_path / "0.json", [Record(name="a", value=1.0)])
        runs = report.read_runs([tmp_path / "0.json"] * n_runs)
        report.write(runs, tmp_path / "report.html")
        shown = Page((tmp_path / "report.html").read_text("utf-8"))
        texts = shown.texts("section#environment", tag="p")
        assert texts == ["The files say nothing of where they were taken."]

    @pytest.mark.parametrize(
        "devices", [None, 5, "name", [None], ["name"], [{}], [{"name": None}], {"name": "a GPU"}]
    )
    def test_an_environment_that_nobody_expects(self, tmp_path, devices):
        mine = [record("a", environment={"host": "here", "devices": devices})]
        assert cells(written(tmp_path, mine, mine), "b1")[1].startswith("GPU-0")

    def test_values_in_units_that_suit_them(self, tmp_path):
        values = {"bytes": 3 * 2.0**30, "s": 0.002, "apples": 1234.5, "": math.inf}
        records = [
            Record(name=f"v{unit}", value=value, unit=unit) for unit, value in values.items()
        ]
        other_tool = Record(name="other", summary={"mean_s": 2.0, "median_s": 1e-3, "n": 5})
        shown = written(tmp_path, [*records, other_tool])
        found = [cells(shown, f"b{number}")[1] for number in range(1, 6)]
        assert found == ["3.0 GiB", "2.00 ms", "1234.5 apples", "inf", "1.00 ms"]
        assert "mean_s = 2" in shown.texts("b5", tag="li")

    def test_nothing_to_show(self, tmp_path):
        shown = written(tmp_path, [])
        assert shown.all(class_="line") == []
        assert written(tmp_path, [], []).all(class_="line") == []
        with pytest.raises(ArgumentError, match="runs must hold a run"):
            report.write([], tmp_path / "none.html")


class TestCurves:
    def test_of_a_suite_and_of_a_sweep(self, tmp_path):
        sweep = precision(derive={"rate": lambda s, n: (n / s, "1/s")})
        shown = written(tmp_path, suite(), sweep.to_json())
        sums, times, rate = shown.data("section#curves")
        assert (sums["x"], sums["y"]) == ("n", "GPU time (us)")
        assert [(p["x"], p["line"]) for p in sums["points"]][2:4] == [(16384, "f4"), (1024, "f8")]
        assert sums["points"][0]["y"] == pytest.approx(8, rel=1e-3)
        assert sums["points"][0]["low"] < 8 < sums["points"][0]["high"]
        assert rate["y"] == "rate (1/s)"
        assert [(p["x"], p["y"], p["line"]) for p in times["points"]] == [
            (512, pytest.approx(80), "fp32"), (1024, pytest.approx(640), "fp32"),
            (512, pytest.approx(20), "fp16"), (1024, pytest.approx(80), "fp16"),
        ]  # fmt: skip
        table = [each["text"] for each in shown.all("section#curves", tag="tr")]
        assert "fp3251280.077.682.4" in table

    def test_failed_configurations_are_rows(self, tmp_path):
        sweep = swept(measured({"n": 1}), failed({"n": 2}))
        shown = written(tmp_path, sweep.to_json())
        assert cells(shown, "b2")[0] == "f(n=2)"
        assert "failed: ValueError: too large" in shown.texts("b2", tag="pre")

    def test_many_lines_are_split(self, tmp_path):
        grid = [
            record("f", 1.0 + n, params={"n": n, "many": f"m{many}", "few": few})
            for n in (1, 2) for many in range(8) for few in (True, False)
        ]  # fmt: skip
        save(tmp_path / "grid.json", grid)
        found = curves(report.read_runs([tmp_path / "grid.json"]))
        assert [curve.title for curve in found] == [f"f, many=m{k}" for k in range(8)]
        assert {point.line for point in found[0].points} == {"few=True", "few=False"}

    def test_integers_beyond_floats_have_no_place_on_an_axis(self, tmp_path):
        huge = [record("f", params={"n": n, "k": k}) for n, k in ((1, 1), (10**400, 2))]
        save(tmp_path / "huge.json", huge)
        (curve,) = curves(report.read_runs([tmp_path / "huge.json"]))
        assert curve.x == "k"

    def test_without_numbers_there_are_none(self, tmp_path):
        records = [record("f", params={"dtype": dtype}) for dtype in ("f4", "f8")]
        assert written(tmp_path, records).all(id="curves") == []


class TestSamples:
    def test_every_sample_is_in_one_bin_or_beyond(self):
        times = np.random.default_rng(0).lognormal(-11, 0.5, 10_000)
        counted = histogram([times, times[:100]], 0.0, axis_for([times], US))
        for counts, beyond, n in zip(
            counted["counts"], counted["beyond"], (10_000, 100), strict=True
        ):
            assert sum(counts) + beyond == n
            assert len(counts) <= 52
        assert counted["beyond"][0] <= 100

    def test_bins_are_whole_steps_of_the_clock(self):
        times = 1e-5 + 32e-9 * np.random.default_rng(0).integers(0, 90, 5000)
        counted = histogram([times], 32e-9, axis_for([times], US))
        assert counted["width"] == pytest.approx(2 * 0.032)
        assert max(counted["counts"][0]) < 1.5 * np.median(counted["counts"][0])

    @pytest.mark.parametrize("value", [0.0, 1e-5])
    def test_equal_samples(self, value):
        counted = histogram([np.full(5, value)], 0.0, axis_for([np.full(5, value)], US))
        assert counted["counts"] == [[5]]

    def test_few_samples_are_all_there(self):
        times = np.array([3e-6, 1e-6, 2e-6])
        assert run_order(times, axis_for([times], US), 10) == {"y": [3.0, 1.0, 2.0]}

    def test_many_keep_their_ends(self):
        times = np.arange(1000) * 1e-6
        order = run_order(times, axis_for([times], US), 10)
        assert order["n"] == 1000
        assert order["low"] == [100 * k for k in range(10)]
        assert order["high"] == [100 * k + 99 for k in range(10)]
        assert (order["quantiles"][0], order["quantiles"][-1]) == (0, 999)

    def test_close_times_are_told_apart(self):
        times = 1e-3 + 1e-9 * np.arange(100)
        assert len(set(run_order(times, axis_for([times], 1e3), 100)["y"])) == 100

    def test_a_million_samples_make_a_small_page(self, tmp_path):
        n = 1_000_000
        times = np.random.default_rng(0).lognormal(2, 0.1, n)
        saved = SavedResults(records=(record("f", n=n, cpu_us=times),))
        report.write([report.Run("a run", saved, ())], tmp_path / "report.html")
        assert (tmp_path / "report.html").stat().st_size < 100_000


class TestMarks:
    def test_notes_are_marked_where_they_can_be_seen(self, tmp_path):
        shown = written(tmp_path, suite())
        gpu, cpu = shown.data("b7")[0]
        assert gpu["notes"] == [["drifting", "unstable"]]
        assert [(m["code"], m["from"], m["to"]) for m in gpu["marks"][0]] == [
            ("drifting", 0, 19), ("drifting", 40, 59), ("unstable", 0, 59),
        ]  # fmt: skip
        assert cpu["notes"] == cpu["marks"] == [[]]

    def test_blocks_begin_where_they_change(self, tmp_path):
        result = record("f", n=6).result
        shown = written(tmp_path, [Record(name="f", result=result, blocks=(0, 0, 1, 1, 2, 2))])
        assert shown.data("b1")[0][0]["blocks"] == [[2, 4]]


class TestSafety:
    def test_what_files_hold_is_text(self, tmp_path):
        shown = written(tmp_path, hostile(), hostile())
        harmless = written(tmp_path, [record("f", params={"n": n}) for n in (1, 2)])
        tags = {each["tag"] for each in harmless.elements} | {"option", "select", "pre", "strong"}
        assert {each["tag"] for each in shown.elements} <= tags | {"h4", "ul", "li", "details"}
        attributes = {key for each in shown.elements for key in each}
        assert (
            not {key for key in attributes if key.startswith("on")} | {"src", "style"} & attributes
        )
        names = set(shown.texts("section#benchmarks", class_="name"))
        assert {visible(text) for text in HOSTILE[:9]} <= names
        assert "\u202e" not in "".join(each["text"] for each in shown.elements)
        codes = set(shown.texts(class_="code"))
        assert visible(HOSTILE[0]) in codes

    def test_the_policy_allows_this_script_and_style_alone(self, tmp_path):
        shown = written(tmp_path, suite())
        (policy,) = [
            each["content"] for each in shown.all(**{"http-equiv": "Content-Security-Policy"})
        ]
        run = [each for each in shown.all() if each["tag"] in ("script", "style")]
        texts = [each["text"] for each in run if each.get("type") != "application/json"]
        assert len(texts) == 3
        for text in texts:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy
        links = [each["href"] for each in shown.all(tag="a")]
        assert links == ["#benchmarks", "#curves", "#environment"]

    def test_everything_is_filled_in(self, tmp_path):
        written(tmp_path, suite())
        assert not re.search(r"@@\w+@@", (tmp_path / "report.html").read_text("utf-8"))


class TestFiles:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ('{"format": "gpu', "ends too early at line 1"),
            ('{"measurements": [{}], "parameters": []}', "can't be read as a sweep"),
            ('{"measurements": 1, "parameters": []}', "can't be read as a sweep"),
            ('{"a": 1}', "no file of results"),
        ],
    )
    def test_what_is_none_is_named(self, tmp_path, content, message):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(ArgumentError, match=message) as caught:
            report.read_runs([tmp_path / "bad.json"])
        assert "bad.json" in str(caught.value)

    def test_labels_tell_files_apart(self, tmp_path):
        for name in ("a/run.json", "b/run.json"):
            (tmp_path / name).parent.mkdir()
            save(tmp_path / name, suite())
        paths = [tmp_path / "a/run.json", tmp_path / "b/run.json"]
        assert [run.label for run in report.read_runs(paths)] == ["a/run.json", "b/run.json"]
        assert [run.label for run in report.read_runs(paths[:1])] == ["run.json"]
        twice = report.read_runs([paths[0]] * 2)
        assert len({run.label for run in twice}) == 2

    def test_without_the_extra_nothing_is_written(self, tmp_path, monkeypatch):
        monkeypatch.setattr(library, "chart_library", REAL_LIBRARY.__wrapped__)
        monkeypatch.setitem(sys.modules, "vl_convert", None)
        with pytest.raises(MissingExtraError, match=r'pip install "gpubench\[report\]"'):
            written(tmp_path, suite())
        assert not (tmp_path / "report.html").exists()


class TestCommand:
    def test_says_what_was_written(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        save("before.json", suite())
        save("after.json", suite(1.2))
        assert main(["report", "before.json", "after.json", "-o", "page.html"]) == 0
        first, second = capsys.readouterr().out.splitlines()
        assert re.fullmatch(r"page.html: 11 benchmarks \([\d.]+ KiB\)", first)
        assert second == "after.json against before.json: 6 slower, 2 same"
        assert Page((tmp_path / "page.html").read_text("utf-8")).all(class_="line")

    def test_says_that_files_without_benchmarks_have_nothing_to_compare(
        self, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        save("empty.json", [])
        assert main(["report", "empty.json", "empty.json"]) == 0
        assert capsys.readouterr().out.endswith(
            "empty.json against empty.json: nothing to compare\n"
        )

    def test_as_json(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        save("before.json", suite())
        assert main(["report", "before.json", "--json", "--margin", "2%"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said == {
            "path": "report.html",
            "size_bytes": (tmp_path / "report.html").stat().st_size,
            "files": ["before.json"],
            "n_benchmarks": 11,
            "statuses": {"ok": 9, "failed": 1, "skipped": 1},
            "verdicts": [],
        }

    def test_errors_end_with_1(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        save("before.json", suite())
        assert main(["report", "missing.json"]) == 1
        assert "missing.json" in capsys.readouterr().err
        assert main(["report", "before.json", "-o", "nowhere/page.html"]) == 1
        assert "'nowhere/page.html' can't be written" in capsys.readouterr().err
        with pytest.raises(SystemExit, match="2"):
            main(["report"])
