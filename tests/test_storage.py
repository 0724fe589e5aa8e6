"""Results on disk: what is written is what is read, and what can't be read is told."""

import gzip
import json
import os
import pickle
import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from example_results import make_result

import gpubench
from gpubench import storage
from gpubench.errors import ArgumentError
from gpubench.storage import Record, SavedResults, load, save
from gpubench.storage import document as documents

DATA = Path(__file__).parent / "data"
RESULT = make_result(range(10, 16), [range(20, 26)], name="f")


def read_strictly(path):
    return json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=pytest.fail)


class TestRecord:
    def test_the_key_is_name_and_parameters(self):
        params = {
            "n": np.int64(3),
            "dtype": np.float32,
            "axis": None,
            "s": "None",
            "pair": [1, (2,)],
        }
        assert Record(name="f", params=params).key == (
            "f(n=3, dtype=float32, axis=None, s='None', pair=(1, (2)))"
        )
        assert Record(name="f").key == "f"

    def test_the_key_is_in_one_line(self):
        assert "\n" not in Record(name="f", params={"n": "a\nb"}).key

    def test_parameters_are_plain_and_can_be_hashed(self):
        record = Record(name="f", params={"n": np.int64(3), "shape": [1, 2]})
        assert dict(record.params) == {"n": 3, "shape": (1, 2)}
        assert type(record.params["n"]) is int
        with pytest.raises(TypeError):
            record.params["n"] = 4

    def test_a_value_that_is_no_number_is_none(self):
        assert Record(name="f", value=float("nan")).value is None
        assert Record(name="f", value=np.float32(2)).value == 2.0

    def test_it_can_be_pickled(self):
        record = Record(name="f", params={"n": 1}, result=RESULT, blocks=range(6), summary={"a": 1})
        assert pickle.loads(pickle.dumps(record)) == record

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"name": 3}, "name must be a string, got 3"),
            ({"params": 3}, "params must be a mapping, got 3"),
            ({"params": {3: 1}}, "params must be a string, got 3"),
            ({"status": "fine"}, "status must be one of 'ok', .*; got 'fine'"),
            ({"reason": None}, "reason must be a string"),
            ({"result": {}}, "result must be a BenchmarkResult or None"),
            ({"value": "3"}, "value must be a number, got '3'"),
            ({"blocks": [0]}, "blocks must hold one for each of 0 samples, got 1"),
            ({"result": RESULT, "blocks": [0] * 5}, "blocks must hold one for each of 6"),
            ({"result": RESULT, "blocks": [0.5] * 6}, "blocks must be an integer"),
            ({"summary": {"mean_s": "3"}}, "summary: mean_s must be a number"),
        ],
    )
    def test_a_value_of_the_wrong_kind_is_an_error(self, values, message):
        with pytest.raises(ArgumentError, match=message):
            Record(**{"name": "f", **values})

    def test_keys_in_a_file_are_unique(self):
        records = tuple(Record(name=name) for name in ("a", "a", "b", "a"))
        assert SavedResults(records=records).keys == ("a", "a#2", "b", "a#3")


class TestSave:
    def test_what_is_written_is_read(self, tmp_path):
        records = (
            Record(
                name="bench.f",
                params={"n": 3, "dtype": np.dtype("f4"), "limit": float("inf"), "pair": (1, "a")},
                result=RESULT,
                blocks=[0, 0, 1, 1, 2, 2],
            ),
            Record(name="s", status="skipped", reason="no GPU"),
            Record(name="t", value=float("-inf"), unit="%"),
            Record(name="m", summary={"median_s": 1e-6}, reason="no samples"),
        )
        path = tmp_path / "run.json"
        save(path, records, environment={"note": "x"})
        saved = load(path)
        assert saved.records == records
        assert (saved.format, saved.version, saved.path) == ("gpubench", 1, str(path))
        assert saved.environment["note"] == "x"
        assert list(read_strictly(path)) == ["format", "version", "environment", "records"]

    def test_results_are_records_too(self, tmp_path):
        path = tmp_path / "run.json"
        half = make_result(name="half", stopped_by="interrupted")
        save(path, [RESULT, half])
        assert [(record.name, record.status) for record in load(path).records] == [
            ("f", "ok"),
            ("half", "interrupted"),
        ]
        save(path, RESULT)
        assert load(path).records[0].result == RESULT

    def test_a_measured_result_comes_back_with_its_conditions(self, gpu, tmp_path):
        path = tmp_path / "run.json"
        result = gpubench.benchmark(gpu.launch, (1e-5,), n_repeat=5)
        save(path, [result])
        saved = load(path)
        assert saved.records[0].result == result
        (device,) = saved.environment["devices"]
        assert (device["name"], device["uuid"]) == ("simulated GPU", "simulated-0")

    def test_the_environment_is_what_all_results_agree_on(self, tmp_path):
        path = tmp_path / "run.json"
        one = make_result(environment={"host": "a", "numpy": "2", "only": 1})
        other = make_result(environment={"host": "a", "numpy": "3"})
        save(path, [one, other])
        assert load(path).environment == {"host": "a"}
        save(path, [one, other], environment={"numpy": "2 and 3"})
        assert load(path).environment == {"host": "a", "numpy": "2 and 3"}

    def test_the_commit_is_noted_for_results_of_this_host(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
            subprocess.run([*git, *command], check=True)
        save("run.json", [make_result(environment={"host": platform.node()})])
        state = load("run.json").environment["git"]
        assert len(state["commit"]) == 40
        assert state["dirty"] is False
        save("run.json", [make_result(environment={"host": "another"})])
        assert "git" not in load("run.json").environment

    def test_a_name_that_ends_in_gz_is_compressed(self, tmp_path):
        path = tmp_path / "run.json.gz"
        save(path, [RESULT])
        assert json.loads(gzip.decompress(path.read_bytes()))["format"] == "gpubench"
        assert load(path).records[0].result == RESULT

    def test_what_was_there_stays_if_it_fails(self, tmp_path):
        path = tmp_path / "run.json"
        save(path, [RESULT])
        before = path.read_bytes()
        with pytest.raises(ArgumentError, match="environment must hold plain JSON values"):
            save(path, [RESULT], environment={"x": float("nan")})
        with pytest.raises(ArgumentError, match="records must hold nothing but Record, got 3"):
            save(path, [RESULT, 3])
        with pytest.raises(ArgumentError, match="records must be a list of Record, got 3"):
            save(path, 3)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["run.json"]


class TestEarlierFiles:
    def test_version_1(self):
        saved = load(DATA / "results_version_1.json")
        assert saved.version == 1
        assert saved.environment["git"] == {
            "commit": "0123456789abcdef0123456789abcdef01234567",
            "dirty": True,
        }
        assert saved.keys == (
            "bench.Sum.gputime_sum(n=1000, axis=None, shape=(2, (3, 4)), dtype=float32, scale=inf, "
            "label='a|b')",
            "bench.track_error",
            "bench.track_limit",
            "bench.peakmem_list",
            "bench.time_skipped",
            "bench.time_broken",
            "bench.time_half",
            "bench.time_cutensor",
            "other.tool",
        )
        first = saved.records[0]
        assert first.blocks == (0, 0, 1, 1, 2, 2)
        assert first.result.floor == 2.5e-6
        assert first.result.notes[0].code == "unstable"
        assert first.result.gpu_times[0] == pytest.approx([1e-5, 1.1e-5, 1.2e-5] * 2)
        assert [record.status for record in saved.records[4:]] == [
            "skipped",
            "failed",
            "interrupted",
            "unavailable",
            "ok",
        ]
        assert [record.value for record in saved.records[1:4]] == [1e-7, float("inf"), 27934720.0]

    def test_version_1_is_still_what_is_written(self, tmp_path):
        """Whoever changes what a file holds adds a fixture, so that both stay readable."""
        saved = load(DATA / "results_version_1.json")
        save(tmp_path / "again.json", saved.records, environment=saved.environment)
        again = read_strictly(tmp_path / "again.json")
        before = read_strictly(DATA / "results_version_1.json")
        assert again.keys() == before.keys()
        assert again["version"] == before["version"]
        assert [each.keys() for each in again["records"]] == [
            each.keys() for each in before["records"]
        ]

    def test_lists_from_before_there_were_versions(self):
        saved = load(DATA / "results_before_versions.json")
        assert (saved.format, saved.version) == ("gpubench", 0)
        assert saved.keys == ("launch_0", "launch_1", "launch_2", "launch_3")
        assert all(record.status == "ok" for record in saved.records)
        assert [record.result.cache for record in saved.records] == ["warm"] * 4
        assert all(record.result.gpu_times.shape == (1, 4) for record in saved.records)
        assert saved.environment["host"] == "example"

    def test_one_result_alone(self, tmp_path):
        path = tmp_path / "one.json"
        path.write_text(RESULT.to_json(), encoding="utf-8")
        assert load(path).records == (Record(name="f", result=RESULT),)

    def test_records_of_another_release(self, tmp_path):
        """What is missing is unknown, what isn't known is left out, what is broken stays so."""
        path = tmp_path / "run.json"
        records = [
            {"name": "older", "result": {"name": "f", "cpu_times_s": [1.0]}},
            {"name": "newer", "status": "postponed", "reason": "why", "surprise": 1},
            {"name": "void"},
            {"name": "empty", "result": {"name": "f", "cpu_times_s": []}},
            {"name": "nulls", "params": None, "value": 1, "unit": None, "blocks": None},
            {"name": "broken", "result": {"name": "f", "cpu_times_s": ["x"]}},
        ]
        content = {"format": "gpubench", "version": 1, "records": records, "surprise": 2}
        path.write_text(json.dumps(content), encoding="utf-8")
        saved = load(path)
        assert saved.environment == {}
        assert [(record.status, record.reason) for record in saved.records[:5]] == [
            ("ok", ""),
            ("unavailable", "postponed: why"),
            ("unavailable", "no times"),
            ("unavailable", "no times"),
            ("ok", ""),
        ]
        assert saved.records[0].result.method == "unknown"
        assert saved.records[5].reason.startswith("unreadable: cpu_times_s must hold real numbers")


def gz(text):
    return gzip.compress(text)


WHOLE = json.dumps({"format": "gpubench", "version": 1, "records": [{"name": "a", "value": 1}]})


class TestErrors:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (b" \n", "is empty"),
            (b'{"format": "gpubench",\n "rec', "ends too early at line 2, column 2: Unterminated"),
            (b'{"format": "gpubench",\n', "ends too early at line 2, column 1"),
            (b'{"a": tru', "ends too early at line 1, column 7"),
            (b"[1] 2", "is not JSON at line 1, column 5: Extra data"),
            (b"hello", "is not JSON at line 1, column 1: Expecting value"),
            (b'{"a": \xff}', "is not UTF-8 at byte 6"),
            (WHOLE.encode("utf-16"), "is not UTF-8 at byte 0"),
            (b"\x1f\x8bnot gzip at all", "is compressed, and damaged"),
            (gz(WHOLE.encode())[:-12], "is compressed, and damaged"),
            (b"[" * 200_000, "is nested too deeply"),
            (b"[1" + b"0" * 5000 + b"]", "holds a number that can't be read"),
            (b"[3]", "is JSON, but no file of results .*: a list of 1 values, not all of which"),
            (b'"text"', "is JSON, but no file of results .*: 'text'"),
            (b"{}", "is JSON, but no file of results .*: an empty object"),
            (b'{"a": 1, "b": 2}', "an object with the keys 'a', 'b'"),
            (b'{"name": "pyproject"}', "an object with the keys 'name'"),
            (
                b'{"format": "gpubench", "version": 2, "records": []}',
                "its format has version 2, and this release knows those up to 1: install a newer",
            ),
            (b'{"format": "gpubench", "version": "1"}', "version must be an integer, got '1'"),
            (b'{"format": "gpubench", "version": 1}', "records must be a list, got None"),
            (
                b'{"format": "gpubench", "version": 1, "records": [], "environment": 3}',
                "environment must be a mapping, got 3",
            ),
            (
                b'{"format": "gpubench", "version": 1, "records": [{"name": "a"}, 3]}',
                r"records\[1\]: a record must be a mapping, got 3",
            ),
            (
                b'{"format": "gpubench", "version": 1, "records": [{"value": 3}]}',
                r"records\[0\]: name is missing",
            ),
            (
                b'{"format": "gpubench", "version": 1,\n "records": [{"name": "NaN", "x": NaN}]}',
                "it holds NaN at line 2, column 35, which is not JSON",
            ),
            (b'[{"name": "a", "value": -Infinity}]', "it holds -Infinity at line 1, column 25"),
        ],
    )
    def test_a_file_that_is_none_is_named_with_the_place(self, content, message, tmp_path):
        path = tmp_path / "run.json"
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=message) as caught:
            load(path)
        assert repr(str(path)) in str(caught.value)
        assert len(str(caught.value)) < len(str(path)) + 300

    def test_no_file_or_a_folder_or_an_impossible_name(self, tmp_path):
        with pytest.raises(ArgumentError, match="can't be read: No such file or directory"):
            load(tmp_path / "none.json")
        with pytest.raises(ArgumentError, match="is a folder, not a file of results"):
            load(tmp_path)
        with pytest.raises(ArgumentError, match="can't be read: embedded null"):
            load("a\0b")

    def test_a_file_that_is_too_large_is_not_read_to_its_end(self, tmp_path, monkeypatch):
        monkeypatch.setattr(documents, "MAX_BYTES", 1000)
        for name, content in (("plain.json", b" " * 1001), ("bomb.json.gz", gz(b" " * 10**6))):
            path = tmp_path / name
            path.write_bytes(content)
            with pytest.raises(ArgumentError, match=r"is larger than .* GiB"):
                load(path)

    def test_a_byte_order_mark_is_no_fault(self, tmp_path):
        path = tmp_path / "run.json"
        path.write_bytes(b"\xef\xbb\xbf" + WHOLE.encode())
        assert load(path).keys == ("a",)


def test_the_public_names_lead_here():
    assert storage.__all__ == ["Record", "SavedResults", "load", "save"]
