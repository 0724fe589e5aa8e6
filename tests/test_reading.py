import json

import pytest
from example_results import make_result

from gpubench.compilation import Compilation
from gpubench.errors import ArgumentError
from gpubench.notes import Note
from gpubench.result import BenchmarkResult


@pytest.mark.parametrize(
    "result",
    [
        make_result(),
        make_result([5.0], [], method="host"),
        make_result([1 / 3, 2 / 3], [[0.1, 0.2], [0.3, 0.4]], devices=(3, 1)),
        make_result(
            floor=1.25e-6,
            clock_step=32e-9,
            first_call_time=0.5,
            first_call_compile_time=0.25,
            compilations=(Compilation(("k", "l"), "nvrtc", 0.25), Compilation((), "disk", 0.0)),
            samples_per_gate=20,
            n_warmup=0,
            stopped_by="interrupted",
            notes=(Note("a", "b", "c"), Note("d", "e")),
            environment={"gpu": {"name": "X", "sizes": [1, None]}},
        ),
    ],
    ids=["plain", "host", "devices", "everything"],
)
def test_a_result_comes_back_equal(result):
    assert BenchmarkResult.from_dict(result.to_dict()) == result
    assert BenchmarkResult.from_dict(json.loads(result.to_json())) == result


def test_unknown_keys_are_ignored_and_absent_or_null_ones_are_unknown():
    expected = make_result(
        [2.0], [], method="unknown", n_warmup=0, stopped_by="n_repeat", name="old"
    )
    needed = {"name": "old", "cpu_times_s": [2e-6]}
    assert BenchmarkResult.from_dict({**needed, "status": "ok", "newer": 1}) == expected
    nulls = dict.fromkeys(expected.to_dict().keys() - needed.keys())
    assert BenchmarkResult.from_dict({**nulls, **needed}) == expected


def test_devices_are_numbered_where_an_older_release_left_them_out():
    values = make_result([1.0], [[1.0], [2.0]]).to_dict()
    del values["devices"]
    assert BenchmarkResult.from_dict(values).devices == (0, 1)


def test_compilations_and_notes_may_lack_parts():
    values = {**make_result().to_dict(), "compilations": [{}], "notes": [{"code": "a"}]}
    result = BenchmarkResult.from_dict(values)
    assert result.compilations == (Compilation((), "unknown", 0.0),)
    assert result.notes == (Note("a", ""),)


@pytest.mark.parametrize("key", ["name", "cpu_times_s"])
def test_a_result_needs_a_name_and_times(key):
    values = make_result().to_dict()
    values[key] = None
    with pytest.raises(ArgumentError, match=f"{key} is missing"):
        BenchmarkResult.from_dict(values)
    del values[key]
    with pytest.raises(ArgumentError, match=f"{key} is missing"):
        BenchmarkResult.from_dict(values)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", 3, "name must be a string, got 3"),
        ("method", ["gated"], "method must be a string"),
        ("stopped_by", 1, "stopped_by must be a string, got 1"),
        ("cpu_times_s", "abc", "cpu_times_s must hold real numbers"),
        ("cpu_times_s", [1.0, None], "cpu_times_s must hold real numbers"),
        ("gpu_times_s", [[1.0], [1.0, 2.0]], "gpu_times_s must be an array of numbers"),
        ("gpu_times_s", [[1.0]], r"gpu_times must have shape \(1, 3\)"),
        ("devices", 0, "devices must be a list, got 0"),
        ("devices", ["0"], "devices must be an integer, got '0'"),
        ("samples_per_gate", 1.5, "samples_per_gate must be an integer"),
        ("n_warmup", -1, "n_warmup must be at least 0"),
        ("floor_s", "x", "floor_s must be a number, got 'x'"),
        ("clock_step_s", -1, "clock_step_s must be at least 0"),
        ("first_call_time_s", True, "first_call_time_s must be a number"),
        ("first_call_compile_time_s", [], "first_call_compile_time_s must be a number"),
        ("compilations", "nvrtc", "compilations must be a list"),
        ("compilations", [3], "compilations must be a mapping, got 3"),
        ("compilations", [{"names": "k"}], "names must be a list, got 'k'"),
        ("compilations", [{"wall_time_s": "1"}], "compilations: wall_time_s must be a number"),
        ("notes", {}, "notes must be a list"),
        ("notes", ["text"], "notes must be a mapping, got 'text'"),
        ("notes", [{"code": 3}], "notes: code must be a string, got 3"),
        ("environment", "linux", "environment must be a mapping, got 'linux'"),
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error_that_names_its_key(key, value, message):
    with pytest.raises(ArgumentError, match=message):
        BenchmarkResult.from_dict({**make_result().to_dict(), key: value})


@pytest.mark.parametrize("values", [None, [], "name", make_result()])
def test_what_is_no_mapping_is_refused(values):
    with pytest.raises(ArgumentError, match="a result must be a mapping"):
        BenchmarkResult.from_dict(values)
