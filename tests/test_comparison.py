"""Functions compared by turns: what is measured, and what is said of it."""

import collections
import json
import sys
import time
from types import ModuleType

import numpy as np
import pytest
from example_results import make_result

import gpubench
from gpubench import ArgumentError, benchmark, compare
from gpubench.comparison.judgement import judge, resample_apart, resample_pairs

NOISE = {"jitter": 0.01, "correlation": 0.8, "drift": 0.05}
LONG = 50e-6


def verdicts(n, difference, max_duration):
    """Verdicts of `n` comparisons on a noisy GPU, of two kernels that differ so much."""
    found = collections.Counter()
    with gpubench.simulated_gpu(**NOISE) as gpu:
        arms = {"a": lambda: gpu.launch(LONG), "b": lambda: gpu.launch(LONG * (1 + difference))}
        for seed in range(n):
            comparison = compare(
                arms, seed=seed, max_duration=max_duration, n_warmup=1, check=False
            )
            found[comparison.verdict["b"]] += 1
    return found


def test_a_function_and_itself_are_seldom_called_different():
    found = verdicts(200, 0.0, max_duration=0.12)
    assert found.total() == 200
    assert found["faster"] + found["slower"] <= 0.05 * 200


def test_a_true_difference_of_three_percent_is_found():
    found = verdicts(40, 0.03, max_duration=0.4)  # a busy host gets through fewer blocks in it
    assert found["slower"] >= 0.9 * 40
    assert found["faster"] == 0


class TestRun:
    def test_blocks_are_interleaved_and_recorded(self, gpu):
        arms = {name: (lambda: gpu.launch(10e-6)) for name in "abc"}
        comparison = compare(arms, n_blocks=6, seed=3)
        rounds = np.array(comparison.order).reshape(6, 3)
        assert all(sorted(each) == ["a", "b", "c"] for each in rounds)
        assert len({tuple(each) for each in rounds}) > 1
        for arm in comparison.arms:
            assert arm.block_ids.shape == arm.result.cpu_times.shape
            assert list(np.unique(arm.block_ids)) == list(range(6))
            assert np.all(np.diff(arm.block_ids) >= 0)

    def test_the_seed_decides_the_order(self, gpu):
        arms = [lambda: gpu.launch(10e-6), lambda: gpu.launch(10e-6)]
        orders = [compare(arms, n_blocks=8, seed=seed).order for seed in (1, 1, 2)]
        assert orders[0] == orders[1] != orders[2]

    def test_each_arm_is_warmed_up_by_itself(self, gpu):
        calls = []
        compare([lambda: calls.append("a"), lambda: calls.append("b")], n_blocks=2, n_warmup=10)
        assert set(calls[: calls.index("b")]) == {"a"}
        assert calls.index("b") >= 10

    def test_without_gpu_work_the_hosts_time_decides(self, gpu):
        arms = {"short": lambda: time.sleep(1e-4), "long": lambda: time.sleep(4e-4)}
        comparison = compare(arms, n_blocks=8)
        assert comparison["long"].gpu is None
        assert comparison.verdict["long"] == "slower"
        assert "(CPU time)" in str(comparison)

    def test_time_that_is_over_is_noted(self, no_cupy):
        begin = time.perf_counter()
        comparison = compare(
            {"a": lambda: time.sleep(0.01), "b": lambda: time.sleep(0.02)}, max_duration=0.5
        )
        assert time.perf_counter() - begin < 2
        assert [note.code for note in comparison.notes] == ["fewer-blocks"]
        assert 2 <= len(comparison.order) / 2 < 20

    def test_an_interrupt_keeps_the_rounds_that_are_complete(self, gpu):
        begin = time.perf_counter()

        def until_then():
            if time.perf_counter() - begin > 2:
                raise KeyboardInterrupt

        comparison = compare([until_then, lambda: None], n_blocks=10**6, check=False)
        assert "interrupted" in [note.code for note in comparison.notes]
        assert time.perf_counter() - begin < 5
        assert comparison.results["until_then"].cpu.n >= 100

    def test_an_exception_reaches_the_caller(self, gpu):
        def fail():
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            compare([lambda: None, fail])
        gpu.launch(1e-6)
        gpu.synchronize()

    def test_arms_timed_by_different_methods_are_noted(self, gpu):
        comparison = compare(
            {"waits": lambda: (gpu.launch(1e-5), gpu.synchronize()), "not": lambda: None},
            n_blocks=2,
        )
        (note,) = (note for note in comparison.notes if note.code == "methods-differ")
        assert "waits events, not gated" in note.message
        assert comparison["not"].gpu is None


class TestVerdict:
    def test_cpu_and_gpu_time_are_judged_apart(self, gpu):
        def short_launch():
            gpu.launch(30e-6)

        def long_launch():
            time.sleep(1e-3)
            gpu.launch(15e-6)

        comparison = compare([short_launch, long_launch])
        arm = comparison["long_launch"]
        assert arm.gpu.verdict == "faster"
        assert arm.cpu.verdict == "slower"
        assert arm.verdict == "faster"

    def test_ratio_and_interval(self, gpu):
        comparison = compare({"one": lambda: gpu.launch(100e-6), "two": lambda: gpu.launch(200e-6)})
        assert comparison.verdict == {"two": "slower"}
        assert comparison.ratio["two"] == pytest.approx(202.15 / 102.15, rel=0.02)
        low, high = comparison.interval["two"]
        assert low <= comparison.ratio["two"] <= high
        assert comparison["two"].gpu.n_blocks == 20
        assert "two ran 1.98" in str(comparison) or "two ran 1.97" in str(comparison)
        assert " times slower than one (GPU time)" in str(comparison)

    def test_baseline_is_chosen_by_name(self, gpu):
        arms = {"one": lambda: gpu.launch(100e-6), "two": lambda: gpu.launch(200e-6)}
        comparison = compare(arms, baseline="two")
        assert comparison.baseline == "two"
        assert comparison.verdict == {"one": "faster"}
        assert [arm.name for arm in comparison.arms] == ["one", "two"]

    def test_without_a_gpu_the_cpu_decides(self, no_cupy):
        comparison = compare(
            {"a": lambda: sum(range(2000)), "b": lambda: sum(range(6000))},
            n_blocks=10,
            check=False,
        )
        assert comparison["b"].gpu is None
        assert comparison.verdict == {"b": "slower"}
        assert "(CPU time)" in str(comparison)


class TestCheck:
    def test_other_values_are_a_mismatch_where_the_verdict_would_be(self, gpu):
        comparison = compare({"a": lambda: np.arange(3), "b": lambda: np.array([0, 1, 3])})
        assert comparison.verdict == {"b": "MISMATCH"}
        assert "b: MISMATCH with a: " in str(comparison)
        assert "MISMATCH" in comparison.table("github")

    def test_equal_values_are_judged(self, gpu):
        value = np.array([1.0, np.nan])
        comparison = compare({"a": lambda: value, "b": lambda: value * (1 + 1e-12)})
        assert comparison.verdict["b"] != "MISMATCH"

    def test_not_checked(self, gpu):
        arms = {"a": lambda: 1, "b": lambda: 2}
        assert compare(arms, check=False).verdict["b"] != "MISMATCH"
        assert compare(arms).verdict["b"] == "MISMATCH"

    def test_the_callers_own(self, gpu):
        seen = []

        def check(expected, actual):
            seen.append((expected, actual))
            return actual < 3

        comparison = compare({"a": lambda: 1, "b": lambda: 2, "c": lambda: 3}, check=check)
        assert seen == [(1, 2), (1, 3)]
        assert comparison["b"].mismatch == ""
        assert comparison.verdict["c"] == "MISMATCH"


class TestJudgement:
    rng = np.random.default_rng(5)

    def judged(self, ratio, spread=0.001, n=20, **options):
        baseline = self.rng.normal(1, 1e-4, n)
        arm = baseline * ratio * self.rng.normal(1, spread, n)
        (found,) = judge([resample_pairs(baseline, arm, np.random.default_rng(0))], 0.01, **options)
        return found

    @pytest.mark.parametrize(
        ("ratio", "verdict"),
        [(0.5, "faster"), (0.98, "faster"), (1.0, "same"), (1.005, "same"), (1.02, "slower")],
    )
    def test_zones(self, ratio, verdict):
        found = self.judged(ratio)
        assert found.verdict == verdict
        assert found.ratio == pytest.approx(ratio, rel=2e-3)
        assert found.more_blocks is None

    def test_unclear_says_how_many_more(self):
        few = self.judged(1.02, spread=0.03)
        assert few.verdict == "unclear"
        assert few.more_blocks > 10
        more = self.judged(1.02, spread=0.03, n=20 + 4 * few.more_blocks)
        assert more.verdict == "slower"

    def test_on_the_margin_nothing_settles_it(self):
        assert self.judged(1.01, spread=1e-9).more_blocks is None

    def test_several_arms_need_stronger_evidence(self):
        baseline = np.ones(12)
        spread = np.exp(np.linspace(-0.05, 0.05, 12))
        arms = [baseline * spread * ratio for ratio in (0.5, 1.0425, 1.0425, 1.0425, 1.0425)]
        resamples = [resample_pairs(baseline, arm, np.random.default_rng(0)) for arm in arms]
        alone = judge(resamples[1:2], 0.01)[0]
        together = judge(resamples, 0.01)
        assert alone.confidence == 0.95
        assert together[0].confidence == 0.99
        assert together[0].verdict == "faster"
        assert together[1].interval[0] < alone.interval[0]
        assert {each.verdict for each in together[1:]} == {"unclear"}
        assert alone.verdict == "slower"

    def test_drift_cancels_between_pairs_only(self):
        drift = np.linspace(1, 2, 40)
        noise = self.rng.normal(1, 0.001, 40)
        rng = np.random.default_rng(0)
        paired, apart = (
            judge([resample(drift, drift * noise * 1.05, rng)], 0.01)[0]
            for resample in (resample_pairs, resample_apart)
        )
        assert paired.verdict == "slower"
        assert apart.verdict == "unclear"

    def test_too_little_to_judge(self):
        rng = np.random.default_rng(0)
        one, zeros = np.ones(1), np.zeros(5)
        assert resample_pairs(one, one, rng) is None
        assert resample_pairs(zeros, zeros, rng) is None
        assert resample_apart(one, np.ones(5), rng) is None
        assert judge([None], 0.01) == [None]


class TestSavedResults:
    def test_two_results(self, gpu):
        a = benchmark(gpu.launch, (100e-6,), n_repeat=50, name="a")
        b = benchmark(gpu.launch, (50e-6,), n_repeat=50, name="b")
        comparison = compare(a, b)
        assert comparison.verdict == {"b": "faster"}
        assert comparison.order == ()
        assert [note.code for note in comparison.notes] == ["not-interleaved"]
        assert comparison["b"].result == b

    def test_of_the_same_name(self):
        comparison = compare(make_result(), make_result())
        assert comparison.baseline == "f"
        assert list(comparison.verdict) == ["f#2"]

    def test_single_samples_are_unclear_and_json_stays_strict(self):
        one = make_result([1.0], [], name="one")
        comparison = compare(one, one)
        assert comparison.verdict == {"one#2": "unclear"}
        assert comparison.ratio == {"one#2": None}
        parsed = json.loads(comparison.to_json(), parse_constant=pytest.fail)
        assert parsed["arms"][1]["verdict"] == "unclear"
        assert "too few blocks or samples" in str(comparison)

    def test_equal_samples_are_the_same(self):
        same = make_result([1.0] * 9, [], name="x")
        assert compare(same, same).verdict == {"x#2": "same"}

    def test_a_result_and_something_else(self):
        with pytest.raises(ArgumentError, match="another result"):
            compare(make_result(), (1,))
        with pytest.raises(ArgumentError, match="baseline"):
            compare(make_result(), make_result(), baseline="f")


class TestArguments:
    @pytest.mark.parametrize(
        ("functions", "message"),
        [
            (lambda: None, "mapping of names to callables or a list"),
            ("ab", "mapping of names to callables or a list"),
            ([len], "two or more"),
            ({"a": len, "b": 3}, r"functions\['b'\] must be callable"),
            ({"a": len, 1: len}, "must be a string"),
        ],
    )
    def test_functions(self, functions, message):
        with pytest.raises(ArgumentError, match=message):
            compare(functions)

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("baseline", "c"),
            ("n_blocks", 1),
            ("n_blocks", 2.5),
            ("margin", 0),
            ("margin", float("nan")),
            ("max_duration", -1),
            ("check", "yes"),
            ("n_warmup", 0),
            ("seed", -1),
            ("method", "best"),
            ("cache", "hot"),
        ],
    )
    def test_options(self, option, value):
        with pytest.raises(ArgumentError, match=option):
            compare({"a": len, "b": len}, **{option: value})

    def test_names_of_a_list(self, gpu):
        comparison = compare([lambda: None, lambda: None], n_blocks=2)
        assert [arm.name for arm in comparison.arms] == ["<lambda>", "<lambda>#2"]


def test_json_holds_the_samples_and_their_blocks(gpu):
    comparison = compare({"a": lambda: gpu.launch(1e-5), "b": lambda: None}, n_blocks=3)
    parsed = json.loads(comparison.to_json(), parse_constant=pytest.fail)
    assert parsed["order"] == list(comparison.order)
    first = parsed["arms"][0]
    assert len(first["block_ids"]) == len(first["result"]["cpu_times_s"])


def test_html_escapes_names(gpu):
    comparison = compare({"<a>": lambda: None, "<b>": lambda: None}, n_blocks=2)
    page = comparison._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert repr(comparison).startswith("<Comparison with <a>: <b>: ")


class TestArms:
    def test_each_has_its_own_compilations(self, gpu, monkeypatch):
        compiler = ModuleType("cupy.cuda.compiler")
        compiler.compile_using_nvrtc = lambda source: None
        compiler._compile_module_with_cache = lambda source: compiler.compile_using_nvrtc(source)
        monkeypatch.setitem(sys.modules, compiler.__name__, compiler)

        def compiles_once(name):
            def func():
                if name:
                    compiler._compile_module_with_cache(f"__global__ void {name.pop()}()")

            return func

        comparison = compare(
            {"a": compiles_once(["kernel_a"]), "b": compiles_once(["kernel_b"])}, n_blocks=6
        )
        for name, result in comparison.results.items():
            (compilation,) = result.compilations
            assert compilation.names == (f"kernel_{name}",)
            assert "compiled-late" not in [note.code for note in result.notes]

    def test_compiler_is_put_back_when_an_arm_raises(self, gpu, monkeypatch):
        compiler = ModuleType("cupy.cuda.compiler")
        compiler.compile_using_nvrtc = original = lambda source: None
        compiler._compile_module_with_cache = lambda source: compiler.compile_using_nvrtc(source)
        monkeypatch.setitem(sys.modules, compiler.__name__, compiler)
        calls = []

        def fail():
            calls.append(1)
            if len(calls) > 5:
                raise KeyError("mine")

        with pytest.raises(KeyError) as kept:
            compare([fail, lambda: None])
        assert compiler.compile_using_nvrtc is original
        assert kept.value.args == ("mine",)

    def test_one_that_is_slow_keeps_to_the_time(self, no_cupy):
        begin = time.perf_counter()
        comparison = compare({"fast": lambda: 1, "slow": lambda: time.sleep(0.3)}, max_duration=1)
        assert time.perf_counter() - begin < 4
        assert comparison.verdict["slow"] in ("slower", "MISMATCH", "unclear")

    def test_few_blocks_are_unclear(self, gpu):
        comparison = compare(
            {"a": lambda: gpu.launch(1e-5), "b": lambda: gpu.launch(9e-5)}, n_blocks=5
        )
        assert comparison.verdict == {"b": "unclear"}


def test_resampled_medians_are_those_of_resamples():
    values = np.random.default_rng(1).lognormal(0, 0.1, 21)
    for n in (20, 21):
        x = values[:n]
        ones = np.ones(n)
        drawn = resample_pairs(ones, x, np.random.default_rng(2)).values
        rng = np.random.default_rng(3)
        resampled = np.sort(np.median(np.log(rng.choice(x, (20_000, n))), axis=1))
        for q in (0.025, 0.25, 0.5, 0.75, 0.975):
            share = np.searchsorted(drawn, np.quantile(resampled, q), side="right") / drawn.size
            below = np.searchsorted(resampled, np.quantile(resampled, q), side="right") / 20_000
            assert share == pytest.approx(below, abs=0.02)
