"""``gpubench show`` and ``gpubench compare``, as a user runs them."""

import csv
import io
import json
from pathlib import Path

import pytest
from example_results import make_result

from gpubench.cli import main
from gpubench.storage import Record, save

DATA = Path(__file__).parent / "data"
FAST, SLOW = [10.0] * 12, [20.0] * 12


@pytest.fixture
def run(capsys):
    """Run a command; return its status, and what it printed on both streams."""

    def run(*argv):
        status = main([str(each) for each in argv])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def file(tmp_path):
    """Write a file of results with these times for each name; return its path."""

    def file(name, *more, **times):
        records = [Record(name=key, result=make_result(us, [us])) for key, us in times.items()]
        save(tmp_path / name, [*records, *more])
        return tmp_path / name

    return file


class TestShow:
    def test_a_table(self, run):
        status, out, err = run("show", DATA / "results_version_1.json")
        assert (status, err) == (0, "")
        lines = out.splitlines()
        assert lines[0].startswith("9 results of gpubench, ")
        assert lines[0].endswith(", example, Example GPU, commit 0123456789 (dirty)")
        assert lines[2].split() == ["benchmark", "GPU", "CPU", "value", "n", "method", "remarks"]
        assert "11.0 us [10.0, 12.0]" in lines[4]
        assert "26.6 MiB" in lines[7]
        assert "skipped: too large for this GPU" in lines[8]
        assert "1.50 us (median)" in lines[12]

    @pytest.mark.parametrize("form", [[], ["--format", "markdown"], ["--format", "html"]])
    def test_histograms(self, run, form):
        _, without, _ = run("show", DATA / "results_version_1.json", *form)
        _, out, _ = run("show", DATA / "results_version_1.json", "--histogram", *form)
        mark = "<svg" if "html" in form else "█"
        assert mark not in without
        assert out.count(mark) >= 2
        assert "The times vary." in out.replace("\n", " ")

    def test_json_is_a_file_of_results(self, run, tmp_path):
        status, out, _ = run("show", "--json", DATA / "pytest_benchmark_with_data.json")
        assert status == 0
        json.loads(out, parse_constant=pytest.fail)
        (tmp_path / "own.json").write_text(out, encoding="utf-8")
        assert run("show", tmp_path / "own.json")[1].startswith("3 results of gpubench, ")

    def test_csv_has_seconds(self, run):
        status, out, _ = run("show", DATA / "results_version_1.json", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        assert status == 0
        assert len(rows) == 9
        assert float(rows[0]["gpu_median_s"]) == pytest.approx(11e-6)
        assert json.loads(rows[0]["params"])["axis"] is None
        assert rows[1]["value"] == "1e-07"
        assert (rows[4]["status"], rows[4]["gpu_median_s"]) == ("skipped", "")
        assert rows[8]["median_s"] == "1.5e-06"

    def test_what_names_hold_is_text_in_csv(self, run, file):
        names = ["=1+1", " @x", "-2", "+3", "a\nb", "\t=1", 'q"u,o']
        path = file("run.json", *(Record(name=name, value=1.0) for name in names))
        _, out, _ = run("show", path, "--format", "csv")
        shown = [row["name"] for row in csv.DictReader(io.StringIO(out))]
        assert shown == ["'=1+1", "' @x", "'-2", "'+3", "a\nb", "'\t=1", 'q"u,o']

    def test_what_names_hold_is_text_in_html_and_markdown(self, run, file):
        record = Record(
            name="<script>alert(1)</script>|`x`[a](b)",
            params={"p": "<img src=x>"},
            result=make_result(name="<b>"),
            reason="</td><i>",
            unit="<u>",
        )
        path = file("run.json", record)
        _, out, _ = run("show", path, "--format", "html", "--histogram")
        for markup in ("<script", "<img", "<i>", "<b>", "<u>"):
            assert markup not in out
        assert "&lt;script&gt;" in out
        _, out, _ = run("show", path, "--format", "markdown")
        assert r"\<script\>alert(1)\</script\>\|\`x\`\[a\](b)" in out

    def test_a_fence_in_a_name_does_not_end_the_code(self, run, file):
        path = file("run.json", Record(name="```\n# x", result=make_result()))
        _, out, _ = run("show", path, "--format", "markdown", "--histogram")
        assert out.count("\n````") == 2

    def test_no_records(self, run, file):
        status, out, _ = run("show", file("run.json"))
        assert (status, out.splitlines()[0]) == (0, "0 results of gpubench")

    @pytest.mark.parametrize("form", [["--json"], ["--format", "csv"]])
    def test_histograms_where_they_cannot_be_drawn(self, run, form):
        status, out, err = run("show", DATA / "results_version_1.json", "--histogram", *form)
        assert (status, out) == (1, "")
        assert f"--histogram can't be drawn with {' '.join(form)}" in err

    def test_a_file_that_is_none(self, run, tmp_path):
        path = tmp_path / "cut.json"
        path.write_text('{"format": "gpub')
        status, out, err = run("show", path)
        assert (status, out) == (1, "")
        assert err.startswith(f"gpubench: {str(path)!r} ends too early at line 1, column 12")


class TestCompare:
    def test_a_regression_is_a_failure_only_if_that_was_asked_for(self, run, file):
        left, right = file("a.json", f=FAST, g=SLOW), file("b.json", f=SLOW, g=FAST)
        status, out, err = run("compare", left, right)
        assert (status, err) == (0, "")
        assert "| f           | 10.0 us | 20.0 us | 2.000 [2.000, 2.000] | slower    |" in out
        assert "verdicts: 1 slower, 1 faster, 0 unclear, 0 same" in out
        assert run("compare", left, right, "--fail-on", "slower")[0] == 1
        faster = file("c.json", f=FAST, g=FAST)
        assert run("compare", left, faster, "--fail-on", "slower")[0] == 0

    def test_unclear_is_no_failure_and_is_said(self, run, file):
        left = file("a.json", f=[10.0, 12.0] * 6)
        right = file("b.json", f=[11.0, 13.0] * 6)
        status, out, _ = run("compare", left, right, "--fail-on", "slower")
        assert status == 0
        assert "0 slower, 0 faster, 1 unclear, 0 same" in out

    @pytest.mark.parametrize("margin", ["150%", "1.5"])
    def test_the_margin_is_a_share(self, run, file, margin):
        left, right = file("a.json", f=FAST), file("b.json", f=SLOW)
        status, out, _ = run("compare", left, right, "--margin", margin, "--fail-on", "slower")
        assert status == 0
        assert "up to 150 % is the same" in out

    @pytest.mark.parametrize("margin", ["0", "-1%", "x", "1%%", "1%x", "nan", "inf", ""])
    def test_a_wrong_margin_is_a_wrong_command_line(self, run, margin):
        with pytest.raises(SystemExit) as caught:
            run("compare", "a", "b", f"--margin={margin}")
        assert caught.value.code == 2

    def test_json(self, run, file):
        left, right = file("a.json", f=FAST, only=FAST), file("b.json", f=SLOW)
        status, out, _ = run("compare", left, right, "--json", "--fail-on", "slower")
        values = json.loads(out, parse_constant=pytest.fail)
        assert status == 1
        (change,) = values["changes"]
        assert (change["name"], change["verdict"], change["ratio"]) == ("f", "slower", 2.0)
        assert change["left_median_s"] == pytest.approx(1e-5)
        assert values["counts"]["slower"] == 1
        assert values["only_left"] == ["only"]

    def test_nothing_in_common_is_an_error(self, run, file):
        status, out, err = run("compare", file("a.json", f=FAST), file("b.json", g=FAST))
        assert (status, out) == (1, "")
        assert "left and right have no benchmark in common: left has 'f'; right has 'g'" in err

    def test_nothing_compared_is_an_error_after_what_was_not(self, run, file):
        skipped = Record(name="f", status="skipped", reason="no GPU")
        status, out, err = run("compare", file("a.json", f=FAST), file("b.json", skipped))
        assert status == 1
        assert "not compared (A ok, B skipped: no GPU): f" in out
        assert "nothing was compared: none of the 1 benchmarks" in err

    def test_values_alone_are_a_comparison(self, run, file):
        left, right = (
            file(f"{n}.json", Record(name="f", value=n, unit="items")) for n in (1.0, 2.0)
        )
        status, out, _ = run("compare", left, right)
        assert status == 0
        assert "| f           | 1 items | 2 items | 2.000   |" in out

    def test_methods_are_mixed_only_if_asked_for(self, run, tmp_path):
        for method in ("gated", "events"):
            save(tmp_path / method, make_result(FAST, [FAST], method=method))
        paths = tmp_path / "gated", tmp_path / "events"
        status, out, _ = run("compare", *paths)
        assert status == 1
        assert "not compared (different methods: gated and events): f" in out
        status, out, _ = run("compare", *paths, "--mixed")
        assert status == 0
        assert "0 slower, 0 faster, 0 unclear, 1 same" in out
        assert "mixed: 1 benchmarks were taken under conditions" in out

    def test_older_and_foreign_files(self, run):
        older = DATA / "results_before_versions.json"
        assert run("compare", older, older)[0] == 0
        foreign = DATA / "nvbench.json"
        status, out, _ = run("compare", foreign, foreign)
        assert status == 0
        assert "not compared (both skipped: Out of memory.): copy(Elements=1099511627776" in out

    def test_a_missing_file_is_named(self, run, tmp_path):
        status, _, err = run("compare", tmp_path / "a.json", tmp_path / "b.json")
        assert status == 1
        assert "left must be a file of results: " in err
        assert "No such file" in err
