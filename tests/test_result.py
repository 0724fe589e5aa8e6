import copy
import dataclasses
import json
import math
import pickle
import sys

import numpy as np
import pytest
from example_results import make_result

from gpubench.compilation import Compilation
from gpubench.errors import ArgumentError, MissingExtraError
from gpubench.kernel_time import KernelTime
from gpubench.notes import Note
from gpubench.result import BenchmarkResult

NOTE = Note("near-floor", "The median is under ten floors.", "Use method='graph'.")


def boom(constant):
    raise AssertionError(f"{constant} is no JSON")


CPU = "    CPU:     6.000 us   +/-  0.816 (min:     5.000 / max:     7.000) us"
GPU = "    GPU-2:    10.000 us   +/-  1.633 (min:     8.000 / max:    12.000) us"

# --- The line that scripts read ---


def test_first_line_is_cupys():
    assert str(make_result(devices=(2,))) == f"f                   :{CPU} {GPU}"


def test_one_sample_has_a_mean_only():
    result = make_result([5.62], [[1234567.8]])
    assert str(result) == "f                   :    CPU:     5.620 us     GPU-0: 1234567.800 us"


def test_to_str_leaves_devices_out_unless_asked_for_them_and_notes_always():
    result = make_result(notes=(NOTE,))
    assert result.to_str() == result.to_str(show_gpu=False) == f"f                   :{CPU}"
    assert str(result).startswith(result.to_str(show_gpu=True) + "\n")


def test_long_names_and_several_devices_stay_in_the_line():
    result = make_result([1.0], [[2.0], [3.0]], name="a_name_of_more_than_20_characters")
    assert str(result) == (
        "a_name_of_more_than_20_characters:"
        "    CPU:     1.000 us     GPU-0:     2.000 us     GPU-1:     3.000 us"
    )


def test_each_note_is_one_indented_line_below():
    notes = (NOTE, Note("odd", "Two\nlines."))
    first, *others = str(make_result(notes=notes)).split("\n")
    assert first == make_result().to_str(show_gpu=True)
    assert others == [
        "    near-floor: The median is under ten floors. Use method='graph'.",
        "    odd: Two\\nlines.",
    ]


# --- repr ---


def test_repr_has_name_unit_median_interval_n_and_method():
    result = make_result(np.linspace(10, 14, 100), [np.linspace(6, 6.1, 100)])
    assert repr(result) == (
        "<BenchmarkResult f: GPU-0 6.05 us [6.04, 6.06], CPU 12.0 us [11.6, 12.4], n=100, gated>"
    )


def test_repr_without_gpu_and_without_interval():
    result = make_result([999.96], [], method="host", name="two\nlines")
    assert repr(result) == "<BenchmarkResult two\\nlines: CPU 1.00 ms, n=1, host>"


# --- A value ---


def test_arrays_are_copies_and_read_only():
    cpu_times = np.array([1.0, 2.0])
    result = make_result([1, 2], [[1, 2]], cpu_times=cpu_times)
    cpu_times[0] = 9
    assert result.cpu_times.tolist() == [1.0, 2.0]
    for times in (result.cpu_times, result.gpu_times):
        with pytest.raises(ValueError, match="read-only"):
            times[...] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.name = "g"


def test_environment_is_a_read_only_copy():
    environment = {"gpu": {"name": "X"}, "sizes": (1, 2)}
    result = make_result(environment=environment)
    environment["gpu"]["name"] = "Y"
    assert result.environment == {"gpu": {"name": "X"}, "sizes": [1, 2]}
    with pytest.raises(TypeError):
        result.environment["gpu"] = None


def test_equality_is_by_value():
    result = make_result(notes=[NOTE])
    same = make_result(notes=(NOTE,))
    assert result == same
    assert hash(result) == hash(same)
    assert result != make_result()
    assert result != make_result([5, 6, 7.1], notes=(NOTE,))
    assert result != make_result([5, 6], [[8, 10]], notes=(NOTE,))
    assert result != make_result(gpu_us=[], notes=(NOTE,))
    assert result != "f"


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_copies_and_pickles_are_equal_and_read_only_too(duplicate):
    result = make_result(notes=(NOTE,), environment={"gpu": {"name": "X"}})
    assert result.cpu.n == 3  # what is cached must not get into the way
    other = duplicate(result)
    assert other == result
    assert other is not result
    assert not other.cpu_times.flags.writeable
    assert dataclasses.replace(result, name="g").name == "g"


def test_statistics_are_those_of_the_arrays_and_taken_once():
    result = make_result()
    assert (result.cpu.n, result.cpu.median) == (3, pytest.approx(6e-6))
    assert [one.max for one in result.gpu] == [pytest.approx(12e-6)]
    assert result.cpu is result.cpu
    assert result.gpu is result.gpu
    assert make_result(gpu_us=[]).gpu == ()


def test_interrupted_follows_from_what_stopped_the_run():
    assert make_result(stopped_by="interrupted").interrupted
    assert not make_result(stopped_by="converged").interrupted


def test_numpy_numbers_become_pythons():
    result = make_result(
        devices=np.array([3]),
        n_warmup=np.int64(2),
        samples_per_gate=np.int32(1),
        floor=np.float32(1),
    )
    assert (result.devices, result.n_warmup, result.samples_per_gate, result.floor) == (
        (3,),
        2,
        1,
        1.0,
    )
    assert json.loads(result.to_json())["devices"] == [3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cpu_times": []}, "cpu_times must be one-dimensional with a sample"),
        ({"cpu_times": [[1.0]]}, "cpu_times must be one-dimensional with a sample"),
        ({"cpu_times": [1.0, math.nan, 1.0]}, "cpu_times must hold finite numbers"),
        ({"gpu_times": [1.0, 2.0, 3.0]}, r"gpu_times must have shape \(1, 3\).*got \(3,\)"),
        ({"gpu_times": np.empty((0, 3))}, r"gpu_times must have shape \(1, 3\)"),
        ({"gpu_times": [[1.0, 2.0]]}, r"gpu_times must have shape \(1, 3\)"),
        ({"gpu_times": [[1.0, 2.0, math.inf]]}, "gpu_times must hold finite numbers"),
        ({"devices": ()}, r"gpu_times must have shape \(0, 3\)"),
        ({"devices": (1.5,)}, "devices must be an integer, got 1.5"),
        ({"devices": (True,)}, "devices must be an integer, got True"),
        ({"devices": (-1,)}, "devices must be at least 0"),
        ({"devices": (0, 0)}, r"devices must not repeat an id, got \(0, 0\)"),
        ({"samples_per_gate": 0}, "samples_per_gate must be at least 1"),
        ({"n_warmup": -1}, "n_warmup must be at least 0"),
        ({"floor": math.nan}, "floor must be a number"),
        ({"clock_step": -1e-9}, "clock_step must be at least 0"),
        ({"first_call_time": "1"}, "first_call_time must be a number"),
        ({"environment": {"load": math.nan}}, "environment must hold plain JSON values"),
        ({"environment": {"gpu": object()}}, "environment must hold plain JSON values"),
        ({"environment": None}, "environment must hold plain JSON values"),
    ],
)
def test_fields_that_disagree_are_refused(changes, message):
    with pytest.raises(ArgumentError, match=message):
        make_result(**changes)


# --- Exports ---


@pytest.mark.parametrize(
    "result",
    [
        make_result(),
        make_result([5.0], [[8.0]]),
        make_result([5.0], [], method="host"),
        make_result([5.0] * 10, [[0.0] * 10, [0.0] * 10], floor=1.25e-6, first_call_time=0.5),
        make_result(name="\ud800 \x00 é", notes=(NOTE,), environment={"gpu": None}),
    ],
    ids=["three", "one", "cpu", "equal", "text"],
)
def test_json_is_strict_and_has_the_same_keys_whatever_was_measured(result):
    values = json.loads(result.to_json(), parse_constant=boom)
    assert values == result.to_dict()
    assert list(values) == list(make_result().to_dict())
    assert list(values["cpu"]) == list(make_result().cpu.to_dict("s"))


def test_dict_holds_everything_with_units_in_the_keys():
    result = make_result(
        floor=1.25e-6,
        clock_step=32e-9,
        first_call_time=0.5,
        first_call_compile_time=0.25,
        compilations=(Compilation(("k",), "nvrtc", 0.25),),
        busy_times=[[7e-6, 9e-6, 11e-6]],
        kernels=(KernelTime("k", 2.0, 3e-6),),
        samples_per_gate=20,
        stopped_by="interrupted",
        notes=(NOTE,),
        environment={"gpu": "X"},
    )
    assert result.to_dict() == {
        "name": "f",
        "method": "gated",
        "cache": "warm",
        "samples_per_gate": 20,
        "floor_s": 1.25e-6,
        "clock_step_s": 32e-9,
        "n_warmup": 10,
        "first_call_time_s": 0.5,
        "first_call_compile_time_s": 0.25,
        "compilations": [{"names": ["k"], "source": "nvrtc", "wall_time_s": 0.25}],
        "stopped_by": "interrupted",
        "interrupted": True,
        "devices": [0],
        "cpu_times_s": result.cpu_times.tolist(),
        "gpu_times_s": result.gpu_times.tolist(),
        "busy_times_s": [[7e-6, 9e-6, 11e-6]],
        "kernels": [{"name": "k", "calls": 2.0, "median_time_s": 3e-6}],
        "cpu": result.cpu.to_dict("s"),
        "gpu": [result.gpu[0].to_dict("s")],
        "busy": [result.busy[0].to_dict("s")],
        "notes": [
            {
                "code": "near-floor",
                "message": "The median is under ten floors.",
                "advice": "Use method='graph'.",
            }
        ],
        "environment": {"gpu": "X"},
        "imbalance": None,
        "ranks": [],
    }


def test_dataframe_has_a_row_for_each_sample_in_run_order():
    pytest.importorskip("pandas")
    frame = make_result([7, 5, 6], [[1, 2, 3], [4, 5, 6]], devices=(0, 3)).to_dataframe()
    assert list(frame) == ["sample", "cpu_time_s", "gpu_0_time_s", "gpu_3_time_s"]
    assert frame["sample"].tolist() == [0, 1, 2]
    assert frame["cpu_time_s"].tolist() == pytest.approx([7e-6, 5e-6, 6e-6])
    assert frame["gpu_3_time_s"].tolist() == pytest.approx([4e-6, 5e-6, 6e-6])
    frame.loc[0, "cpu_time_s"] = 0.0  # the frame is the caller's own
    assert list(make_result([7], []).to_dataframe()) == ["sample", "cpu_time_s"]


def test_dataframe_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r'pip install "gpubench\[dataframe\]"'):
        make_result().to_dataframe()


# --- IPython ---


def test_ipython_shows_the_panel_and_indents_it_inside_a_list():
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    result = make_result()
    assert pretty(result) == result.summary()
    first, second, *_ = pretty([result, result]).splitlines()
    assert first == "[" + result.summary().splitlines()[0]
    assert second.strip() == ""
    assert f"\n {result.summary().splitlines()[3]}\n" in pretty([result])


def test_jupyter_shows_html():
    html = make_result()._repr_html_()
    assert html.startswith("<div>")
    assert "GPU-0" in html


def test_results_are_made_by_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        BenchmarkResult("f")
