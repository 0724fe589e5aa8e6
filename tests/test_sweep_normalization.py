"""Multiples of a baseline, and their intervals."""

import math

import numpy as np
import pytest
from example_sweeps import failed, measured, metric, on_host, precision, swept

from gpubench.errors import ArgumentError
from gpubench.stats import median_interval
from gpubench.sweeps.normalization import ratio_interval
from gpubench.sweeps.roofline import Peaks


def test_every_statistic_is_divided_by_the_median_of_the_baseline():
    raw = metric(precision().rows[1], "gpu_time").statistics
    found = metric(precision(normalize_against="fp32").rows[1], "gpu_time")
    assert (found.unit, found.baseline) == ("", "fp32")
    for name in ("mean", "std", "min", "q1", "median", "q3", "max", "mad", "p95", "p99"):
        assert getattr(found.statistics, name) == pytest.approx(getattr(raw, name) / 80e-6)
    assert found.samples == pytest.approx(metric(precision().rows[1], "gpu_time").samples / 80e-6)
    assert found.statistics.n == raw.n
    assert found.statistics.drift == pytest.approx(raw.drift)
    assert found.statistics.autocorrelation == pytest.approx(raw.autocorrelation)


def test_both_intervals_are_propagated():
    found = metric(precision(normalize_against="fp32").rows[1], "gpu_time").statistics
    # Both are 3 % either side of the median.
    down = math.hypot(math.log(1 / 0.97), math.log(1.03))
    assert found.ci95 == pytest.approx((0.25 / math.exp(down), 0.25 * math.exp(down)))


def test_the_baseline_is_exactly_one():
    found = metric(precision(normalize_against="fp32").rows[0], "gpu_time").statistics
    assert found.median == pytest.approx(1)
    assert found.ci95 == (1, 1)


def test_what_is_derived_is_normalized_too():
    sweep = precision(normalize_against="fp32", derive={"d": lambda t: (1 / t, "1/s")})
    found = metric(sweep.rows[3], "d")
    assert found.statistics.median == pytest.approx(8)
    assert (found.unit, found.baseline) == ("", "fp32")


def test_each_configuration_has_its_own_baseline():
    medians = [
        metric(row, "gpu_time").statistics.median
        for row in precision(normalize_against="fp32").rows
    ]
    assert medians == pytest.approx([1, 0.25, 1, 0.125])


def test_a_configuration_as_the_baseline():
    sweep = precision(normalize_against={"n": 512})
    medians = [metric(row, "gpu_time").statistics.median for row in sweep.rows]
    assert medians == pytest.approx([1, 1, 8, 4])
    assert metric(sweep.rows[3], "gpu_time").baseline == "n=512"


def test_a_configuration_that_differs_in_nothing_else():
    sweep = swept(
        measured({"n": 1, "dtype": np.float32}, us=10.0),
        measured({"n": 1, "dtype": np.float64}, us=20.0),
        measured({"n": 2, "dtype": np.float32}, us=40.0),
        measured({"n": 2, "dtype": np.float64}, us=120.0),
        normalize_against={"dtype": np.float32},
    )
    medians = [metric(row, "gpu_time").statistics.median for row in sweep.rows]
    assert medians == pytest.approx([1, 2, 1, 3])
    assert metric(sweep.rows[1], "gpu_time").baseline == "dtype=float32"


def test_values_that_cannot_be_hashed_are_told_apart():
    a, b = np.zeros(3), np.zeros(3)
    sweep = swept(
        measured({"x": a}, "g", us=10.0),
        measured({"x": a}, "h", us=20.0),
        measured({"x": b}, "h", us=20.0),
        normalize_against="g",
    )
    assert [metric(row, "gpu_time").baseline for row in sweep.rows] == ["g", "g", ""]


def test_a_configuration_without_a_baseline_stays_as_it_is():
    sweep = swept(
        measured({"n": 1}, "fp32", us=10.0),
        measured({"n": 1}, "fp16", us=5.0),
        measured({"n": 2}, "fp16", us=7.0),
        failed({"n": 3}),
        normalize_against="fp32",
    )
    assert len(sweep.rows) == 4
    left = metric(sweep.rows[2], "gpu_time")
    assert (left.unit, left.baseline) == ("s", "")
    assert left.statistics.median == pytest.approx(7e-6)
    (note,) = sweep.remarks
    assert note.code == "no-baseline"
    assert note.message == (
        "There is no baseline fp32 for 1 of 3 measurements, which are shown as they were measured."
    )
    assert note.advice == ""


def test_a_name_that_is_no_region_keeps_the_measurements():
    sweep = precision(normalize_against="fp23")
    assert {metric(row, "gpu_time").unit for row in sweep.rows} == {"s"}
    assert sweep.remarks[0].advice == "Regions are fp32, fp16."


def test_a_metric_that_the_baseline_lacks_stays_as_it_is():
    sweep = swept(on_host({"n": 1}, "host"), measured({"n": 1}, "device"), normalize_against="host")
    device = sweep.rows[1]
    assert metric(device, "cpu_time").baseline == "host"
    assert metric(device, "gpu_time").unit == "s"


def test_units_that_differ_are_not_divided():
    units = iter(["B/s"] * 7 + ["KB/s"] * 7)
    sweep = swept(
        measured({"n": 1}, "a"),
        measured({"n": 1}, "b"),
        derive={"d": lambda t: (1.0, next(units))},
        normalize_against="a",
    )
    assert [metric(row, "d").unit for row in sweep.rows] == ["", "KB/s"]


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_baseline_that_is_not_above_zero_divides_nothing(value):
    sweep = swept(
        measured({"n": 1}, "a"), derive={"d": lambda t: (value, "x")}, normalize_against="a"
    )
    assert metric(sweep.rows[0], "d").unit == "x"


def test_a_ratio_that_is_no_float_stays_as_it_is():
    sweep = swept(
        measured({"n": 1}, "a", us=1.0),
        measured({"n": 1}, "b", us=2.0),
        derive={"d": lambda t: 1e-300 if t < 1.5e-6 else 1e140},
        normalize_against="a",
    )
    assert metric(sweep.rows[1], "d").baseline == ""


def test_the_share_of_a_peak_is_not_normalized():
    sweep = precision(normalize_against="fp32", bytes=8e6, peaks=Peaks(None, 1e12))
    assert metric(sweep.rows[0], "peak_share").statistics.median == pytest.approx(10)
    assert metric(sweep.rows[1], "peak_share").unit == "%"
    assert metric(sweep.rows[1], "bandwidth").statistics.median == pytest.approx(4)


@pytest.mark.parametrize(
    ("interval", "baseline_interval"),
    [(None, (1, 3)), ((1, 3), None), ((0, 3), (1, 3)), ((-1, 3), (1, 3)), ((1, 3), (0, 3))],
)
def test_an_interval_that_cannot_be_told(interval, baseline_interval):
    assert ratio_interval(2.0, interval, 2.0, baseline_interval) is None


def test_an_exact_baseline_scales_the_interval():
    assert ratio_interval(4.0, (3.0, 6.0), 2.0, (2.0, 2.0)) == pytest.approx((1.5, 3.0))


def test_an_exact_value_turns_the_interval_of_the_baseline_round():
    assert ratio_interval(4.0, (4.0, 4.0), 2.0, (1.0, 3.0)) == pytest.approx((4 / 3, 4.0))


def test_an_interval_beyond_the_floats_is_unknown():
    assert ratio_interval(1e150, (1e-150, 1e150), 1e-150, (1e-300, 1e150)) is None


def test_the_interval_holds_the_ratio_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for a, b in rng.lognormal(0, 0.5, (1000, 2, 25)):
        interval = ratio_interval(
            3 * np.median(a), (3 * np.array(median_interval(a))), np.median(b), median_interval(b)
        )
        hits += interval[0] <= 3 <= interval[1]
    assert 0.94 < hits / 1000 < 0.99


@pytest.mark.parametrize(
    ("against", "message"),
    [
        (3, "normalize_against must be a region's name, or a mapping .*; got 3"),
        ({}, "normalize_against must be a region's name, or a mapping .*; got {}"),
        ({"m": 1}, "normalize_against names 'm', which is no parameter; there are n"),
    ],
)
def test_what_cannot_be_a_baseline(against, message):
    with pytest.raises(ArgumentError, match=message):
        precision(normalize_against=against)
