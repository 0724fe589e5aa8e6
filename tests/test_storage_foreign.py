"""Files of other tools: what is known is kept, and what isn't is said."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from gpubench.comparison.runs import compare_runs
from gpubench.errors import ArgumentError
from gpubench.storage import load, save

DATA = Path(__file__).parent / "data"
ASV = DATA / "asv_results" / "example"


def changed(path, tmp_path, **changes):
    """Return a copy of a file, with other values at its top."""
    copy = tmp_path / path.name
    values = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    copy.write_text(json.dumps(values), encoding="utf-8")
    return copy


class TestPytestBenchmark:
    def test_samples(self):
        saved = load(DATA / "pytest_benchmark_with_data.json")
        assert (saved.format, saved.version) == ("pytest-benchmark", 5)
        assert saved.keys == (
            "test_speed.py::test_sum(n=10)",
            "test_speed.py::test_sum(n=1000)",
            "test_speed.py::test_sorted",
        )
        result = saved.records[0].result
        assert result.method == "pytest-benchmark"
        assert result.cpu_times[:2].tolist() == [6.843329174444079e-07, 3.4066518613447744e-07]
        assert result.cpu.n == 8
        assert [note.code for note in result.notes] == ["means-of-calls"]
        assert saved.records[2].result.notes == ()
        assert saved.environment["host"] == "example"
        assert saved.environment["cpu"] == "Example CPU"
        assert saved.environment["git"]["commit"].startswith("0123456789")

    def test_statistics_without_samples(self):
        saved = load(DATA / "pytest_benchmark_autosaved.json")
        record = saved.records[0]
        assert (record.status, record.result) == ("ok", None)
        assert record.summary["n"] == 8
        assert record.summary["median_s"] == pytest.approx(4.725e-07, rel=1e-3)
        assert record.reason == "the file holds statistics without samples"

    def test_statistics_are_not_compared_with_samples(self):
        paths = (DATA / f"pytest_benchmark_{what}.json" for what in ("with_data", "autosaved"))
        run = compare_runs(*paths)
        assert run.names == ()
        assert {each.right for each in run.not_compared} == {
            "the file holds statistics without samples"
        }

    @pytest.mark.parametrize(
        ("values", "reason"),
        [
            ({"name": "f", "stats": None}, "stats must be a mapping"),
            ({"name": "f", "stats": {"data": ["x"]}}, "cpu_times_s must hold real numbers"),
            ({"name": "f", "stats": {"data": [1.0], "iterations": 0}}, "stats.iterations"),
        ],
    )
    def test_a_broken_benchmark_leaves_the_others(self, values, reason, tmp_path):
        others = json.loads((DATA / "pytest_benchmark_with_data.json").read_text())["benchmarks"]
        path = changed(
            DATA / "pytest_benchmark_with_data.json", tmp_path, benchmarks=[values, *others]
        )
        broken, *rest = load(path).records
        assert broken.status == "unavailable"
        assert broken.reason.startswith(f"unreadable: {reason}")
        assert [record.status for record in rest] == ["ok"] * 3

    @pytest.mark.parametrize("benchmarks", [3, [3], [{"stats": {}}]])
    def test_a_broken_file_is_an_error_with_its_path(self, benchmarks, tmp_path):
        path = changed(DATA / "pytest_benchmark_with_data.json", tmp_path, benchmarks=benchmarks)
        with pytest.raises(
            ArgumentError, match=f"{path.name}' can't be read: it isn't as .*benchmarks"
        ):
            load(path)


class TestNvbench:
    def test_samples_lie_beside_the_file(self):
        saved = load(DATA / "nvbench.json")
        assert (saved.format, saved.version) == ("nvbench", 1)
        record = saved.records[0]
        assert record.key == "copy(Elements=1024, T='F32', Load=0.5)"
        result = record.result
        assert result.gpu_times[0] == pytest.approx(np.array([10.5, 10, 10.25, 11, 10.125]) * 1e-6)
        assert (result.method, result.cache) == ("nvbench", "cold")
        assert result.cpu_times.tolist() == [0] * 5
        assert [note.code for note in result.notes] == ["cpu-times-unknown"]
        assert result.environment["devices"][0]["name"] == "Example GPU"
        assert result.environment["devices"][0]["compute_capability"] == "9.0"
        assert record.summary["cpu_mean_s"] == 1.6e-5

    def test_statistics_skipped_states_and_the_host(self):
        _, without, skipped, host = load(DATA / "nvbench.json").records
        assert without.summary["mean_s"] == 1.0375e-5
        assert "run it with --jsonbin" in without.reason
        assert (skipped.status, skipped.reason) == ("skipped", "Out of memory.")
        assert skipped.params["Elements"] == 2**40
        assert host.summary == {"mean_s": 2.5e-4, "n": 9}

    def test_unknown_times_of_the_host_are_not_judged(self):
        (change,) = compare_runs(DATA / "nvbench.json", DATA / "nvbench.json").changes
        assert (change.clock, change.ratio) == ("GPU", 1.0)
        (comparison,) = compare_runs(DATA / "nvbench.json", DATA / "nvbench.json").comparisons
        assert comparison.others[0].cpu is None

    def moved(self, tmp_path, content=None, filename=None):
        values = json.loads((DATA / "nvbench.json").read_text(encoding="utf-8"))
        if filename is not None:
            binary = values["benchmarks"][0]["states"][0]["summaries"][-1]
            binary["data"][0]["value"] = filename
        (tmp_path / "run.json").write_text(json.dumps(values), encoding="utf-8")
        if content is not None:
            (tmp_path / "nvbench.json-bin").mkdir()
            (tmp_path / "nvbench.json-bin" / "0.bin").write_bytes(content)
        return load(tmp_path / "run.json").records[0]

    def test_a_renamed_file_finds_its_samples(self, tmp_path):
        content = (DATA / "nvbench.json-bin" / "0.bin").read_bytes()
        assert self.moved(tmp_path, content).result is not None

    def test_a_path_of_windows_does(self, tmp_path):
        content = (DATA / "nvbench.json-bin" / "0.bin").read_bytes()
        name = r"C:\out\nvbench.json-bin\0.bin"
        assert self.moved(tmp_path, content, name).result is not None

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (None, "its samples are missing: there is no file"),
            (b"\0" * 16, "its samples, 5 numbers, don't fill the file"),
            (b"\0" * 24, "its samples, 5 numbers, don't fill the file"),
            (np.full(5, np.nan, "<f4").tobytes(), "aren't all finite"),
        ],
    )
    def test_without_its_samples_the_statistics_stay(self, content, reason, tmp_path):
        record = self.moved(tmp_path, content)
        assert record.result is None
        assert reason in record.reason
        assert record.summary["n"] == 5

    @pytest.mark.parametrize("name", ["/dev/zero", "../../secret", "..", "", "/etc/passwd"])
    def test_no_file_elsewhere_is_read(self, name, tmp_path):
        record = self.moved(tmp_path, b"\0" * 20, name)
        assert record.result is None
        assert "its samples" in record.reason

    def test_states_of_several_devices_are_told_apart(self, tmp_path):
        states = [{"device": device, "is_skipped": True} for device in (0, 1)]
        benchmark = {"name": "f", "states": states}
        path = changed(DATA / "nvbench.json", tmp_path, benchmarks=[benchmark])
        assert load(path).keys == ("f(device=0)", "f(device=1)")

    def test_a_broken_state_leaves_the_others(self, tmp_path):
        states = [{"axis_values": [{"name": "n", "type": "int64", "value": "x"}]}, {}]
        benchmark = {"name": "f", "states": states}
        path = changed(DATA / "nvbench.json", tmp_path, benchmarks=[benchmark], meta=None)
        saved = load(path)
        assert saved.version == 0
        assert [record.reason for record in saved.records] == [
            "unreadable: axis_values: n must be a number, got 'x'",
            "no times",
        ]

    def test_a_broken_file_is_an_error_with_its_path(self, tmp_path):
        path = changed(DATA / "nvbench.json", tmp_path, benchmarks={"a": 1})
        with pytest.raises(
            ArgumentError,
            match=r"nvbench.json' can't be read: it isn't as nvbench writes it: benchmarks",
        ):
            load(path)


class TestAsv:
    def test_samples(self):
        saved = load(ASV / "0123abcd-with-samples.json")
        assert (saved.format, saved.version) == ("asv", 2)
        by_key = dict(zip(saved.keys, saved.records, strict=True))
        record = by_key["bench_math.Sums.time_sum(n=10, kind='list')"]
        assert record.result.method == "asv"
        assert record.result.cpu.n == 8
        assert record.result.cpu_times[0] == 1.0410003596916795e-06
        assert by_key["bench_math.time_sorted"].result.notes[0].message == (
            "Each sample is the mean of 8307 calls."
        )
        assert saved.environment["git"]["commit"].startswith("0123abcd")
        assert saved.environment["date"].startswith("2026-")

    def test_what_failed_and_what_was_skipped(self):
        saved = load(ASV / "0123abcd-with-samples.json")
        by_key = dict(zip(saved.keys, saved.records, strict=True))
        assert by_key["bench_math.time_broken"].status == "failed"
        assert by_key["bench_math.track_nan"].status == "skipped"
        assert by_key["bench_math.Sums.time_sum(n=1000, kind='tuple')"].status == "skipped"

    def test_values_with_their_units(self):
        saved = load(ASV / "0123abcd-with-samples.json")
        by_key = dict(zip(saved.keys, saved.records, strict=True))
        length = by_key["bench_math.Sums.track_length(n=1000, kind='list')"]
        assert (length.value, length.unit) == (1000, "items")
        memory = by_key["bench_math.peakmem_list"]
        assert (memory.value, memory.unit) == (27934720, "bytes")

    def test_statistics_without_samples(self):
        saved = load(ASV / "0123abcd-without-samples.json")
        record = saved.records[0]
        assert record.result is None
        assert record.summary == {
            "median_s": 5.315014277584851e-07,
            "ci99_low_s": 4.91e-07,
            "ci99_high_s": 5.81e-07,
            "q25_s": 5.2525e-07,
            "q75_s": 5.535e-07,
            "n": 8,
        }
        assert "run asv with --record-samples" in record.reason

    def test_without_benchmarks_json_parameters_have_numbers_for_names(self, tmp_path):
        path = tmp_path / "results.json"
        shutil.copy(ASV / "0123abcd-with-samples.json", path)
        saved = load(path)
        assert saved.keys[0] == "bench_math.Sums.time_sum(param1=10, param2='list')"
        assert saved.records[8].unit == "bytes"

    def test_parameters_are_shown_and_never_run(self, tmp_path):
        rows = {"f": [[1.0, 2.0], [["__import__('os').abort()", "<class 'int'>"]]]}
        path = changed(ASV / "0123abcd-with-samples.json", tmp_path, results=rows)
        assert [record.params["param1"] for record in load(path).records] == [
            "__import__('os').abort()",
            "<class 'int'>",
        ]

    def test_endless_combinations_end(self, tmp_path):
        rows = {"f": [None, [[str(n) for n in range(100)]] * 20]}
        path = changed(ASV / "0123abcd-with-samples.json", tmp_path, results=rows)
        assert len(load(path).records) == 1000

    def test_gpu_times_of_the_plugin_are_the_gpus(self, tmp_path):
        cells = [
            [1e-6],
            [],
            "v",
            1,
            1,
            [9e-7],
            [2e-6],
            [9e-7],
            [2e-6],
            [1],
            [3],
            [[1e-6, 2e-6, 3e-6]],
        ]
        rows = {"bench.gputime_f": cells}
        path = changed(ASV / "0123abcd-with-samples.json", tmp_path, results=rows)
        (record,) = load(path).records
        assert record.result.gpu_times.tolist() == [[1e-6, 2e-6, 3e-6]]
        assert record.result.cpu_times.tolist() == [0, 0, 0]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"version": 1}, "asv's format 1, and format 2 can be read: asv update"),
            ({"version": 3}, "asv's format 3"),
            ({"result_columns": None}, "asv's format 2"),
            ({"results": []}, "results must be a mapping"),
            ({"results": {"f": 3}}, "results: f must be a list, got 3"),
        ],
    )
    def test_a_broken_file_is_an_error_with_its_path(self, changes, message, tmp_path):
        path = changed(ASV / "0123abcd-with-samples.json", tmp_path, **changes)
        with pytest.raises(ArgumentError, match=f"with-samples.json' can't be read: .*{message}"):
            load(path)

    def test_a_broken_benchmark_leaves_the_others(self, tmp_path):
        rows = {"bad": [["x"], []], "worse": [[1.0], 3], "good": [[1.0], []]}
        path = changed(ASV / "0123abcd-with-samples.json", tmp_path, results=rows)
        statuses = {record.name: record.status for record in load(path).records}
        assert statuses == {"bad": "unavailable", "worse": "ok", "good": "ok"}


@pytest.mark.parametrize(
    "path",
    [
        DATA / "pytest_benchmark_with_data.json",
        DATA / "nvbench.json",
        ASV / "0123abcd-with-samples.json",
    ],
    ids=lambda path: path.name,
)
def test_what_was_foreign_can_be_saved_and_compared(path, tmp_path):
    saved = load(path)
    save(tmp_path / "own.json", saved.records, environment=saved.environment)
    own = load(tmp_path / "own.json")
    assert own.records == saved.records
    assert own.format == "gpubench"
    run = compare_runs(saved, own)
    assert run.names
    assert set(run.counts) == {"slower", "faster", "unclear", "same"}
    assert all(change.ratio == 1 for change in run.changes)
