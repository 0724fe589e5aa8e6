import json
import math
import time
from dataclasses import FrozenInstanceError, asdict

import numpy as np
import pytest

from gpubench.errors import ArgumentError
from gpubench.stats import autocorrelation, drift, finite_array, median_interval, summarize


def test_statistics_of_a_series_counted_by_hand():
    statistics = summarize([4, 1, 3, 2, 10])
    assert asdict(statistics) == {
        "n": 5,
        "mean": 4.0,
        "std": pytest.approx(math.sqrt(10)),
        "min": 1.0,
        "max": 10.0,
        "median": 3.0,
        "q1": 2.0,
        "q3": 4.0,
        "mad": 1.0,
        "p95": pytest.approx(8.8),
        "p99": pytest.approx(9.76),
        "ci95": None,
        # Deviations 0, -3, -1, -2, 6: (0 + 3 + 2 - 12) / (0 + 9 + 1 + 4 + 36).
        "autocorrelation": pytest.approx(-7 / 50),
        "drift": 1.5,
    }


def test_statistics_are_a_value():
    statistics = summarize([1.0, 2.0])
    assert statistics == summarize(np.array([1, 2]))
    with pytest.raises(FrozenInstanceError):
        statistics.n = 3


@pytest.mark.parametrize("value", [0.0, 0.1, 1e-9, 123.456, -3.0])
def test_one_sample_knows_of_no_spread(value):
    statistics = summarize([value])
    quantiles = (statistics.q1, statistics.median, statistics.q3, statistics.p95, statistics.p99)
    assert (statistics.n, statistics.mean, statistics.min, statistics.max) == (1, *[value] * 3)
    assert quantiles == (value,) * 5
    assert statistics.mad == 0
    assert statistics.std is None
    assert statistics.ci95 is None
    assert statistics.autocorrelation is None
    assert statistics.drift is None


def test_two_samples():
    statistics = summarize([1.0, 2.0])
    assert (statistics.median, statistics.q1, statistics.q3) == (1.5, 1.25, 1.75)
    assert statistics.std == 0.5
    assert (statistics.autocorrelation, statistics.drift, statistics.ci95) == (None, None, None)


@pytest.mark.parametrize("value", [0.0, 0.1, 6.016e-6, 1e150 / 1e3])
def test_equal_samples_have_no_spread_at_all(value):
    statistics = summarize([value] * 10)
    assert (statistics.mean, statistics.std, statistics.mad) == (value, 0, 0)
    assert statistics.ci95 == (value, value)
    assert statistics.autocorrelation is None
    assert statistics.drift == (0 if value else None)


def test_zeros_at_the_start_leave_the_drift_unknown():
    assert drift([0.0, 0.0, 1.0]) is None
    assert drift([1e-320, 1.0, 1e100]) is None  # the ratio is no finite number


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_summarized_can_be_written_as_json(seed):
    rng = np.random.default_rng(seed)
    samples = rng.choice([0.0, 5e-324, 1e-200, 1e-6, 1.0, -1e140], size=seed + 1)
    values = summarize(samples).to_dict("s")
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["min_s"] <= values["median_s"] <= values["max_s"]


def test_keys_carry_the_unit_and_are_the_same_for_any_series():
    keys = list(summarize([1.0]).to_dict("s"))
    with_unit = [
        *("mean_s", "std_s", "min_s", "max_s", "median_s", "q1_s", "q3_s", "mad_s"),
        *("p95_s", "p99_s", "ci95_low_s", "ci95_high_s"),
    ]
    assert sorted(keys) == sorted(["n", "autocorrelation", "drift", *with_unit])
    assert list(summarize(range(100)).to_dict("s")) == keys
    assert "mean" in summarize([1.0]).to_dict()


def test_interval_of_the_median_is_two_order_statistics():
    # P(B <= 39) = 0.0176 and P(B <= 40) = 0.0284 for 100 tosses of a coin.
    assert median_interval(range(1, 101)) == (40, 61)
    assert summarize(range(1, 101)).ci95 == (40, 61)
    assert median_interval([5, 3, 6, 1, 2, 4]) == (1, 6)
    assert median_interval(range(1, 21), confidence=0.99) == (4, 17)


@pytest.mark.parametrize(("confidence", "smallest_n"), [(0.5, 2), (0.9, 5), (0.95, 6), (0.99, 8)])
def test_interval_needs_enough_samples(confidence, smallest_n):
    assert median_interval(range(smallest_n - 1), confidence) is None
    assert median_interval(range(smallest_n), confidence) == (0, smallest_n - 1)


@pytest.mark.parametrize("n", [6, 7, 20, 100, 999, 1000])
@pytest.mark.parametrize("allowed", [0.5, 0.05, 2**-4])
def test_interval_is_the_narrowest_with_its_confidence(n, allowed):
    low, high = median_interval(range(n), 1 - allowed)

    def miss(k):
        return 2 * sum(math.comb(n, i) for i in range(k)) / 2**n

    k = int(low) + 1
    assert high == n - k
    assert miss(k) <= allowed < miss(k + 1)


def test_interval_goes_on_smoothly_where_the_normal_distribution_takes_over():
    widths = [np.ptp(median_interval(range(n))) for n in range(990, 1012)]
    assert set(np.abs(np.diff(widths))) <= {1.0, 3.0}  # a rank at either end at most
    assert median_interval(range(10_000)) == (4901, 5098)


def test_interval_holds_the_median_as_often_as_it_says():
    rng = np.random.default_rng(3)
    intervals = [median_interval(rng.lognormal(size=30)) for _ in range(2000)]
    held = np.mean([low <= 1 <= high for low, high in intervals])
    assert 0.94 <= held <= 0.98  # 30 samples give 95.7 %


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 95, math.nan, "0.95", None])
def test_confidence_must_be_a_probability(confidence):
    with pytest.raises(ArgumentError, match="confidence must be between 0 and 1"):
        median_interval(range(10), confidence)


def test_confidence_next_to_one():
    assert median_interval(range(50), 1 - 2**-53) is None
    assert median_interval(range(54), 1 - 2**-53) == (0, 53)
    assert median_interval(range(2000), 1 - 2**-53) == (814, 1185)


def test_autocorrelation_tells_order():
    rng = np.random.default_rng(0)
    assert autocorrelation([1, 2] * 50) == pytest.approx(-0.99)
    assert autocorrelation(np.repeat([1, 2], 50)) == pytest.approx(0.97)
    assert abs(autocorrelation(rng.normal(size=10_000))) < 0.05
    assert autocorrelation([1.0, 2.0]) is None


def test_drift_compares_the_last_third_with_the_first():
    assert drift([1, 1, 5, 5, 2, 2]) == 1.0
    assert drift([4, 4, 0, 0, 9, 3, 3]) == -0.25
    assert drift([1.0, 2.0]) is None


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "one-dimensional and not empty"),
        (3.0, "one-dimensional and not empty"),
        ([[1.0, 2.0]], "one-dimensional and not empty"),
        ([1.0, math.nan], "finite"),
        ([math.inf], "finite"),
        ([1e200], "finite"),
        (["1", "2"], "real numbers"),
        ("12", "real numbers"),
        (None, "real numbers"),
        ([1j], "real numbers"),
        ([True, False], "real numbers"),
        ([[1.0], [1.0, 2.0]], "array of numbers"),
    ],
)
@pytest.mark.parametrize("function", [summarize, median_interval, autocorrelation, drift])
def test_samples_that_make_no_series_are_refused(function, samples, message):
    with pytest.raises(ArgumentError, match=f"samples must.*{message}"):
        function(samples)


def test_finite_array_names_its_argument():
    with pytest.raises(ArgumentError, match="gpu_times must hold real numbers"):
        finite_array(["x"], "gpu_times")
    assert finite_array([[1, 2]], "gpu_times").dtype == np.float64


def test_samples_are_left_as_they_are():
    samples = np.array([3.0, 1.0, 2.0, 9.0, 8.0, 7.0])
    samples.setflags(write=False)
    summarize(samples)
    assert samples.tolist() == [3.0, 1.0, 2.0, 9.0, 8.0, 7.0]


def test_a_million_samples_take_less_than_a_second():
    samples = np.random.default_rng(0).lognormal(size=10**6)
    start = time.perf_counter()
    statistics = summarize(samples)
    assert time.perf_counter() - start < 1
    assert statistics.median == pytest.approx(1, abs=0.01)
