"""A sweep's checkpoint: what is written, what a later run goes on from, and what it refuses."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from example_results import make_result

import gpubench
from gpubench.sweeps.checkpoint import open_checkpoint
from gpubench.sweeps.measurement import Measurement

CONFIGS = [{"n": n, "dtype": np.float32} for n in (1, 2, 3)]
OPTIONS = {"method": "gated", "n_repeat": 30, "devices": ["NVIDIA H200"]}


def measured(config, region="f", **changes):
    return Measurement(config=config, region=region, **{"result": make_result(), **changes})


def failed(config):
    return Measurement(config=config, region="f", status="failed", error="ValueError: no")


def opened(path, *, name="sweep", configs=CONFIGS, options=OPTIONS):
    return open_checkpoint(path, name, configs, options)


def done_in(path, **changes):
    with opened(path, **changes) as checkpoint:
        return checkpoint.done


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sweep.jsonl"


@pytest.fixture
def written(path):
    """A checkpoint of two configurations, the first with two regions."""
    with opened(path) as checkpoint:
        checkpoint.write(0, [measured(CONFIGS[0], "a"), measured(CONFIGS[0], "b", entries=2.0)])
        checkpoint.write(2, [measured(CONFIGS[2], "a", throttled=np.array([True, False, True]))])
    return path


def regions(done):
    return {index: [each.region for each in measurements] for index, measurements in done.items()}


class TestResuming:
    def test_a_new_file_holds_nothing(self, path):
        assert done_in(path) == {}
        assert path.read_bytes().count(b"\n") == 1

    def test_what_was_written_is_done(self, written):
        done = done_in(written)
        assert regions(done) == {0: ["a", "b"], 2: ["a"]}
        assert done[0][1].entries == 2.0
        assert done[0][0].result == make_result()
        assert done[2][0].throttled.tolist() == [True, False, True]
        assert all(done[i][0].config is CONFIGS[i] for i in done)

    def test_a_second_run_adds_to_it(self, written):
        with opened(written) as checkpoint:
            checkpoint.write(1, [measured(CONFIGS[1], "a")])
            assert regions(checkpoint.done) == {0: ["a", "b"], 2: ["a"]}
        assert regions(done_in(written)) == {0: ["a", "b"], 1: ["a"], 2: ["a"]}

    def test_the_order_and_number_of_configurations_may_differ(self, written):
        more = [{"n": 9, "dtype": np.float32}, *reversed(CONFIGS)]
        assert regions(done_in(written, configs=more)) == {1: ["a"], 3: ["a", "b"]}
        assert regions(done_in(written, configs=CONFIGS[:1])) == {0: ["a", "b"]}
        assert regions(done_in(written)) == {0: ["a", "b"], 2: ["a"]}

    def test_configurations_are_the_same_by_value_and_type(self, written):
        configs = [{"n": n, "dtype": dtype} for n in (1.0, 2, 3) for dtype in ("f4", np.float64)]
        assert done_in(written, configs=configs) == {}

    @pytest.mark.parametrize("status", ["failed", "interrupted"])
    def test_what_failed_or_was_interrupted_is_measured_again(self, path, status):
        with opened(path) as checkpoint:
            checkpoint.write(
                0, [measured(CONFIGS[0], "a"), measured(CONFIGS[0], "b", status=status)]
            )
            checkpoint.write(1, [failed(CONFIGS[1])])
            checkpoint.write(2, [])
        assert regions(done_in(path)) == {2: []}
        with opened(path) as checkpoint:
            checkpoint.write(0, [measured(CONFIGS[0], "a"), measured(CONFIGS[0], "b")])
        assert regions(done_in(path)) == {0: ["a", "b"], 2: []}

    @pytest.mark.parametrize(
        "value",
        [object(), lambda: 1, [object()], {"a": object()}, [].append, np.array([object()])],
        ids=["object", "lambda", "list", "dict", "bound method", "objects"],
    )
    def test_what_can_not_be_known_again_is_not_done(self, path, value):
        configs = [{"x": value}]
        with opened(path, configs=configs) as checkpoint:
            checkpoint.write(0, [measured(configs[0])])
        assert done_in(path, configs=configs) == {}

    @pytest.mark.parametrize("value", [np.float32, np.dtype("f4"), np.ones(3), len, (1, "a")])
    def test_what_can_be_known_again_is_done(self, path, value):
        configs = [{"x": value}]
        with opened(path, configs=configs) as checkpoint:
            checkpoint.write(0, [measured(configs[0])])
        assert list(done_in(path, configs=[{"x": value}])) == [0]

    def test_any_values_may_be_arguments(self, path):
        configs = [{"a": np.ones(3), "b": float("nan"), "c": (1, [2]), "d": {1: 2}, "é": "\ud800"}]
        with opened(path, configs=configs) as checkpoint:
            checkpoint.write(0, [measured(configs[0])])
        done = done_in(path, configs=configs)
        assert done[0][0].config is configs[0]


class TestFile:
    def test_each_line_is_strict_json(self, written):
        def refuse(constant):
            raise AssertionError(constant)

        lines = written.read_text(encoding="ascii").splitlines()
        header, first, _ = [json.loads(line, parse_constant=refuse) for line in lines]
        assert header == {
            "content": "gpubench sweep",
            "format": 1,
            "gpubench": gpubench.__version__,
            "name": "sweep",
            "parameters": ["n", "dtype"],
            "options": OPTIONS,
        }
        assert [each["region"] for each in first["measurements"]] == ["a", "b"]

    def test_missing_values_are_null(self, path):
        with opened(path) as checkpoint:
            values = {"power": np.array([np.nan, np.inf])}
            checkpoint.write(0, [measured(CONFIGS[0], collected=values)])
        assert '"collected": {"power": [null, "inf"]}' in path.read_text()
        np.testing.assert_array_equal(done_in(path)[0][0].collected["power"], values["power"])

    def test_a_line_is_on_the_disk_when_write_returns(self, path, monkeypatch):
        with opened(path) as checkpoint:
            synced = []
            monkeypatch.setattr(os, "fsync", lambda _: synced.append(path.read_bytes()))
            checkpoint.write(0, [measured(CONFIGS[0])])
            (content,) = synced
            assert content.endswith(b"\n")
            assert content.count(b"\n") == 2

    def test_cut_off_at_any_byte_it_holds_what_was_whole(self, path, tmp_path, monkeypatch):
        monkeypatch.setattr(
            os, "fsync", lambda _: None
        )  # which takes long, and would prove nothing
        with opened(path) as checkpoint:
            checkpoint.write(0, [measured(CONFIGS[0], r, result=None) for r in ("a", "b")])
            checkpoint.write(2, [measured(CONFIGS[2], "a", result=None)])
        content = path.read_bytes()
        lines_within = {n: content[:n].count(b"\n") for n in range(len(content) + 1)}
        expected = [{}, {}, {0: ["a", "b"]}, {0: ["a", "b"], 2: ["a"]}]
        cut = tmp_path / "cut.jsonl"
        for n, n_lines in lines_within.items():
            cut.write_bytes(content[:n])
            with opened(cut) as checkpoint:
                assert regions(checkpoint.done) == expected[n_lines]
                checkpoint.write(1, [])
            whole = content[:n].rpartition(b"\n")[0]
            assert cut.read_bytes().startswith(whole)
            assert regions(done_in(cut)) == {**expected[n_lines], 1: []}

    def test_a_full_disk_costs_the_line_alone(self, written, monkeypatch):
        with opened(written) as checkpoint:
            whole = written.read_bytes()
            file = checkpoint._file

            class Full:
                def __getattr__(self, name):
                    return getattr(file, name)

                def write(self, data):
                    file.write(data[:10])
                    raise OSError(28, "No space left on device")

            checkpoint._file = Full()
            with pytest.raises(OSError, match="No space left"):
                checkpoint.write(1, [measured(CONFIGS[1], "lost")])
            assert written.read_bytes()[: len(whole)] == whole
            checkpoint._file = file
            checkpoint.write(1, [measured(CONFIGS[1], "again")])
        assert regions(done_in(written))[1] == ["again"]

    def test_short_writes_are_gone_on_with(self, path):
        with opened(path) as checkpoint:
            file = checkpoint._file

            class Short:
                def __getattr__(self, name):
                    return getattr(file, name)

                def write(self, data):
                    return file.write(data[:7])

            checkpoint._file = Short()
            checkpoint.write(0, [measured(CONFIGS[0], "a")])
        assert regions(done_in(path)) == {0: ["a"]}

    @pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
    def test_a_killed_process_leaves_what_it_had_written(self, path):
        code = (
            "import sys; from gpubench.sweeps.checkpoint import open_checkpoint\n"
            "from gpubench.sweeps.measurement import Measurement\n"
            "configs = [{'n': n} for n in range(100_000)]\n"
            "with open_checkpoint(sys.argv[1], 'killed', configs, {}) as checkpoint:\n"
            "    for i, config in enumerate(configs):\n"
            "        checkpoint.write(i, [Measurement(config=config, region='f' * 5000)])\n"
            "        print(i, flush=True)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
        ) as process:
            for line in process.stdout:
                if int(line) >= 20:
                    break
            process.send_signal(signal.SIGKILL)
            last = max([20, *map(int, process.stdout.read().split())])
        configs = [{"n": n} for n in range(100_000)]
        done = done_in(path, name="killed", configs=configs, options={})
        assert set(range(last + 1)) <= set(done)
        assert len(done) <= last + 2


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"name": "other"}, 'is of another sweep: name is "sweep" there and "other" here;'),
            (
                {"configs": [{"n": 1}]},
                r'parameters is \["n", "dtype"\] there and \["n"\] here;',
            ),
            (
                {"options": {**OPTIONS, "method": "cupti"}},
                'sweep: method is "gated" there and "cupti" here; name another file, or remove',
            ),
            (
                {"options": {**OPTIONS, "cache": "cold", "n_repeat": None}},
                'cache is null there and "cold" here; n_repeat is 30 there and null here;',
            ),
            ({"options": {}}, "devices is .*; method is .*; n_repeat is .* there and null here;"),
        ],
    )
    def test_another_sweep_is_told_by_what_differs(self, written, changes, message):
        content = written.read_bytes()
        with pytest.raises(gpubench.ArgumentError, match=message) as caught:
            done_in(written, **changes)
        assert str(caught.value).startswith(f"checkpoint={str(written)!r} is of another sweep: ")
        assert written.read_bytes() == content

    def test_options_are_the_same_after_a_trip_through_json(self, path):
        options = {"devices": (0, 1), "n": np.int64(3), "peak": float("inf"), "dtype": np.float32}
        assert done_in(path, options=options) == {}
        assert done_in(path, options=dict(reversed(options.items()))) == {}

    @pytest.mark.parametrize(
        "content",
        [
            b"n,dtype\n1,2\n",
            b"my notes",
            b"\n",
            b"{}\n",
            b'{"content": "gpubench recording"}\n',
            b"\x00" * 5,
            "é".encode("utf-16"),
        ],
    )
    def test_another_file_is_left_alone(self, path, content):
        path.write_bytes(content)
        with pytest.raises(gpubench.ArgumentError, match=r"is not a checkpoint; name another file"):
            done_in(path)
        assert path.read_bytes() == content

    @pytest.mark.parametrize(
        "line",
        [b"", b"{", b"[]", b"{}", b'{"key": 1, "measurements": []}', b'{"key": "a"}', b"\xff",
         b'{"key": "a", "measurements": [{}]}', b'{"key": "a", "measurements": NaN}',
         b'{"key": "a", "measurements": 3}'],
    )  # fmt: skip
    def test_a_line_that_was_damaged_is_named(self, written, line):
        first, second, third = written.read_bytes().splitlines(keepends=True)
        content = first + second + line + b"\n" + third
        written.write_bytes(content)
        with pytest.raises(gpubench.ArgumentError, match=r"can't be read in line 3: "):
            done_in(written)
        assert written.read_bytes() == content

    @pytest.mark.parametrize("newer", ["2", "null", '"x"'])
    def test_a_newer_format(self, written, newer):
        content = written.read_text().replace('"format": 1', f'"format": {newer}', 1)
        written.write_text(content)
        with pytest.raises(gpubench.ArgumentError, match="newer than 1: install a newer gpubench"):
            done_in(written)

    def test_another_release_may_have_written_it(self, written):
        content = written.read_text().replace(gpubench.__version__, "0.0.9", 1)
        written.write_text(content)
        assert regions(done_in(written)) == {0: ["a", "b"], 2: ["a"]}

    def test_a_file_in_use(self, path):
        pytest.importorskip("fcntl")
        in_use = pytest.raises(gpubench.ArgumentError, match="is in use by another sweep")
        with opened(path), in_use:
            done_in(path)
        assert done_in(path) == {}

    def test_where_there_are_no_locks_it_works_without(self, written, monkeypatch):
        monkeypatch.setitem(sys.modules, "fcntl", None)
        assert regions(done_in(written)) == {0: ["a", "b"], 2: ["a"]}

    def test_a_path_that_can_not_be_written(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            done_in(tmp_path / "absent" / "sweep.jsonl")
        with pytest.raises(IsADirectoryError):
            done_in(tmp_path)
