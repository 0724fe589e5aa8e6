"""What a measurement says: its times, and what is computed from their samples."""

import functools
import math

import numpy as np
import pytest
from example_results import make_result
from example_sweeps import measured, metric, on_host, swept

import gpubench
from gpubench.errors import ArgumentError
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.metrics import (
    Metric,
    base_metrics,
    decisive,
    derived,
    rate,
    with_config,
)


def seconds(*values, device=0):
    return Metric.of("gpu_time", "s", np.array(values, float), device)


def test_times_of_each_device_and_the_host():
    result = make_result(
        cpu_us=(7, 6), gpu_us=((1, 2), (3, 4)), busy_times=[[5e-7, 6e-7], [7e-7, 8e-7]]
    )
    found = [(m.name, m.unit, m.device, m.samples.tolist()) for m in base_metrics(result)]
    assert found == [
        ("gpu_time", "s", 0, [1e-6, 2e-6]),
        ("gpu_time", "s", 1, [3e-6, 4e-6]),
        ("busy_time", "s", 0, [5e-7, 6e-7]),
        ("busy_time", "s", 1, [7e-7, 8e-7]),
        ("cpu_time", "s", None, [7e-6, 6e-6]),
    ]


def test_others_are_computed_from_the_busiest_device():
    result = make_result(cpu_us=(9, 9), gpu_us=((1, 2), (3, 4), (0, 1)))
    assert decisive(base_metrics(result)).device == 1


def test_others_are_computed_from_the_host_without_a_device():
    assert decisive(base_metrics(on_host({}).result)).name == "cpu_time"


def test_a_metric_cannot_be_changed():
    samples = seconds(1.0, 2.0).samples
    with pytest.raises(ValueError, match="read-only"):
        samples[0] = 3.0


def test_a_function_is_applied_to_every_sample():
    found = derived("rate", lambda t, n: (n / t, "item/s"), seconds(1, 2, 4, 4, 8, 8), {"n": 8})
    assert found.samples.tolist() == [8, 4, 2, 2, 1, 1]
    assert (found.name, found.unit, found.device, found.problem) == ("rate", "item/s", 0, "")
    # The interval comes from the samples: that of a mapped median would be [1, 8] mapped to it.
    assert found.statistics.ci95 == (1, 8)
    assert found.statistics.median == 2
    assert found.statistics.mean == 3


def test_a_number_has_no_unit():
    assert derived("half", lambda t: t / 2, seconds(1, 2), {"n": 8}).unit == ""


@pytest.mark.parametrize("returned", [np.float32(2), np.int64(2), 2, (np.float64(2), "x")])
def test_numbers_of_all_kinds(returned):
    assert derived("d", lambda t: returned, seconds(1), {}).samples.tolist() == [2]


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (math.nan, "the value of d must be a number, got NaN"),
        (math.inf, "the value of d must be finite, got inf"),
        (1e200, "the value of d must be below 1e+150, got 1e+200"),
        (True, "the value of d must be a number, got True"),
        ("fast", "the value of d must be a number, got 'fast'"),
        (None, "the value of d must be a number, got None"),
        ((1, 2), "d must return a number or (number, unit), got (1, 2)"),
        ((1, "a", "b"), "the value of d must be a number, got (1, 'a', 'b')"),
    ],
)
def test_what_is_no_number_is_missing(returned, problem):
    found = derived("d", lambda t: returned, seconds(1, 2), {})
    assert found.statistics is None
    assert np.isnan(found.samples).all()
    assert found.problem == problem


def test_an_exception_makes_a_missing_value():
    def fails(t):
        if t > 1:
            raise ValueError("too slow\nby far")
        return t

    found = derived("d", fails, seconds(1, 2, 1), {})
    assert found.statistics.n == 2
    assert np.isnan(found.samples).tolist() == [False, True, False]
    assert found.problem == "ValueError: too slow"


def test_an_exception_without_a_text():
    def fails(t):
        raise KeyError

    assert derived("d", fails, seconds(1), {}).problem == "KeyError"


def test_the_keyboard_is_no_missing_value():
    def interrupts(t):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        derived("d", interrupts, seconds(1), {})


def test_no_time_has_no_value():
    found = derived("d", lambda t: 1 / t, seconds(0, 2), {})
    assert found.statistics.max == 0.5
    assert found.problem == "no time passed"


def test_samples_of_different_units_are_not_mixed():
    found = derived("d", lambda t: (t, "s" if t < 2 else "min"), seconds(1, 2, 1), {})
    assert found.statistics.n == 2
    assert found.problem == "one sample has the unit 's', another 'min'"


def by_position_only(t, n, /):
    return t, n


CONFIG = {"n": 8, "dtype": "f"}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda t: t, 1),
        (lambda t, n: (t, n), (1, 8)),
        (lambda t, dtype: (t, dtype), (1, "f")),
        (lambda t, dtype, n: (t, n, dtype), (1, 8, "f")),
        (lambda t, n, scale=3: (t, n, scale), (1, 8, 3)),
        (lambda t, *, n: (t, n), (1, 8)),
        (lambda t, **rest: (t, rest), (1, CONFIG)),
        (lambda t, n, **rest: (t, n, rest), (1, 8, {"dtype": "f"})),
        (lambda t, size, kind: (t, size, kind), (1, 8, "f")),
        (lambda t, *rest: (t, rest), (1, (8, "f"))),
        (lambda *every: every, (1, 8, "f")),
        (functools.partial(lambda k, t, n: (k, t, n), 0), (0, 1, 8)),
    ],
)
def test_how_a_function_gets_the_configuration(function, expected):
    assert with_config(function, CONFIG, n_leading=1)(1) == expected


def test_positional_parameters_and_builtins_get_it_by_position():
    assert with_config(by_position_only, {"n": 8}, n_leading=1)(1) == (1, 8)
    assert with_config(max, {"n": 8}, n_leading=1)(1) == 8
    assert with_config(max, {"a": 8, "b": 9}, n_leading=0)() == 9


def test_a_function_that_does_not_fit_is_said_once():
    rows = swept(
        measured({"n": 1, "m": 2}),
        measured({"n": 2, "m": 2}),
        derive={"d": lambda t, x, y, z: t},
    )
    (note,) = rows.remarks
    assert note.code == "metric-missing"
    assert note.message.startswith("d lacks values in 2 of 2 measurements: TypeError: ")
    assert "missing 1 required positional argument: 'z'" in note.message


def test_rates_have_units():
    found = rate("flop_rate", lambda: 4e12, seconds(1, 2))
    assert (found.unit, found.samples.tolist()) == ("TFLOP/s", [4, 2])
    found = rate("bandwidth", lambda: 4e9, seconds(1, 2))
    assert (found.unit, found.samples.tolist()) == ("GB/s", [4, 2])


def test_a_rate_needs_time_and_a_declaration():
    found = rate("bandwidth", lambda: 4e9, seconds(0, 2))
    assert found.statistics.n == 1
    assert found.problem == "no time passed"
    assert rate("bandwidth", lambda: None, seconds(1)) is None
    assert rate("bandwidth", lambda: 1 / 0, seconds(1)).problem == (
        "ZeroDivisionError: division by zero"
    )
    assert rate("bandwidth", lambda: 1e300, seconds(1e-30)).statistics is None


@pytest.mark.parametrize(
    "flops",
    [
        2e6,
        lambda n: 2 * n,
        {"f": 2e6, "g": 1},
        {"f": lambda n: 2 * n},
        {"f": lambda size: 2 * size},
    ],
)
def test_flops_in_all_their_forms(flops):
    (row,) = swept(measured({"n": 10**6}, us=1.0), flops=flops).rows
    assert metric(row, "flop_rate").statistics.median == pytest.approx(2.0)


def test_what_is_not_declared_for_a_region_has_no_rate():
    (row,) = swept(measured({"n": 1}), bytes={"g": 1}).rows
    assert [each.name for each in row.metrics] == ["gpu_time", "cpu_time"]


@pytest.mark.parametrize("value", [-1, math.nan, "8", None])
def test_a_declaration_that_is_no_amount_is_said(value):
    result = swept(measured({"n": 1}), bytes=lambda n: value)
    if value is None:
        assert "bytes must be a number, got None" in result.remarks[0].message
    assert metric(result.rows[0], "bandwidth").statistics is None
    assert result.remarks[0].code == "metric-missing"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"derive": [1]}, "derive must be a mapping of names to functions"),
        ({"derive": {1: abs}}, "derive must have names as keys, got 1"),
        ({"derive": {"": abs}}, "derive must have names as keys, got ''"),
        ({"derive": {"d": 3}}, r"derive\['d'\] must be a function, got 3"),
        ({"derive": {"gpu_time": abs}}, "derive must not redefine 'gpu_time'; .*bandwidth"),
        ({"flops": "many"}, "flops must be a number, got 'many'"),
        ({"flops": -1}, "flops must be at least 0, got -1"),
        ({"bytes": True}, "bytes must be a number, got True"),
        ({"bytes": {"f": "many"}}, r"bytes\['f'\] must be a number, got 'many'"),
        ({"bytes": {1: 2}}, "bytes must have names of regions as keys, got 1"),
    ],
)
def test_what_cannot_be_declared(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        swept(measured({"n": 1}), **arguments)


def test_a_measured_time_is_what_the_simulated_gpu_worked(gpu):
    result = gpubench.benchmark(gpu.launch, (1e-3,), n_repeat=8)
    sweep = swept(
        Measurement(config={"n": 100}, region="f", result=result),
        derive={"rate": lambda t, n: (n / t, "1/s")},
    )
    assert metric(sweep.rows[0], "rate").statistics.median == pytest.approx(1e5, rel=0.01)
