"""`sweep` from end to end, on a simulated GPU: order, failures, regions, and what is kept."""

import functools
import json
import math
import os
import signal
import threading
import time

import numpy as np
import pytest

import gpubench
from gpubench import ArgumentError, UnsupportedError, annotate, collect, product, sweep
from gpubench.devices.nvml import DeviceState
from gpubench.sweeps import engine, execution


@pytest.fixture
def gpu():
    with gpubench.simulated_gpu(jitter=0) as gpu:
        yield gpu


def by_place(result):
    """Measurements by the configuration's values and the region."""
    return {(*each.config.values(), each.region): each for each in result.measurements}


def codes(measurement):
    return [note.code for note in measurement.result.notes]


class TestRegions:
    def test_each_in_each_configuration(self, gpu):
        @sweep([(10e-6,), (20e-6,)], n_repeat=6)
        def both(duration):
            with annotate("one"):
                gpu.launch(duration)
            with annotate("two"):
                gpu.launch(2 * duration)

        seen = by_place(both())
        assert list(seen) == [(10e-6, "one"), (10e-6, "two"), (20e-6, "one"), (20e-6, "two")]
        for (duration, region), each in seen.items():
            expected = duration * (1 if region == "one" else 2)
            assert each.result.gpu[0].median == pytest.approx(expected + 2.15e-6, abs=0.1e-6)
            assert each.result.gpu_times.shape == (1, 6)
            assert each.result.name == region

    def test_different_numbers_of_kernels_in_one_region(self, gpu):
        @sweep([1, 5], n_repeat=5)
        def f(n):
            with annotate("a"):
                for _ in range(n):
                    gpu.launch(10e-6)
            with annotate("b"):
                gpu.launch(30e-6)

        seen = by_place(f())
        assert seen[5, "a"].result.gpu[0].median == pytest.approx(50e-6, rel=0.15)
        for n in (1, 5):
            assert seen[n, "b"].result.gpu[0].median == pytest.approx(32.15e-6, abs=0.1e-6)

    def test_a_region_of_some_configurations(self, gpu):
        @sweep([0, 1], n_repeat=4)
        def f(x):
            with annotate("always"):
                gpu.launch(10e-6)
            if x:
                with annotate("sometimes"):
                    gpu.launch(10e-6)

        assert list(by_place(f())) == [(0, "always"), (1, "always"), (1, "sometimes")]

    def test_a_region_of_some_runs_has_fewer_samples(self, gpu):
        n_runs = 0

        @sweep([0], n_repeat=10)
        def f(x):
            nonlocal n_runs
            n_runs += 1
            with annotate("always"):
                gpu.launch(10e-6)
            if n_runs % 2:
                with annotate("odd"):
                    gpu.launch(10e-6)

        seen = by_place(f())
        assert seen[0, "always"].result.cpu.n == 10
        assert seen[0, "odd"].result.cpu.n == 5
        assert seen[0, "odd"].throttled.shape == (5,)

    def test_records_tell_the_kernels_of_each(self, gpu):
        @sweep([0], n_repeat=4, method="cupti")
        def f(x):
            with annotate("a"):
                gpu.launch(10e-6, "ka")
            with annotate("b"):
                gpu.launch(20e-6, "kb")

        seen = by_place(f())
        assert [kernel.name for kernel in seen[0, "a"].result.kernels] == ["ka"]
        assert seen[0, "b"].result.gpu[0].median == pytest.approx(20e-6, abs=2e-9)
        assert seen[0, "b"].result.method == "cupti"

    def test_entries_are_counted(self, gpu):
        @sweep([3], n_repeat=4)
        def f(n):
            for _ in range(n):
                with annotate("a"):
                    gpu.launch(10e-6)

        (each,) = f().measurements
        assert each.entries == 3


class TestWholeFunctions:
    def test_without_regions_it_is_one(self, gpu):
        @sweep([10e-6], n_repeat=20)
        def kernel(duration):
            gpu.launch(duration)

        (each,) = kernel().measurements
        assert each.region == "kernel"
        assert each.result.method == "gated"
        assert each.result.gpu[0].median == pytest.approx(12.15e-6, abs=0.1e-6)
        assert each.result.cpu.n == 20
        assert each.result.first_call_time > 0

    @pytest.mark.parametrize("method", ["events", "graph", "host", "cupti"])
    def test_every_method(self, gpu, method):
        (each,) = sweep.run(gpu.launch, [(10e-6,)], n_repeat=5, method=method).measurements
        assert each.result.method == method

    def test_on_the_host(self, no_cupy):
        (each,) = sweep.run(lambda x: time.sleep(x), [1e-3], n_repeat=3).measurements
        assert each.result.method == "host"
        assert each.result.cpu.median > 1e-3
        assert "no-gpu" in codes(each)

    def test_a_gpu_that_is_not_there(self, no_cupy):
        with pytest.raises(UnsupportedError, match="needs a GPU"):
            sweep.run(lambda x: None, [1], method="gated")

    def test_a_flushed_cache(self, gpu):
        (each,) = sweep.run(gpu.launch, [(10e-6,)], n_repeat=3, cache="cold").measurements
        assert each.result.cache == "cold"

    @pytest.mark.parametrize(
        "func", [functools.partial(max, 1), type("Adder", (), {"__call__": lambda self, n: n})()]
    )
    def test_callables_without_a_name(self, no_cupy, func):
        result = sweep.run(func, [2], n_repeat=2)
        assert result.name in ("max", "Adder")


class TestConfigurations:
    def test_given_at_the_call(self, gpu):
        @sweep(n_repeat=2)
        def f(n):
            pass

        assert [each.config for each in f([1, 2]).measurements] == [{"n": 1}, {"n": 2}]
        assert [each.config for each in f(configs=[3]).measurements] == [{"n": 3}]

    def test_given_nowhere(self):
        with pytest.raises(ArgumentError, match="neither to sweep"):
            sweep()(lambda n: None)()

    def test_products_and_what_is_fixed(self, no_cupy):
        @sweep(product(n=[1, 2], kind=["a"]), n_repeat=2)
        def f(n, kind, scale=1):
            pass

        result = f(scale=5)
        assert result.parameters == ("n", "kind", "scale")
        assert result.measurements[1].config == {"n": 2, "kind": "a", "scale": 5}

    def test_the_function_without_brackets(self):
        with pytest.raises(ArgumentError, match=r"write @sweep\(\)"):

            @sweep
            def f(n):
                pass

    def test_what_can_not_be_derived_is_refused_before_anything_runs(self):
        calls = []
        for options in ({"normalize_against": 3}, {"derive": {"x": 5}}, {"peaks": 4}):
            with pytest.raises(ArgumentError, match=next(iter(options))):
                sweep.run(calls.append, [1], **options)
        assert calls == []

    def test_names_and_documentation_stay(self):
        @sweep([1])
        def f(n):
            """Do it."""

        assert (f.__name__, f.__doc__) == ("f", "Do it.")

    def test_methods(self, no_cupy):
        class Model:
            scale = 3

            @sweep([1, 2], n_repeat=2)
            def step(self, n):
                return self.scale * n

        result = Model().step()
        assert [each.config for each in result.measurements] == [{"n": 1}, {"n": 2}]
        assert result.name == "step"

    def test_a_misspelt_argument(self):
        def f(n):
            pass

        with pytest.raises(ArgumentError, match="f can't be called with"):
            sweep([1])(f)(bad=3)

    def test_coroutine_functions_are_refused(self):
        async def f(n):
            pass

        with pytest.raises(ArgumentError, match="func"):
            sweep([1])(f)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_repeat": 0}, "n_repeat"),
            ({"n_warmup": -1}, "n_warmup"),
            ({"max_duration": math.nan}, "max_duration"),
            ({"order": "sideways"}, "order"),
            ({"thermal": "hot"}, "thermal"),
            ({"discard_throttled": 1}, "discard_throttled"),
            ({"collect": "nonsense"}, "nonsense"),
            ({"name": 3}, "name"),
            ({"method": "bogus"}, "method"),
            ({"cache": "lukewarm"}, "cache"),
            ({"checkpoint": 3}, "checkpoint"),
            ({"counters": "memory", "ncu": 3}, "ncu"),
        ],
    )
    def test_options_are_checked_at_once(self, options, message):
        with pytest.raises(ArgumentError, match=message):
            sweep([1], **options)


class TestGoals:
    def test_an_adaptive_sweep_ends_when_the_median_is_known(self, gpu):
        (each,) = sweep.run(gpu.launch, [(10e-6,)]).measurements
        assert each.result.stopped_by == "converged"
        assert each.result.cpu.n == 10

    def test_time_that_is_over(self, no_cupy):
        begin = time.perf_counter()
        result = sweep.run(time.sleep, [0.02, 0.03], n_repeat=100, max_duration=0.1, n_warmup=1)
        assert time.perf_counter() - begin < 2
        for each in result.measurements:
            assert each.result.stopped_by == "max_duration"
            assert 1 <= each.result.cpu.n < 10

    def test_the_time_counts_the_warm_up(self, no_cupy):
        begin = time.perf_counter()
        options = {"n_repeat": 100, "n_warmup": 20, "max_duration": 0.2}
        sweep.run(lambda n: time.sleep(0.05), [1], **options)
        assert time.perf_counter() - begin < 0.6

    def test_a_run_goes_ahead_even_without_warm_up(self, gpu):
        calls = []

        @sweep([1], n_repeat=3, n_warmup=0, method="host")
        def f(n):
            calls.append(n)

        (each,) = f().measurements
        assert each.result.cpu.n == 3
        assert len(calls) == 3 + each.result.n_warmup


class TestOrder:
    def order(self, order, seed=0):
        calls = []

        @sweep(range(4), n_repeat=20, n_warmup=1, order=order, seed=seed, method="host")
        def f(n):
            calls.append(n)

        result = f()
        assert [each.config["n"] for each in result.measurements] == [0, 1, 2, 3]
        assert [each.result.cpu.n for each in result.measurements] == [20] * 4
        return calls

    def test_given(self, no_cupy):
        calls = self.order("given")
        assert calls == sorted(calls)

    def test_random_is_by_turns_and_by_seed(self, no_cupy):
        calls = self.order("random")
        taken = calls[-80:]
        assert all(set(taken[i : i + 8]) == {0, 1, 2, 3} for i in range(0, 80, 8))
        assert self.order("random", seed=0) == calls
        assert self.order("random", seed=1) != calls

    def test_drift_does_not_look_like_an_effect_of_size(self):
        with gpubench.simulated_gpu(jitter=0, drift=2.0) as gpu:
            options = {"n_repeat": 30, "n_warmup": 1}
            slow = {}
            for order in ("given", "random"):
                result = sweep.run(
                    lambda n: (gpu.launch(100e-6), time.sleep(1e-3)),
                    [1, 2, 3],
                    order=order,
                    **options,
                )
                medians = [each.result.gpu[0].median for each in result.measurements]
                slow[order] = medians[-1] / medians[0] - 1
        assert abs(slow["random"]) < slow["given"] / 3


class TestFailures:
    def test_a_configuration_that_fails_is_a_row(self, gpu):
        @sweep([1, 0, 2], n_repeat=3)
        def f(n):
            with annotate("a"):
                gpu.launch(1e-5 / n)

        result = f()
        one, failed, two = result.measurements
        assert (one.status, failed.status, two.status) == ("ok", "failed", "ok")
        assert failed.error == "ZeroDivisionError: float division by zero"
        assert failed.result is None
        assert "failed" in str(result)

    @pytest.mark.parametrize("order", ["given", "random"])
    def test_one_that_fails_half_way(self, gpu, order):
        n_runs = 0

        @sweep([1, 2], n_repeat=10, order=order, method="host")
        def f(n):
            nonlocal n_runs
            n_runs += n == 1
            if n == 1 and n_runs == 8:
                raise ValueError("now")

        failed, fine = f().measurements
        assert (failed.status, failed.error) == ("failed", "ValueError: now")
        assert fine.result.cpu.n == 10

    @pytest.mark.parametrize("order", ["given", "random"])
    def test_ctrl_c_is_passed_on_and_nothing_is_lost(self, gpu, order):
        n_runs = 0

        @sweep([1, 2, 3], n_repeat=20, order=order, method="host")
        def f(n):
            nonlocal n_runs
            n_runs += n == 2
            if n_runs == 15:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            f()
        statuses = [each.status for each in f.results.measurements]
        assert statuses == (["ok", "interrupted"] if order == "given" else ["interrupted"] * 3)
        second = by_place(f.results)[2, "f"]
        assert 0 < second.result.cpu.n < 20
        assert second.result.stopped_by == "interrupted"
        assert [note.code for note in f.results.notes] == ["sweep-interrupted"]

    def test_ctrl_c_brings_the_results_along(self, no_cupy):
        def f(n):
            if n == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as caught:
            sweep.run(f, [1, 2], n_repeat=3)
        assert [each.status for each in caught.value.results.measurements] == ["ok", "interrupted"]

    def test_a_signal(self, no_cupy):
        @sweep([0.01], n_repeat=1000)
        def f(seconds):
            time.sleep(seconds)

        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            f()
        timer.join()
        (each,) = f.results.measurements
        assert each.status == "interrupted"


class TestCheckpoints:
    def test_a_sweep_goes_on(self, gpu, tmp_path):
        path = tmp_path / "sweep.jsonl"
        calls = []
        stop = True

        @sweep([1, 2, 3], n_repeat=4, method="host", checkpoint=path)
        def f(n):
            calls.append(n)
            if stop and n == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            f()
        first = f.results.measurements[0]
        stop, calls[:] = False, []
        result = f()
        assert set(calls) == {2, 3}
        assert [each.config["n"] for each in result.measurements] == [1, 2, 3]
        assert result.measurements[0].result == first.result

    def test_other_code_is_refused(self, gpu, tmp_path):
        path = tmp_path / "sweep.jsonl"

        def f(n):
            gpu.launch(1e-6)

        def changed(n):
            gpu.launch(2e-6)

        changed.__name__ = "f"
        sweep.run(f, [1], n_repeat=2, checkpoint=path)
        with pytest.raises(ArgumentError, match="code is"):
            sweep.run(changed, [1], n_repeat=2, checkpoint=path)

    def test_another_sweep_is_refused(self, gpu, tmp_path):
        path = tmp_path / "sweep.jsonl"
        sweep.run(gpu.launch, [1e-6], n_repeat=2, checkpoint=path)
        with pytest.raises(ArgumentError, match="n_repeat is 2 there and 3 here"):
            sweep.run(gpu.launch, [1e-6], n_repeat=3, checkpoint=path)


class TestCollectors:
    def test_every_scope(self, gpu):
        @collect("once")
        def once():
            return 1.0

        @collect("config", unit="B")
        def size(n):
            return 8 * n

        @collect("run")
        def ran():
            before = len(log)
            yield
            return len(log) - before

        @collect("region")
        def entered():
            return "yes"

        log = []

        @sweep([1, 2], n_repeat=3, collect=[once, size, ran, entered])
        def f(n):
            log.append(n)
            with annotate("a"):
                gpu.launch(1e-5)

        first, second = f().measurements
        assert first.collected["once"].tolist() == [1.0]
        assert (first.collected["size"].tolist(), second.collected["size"].tolist()) == ([8], [16])
        assert first.collected["ran"].tolist() == [1, 1, 1]
        assert first.labels == {"entered": "yes"}
        frame = f.results.to_dataframe()
        assert "size_mean" in frame

    def test_a_region_s_collectors_are_not_timed(self, gpu):
        @collect("region")
        def slow():
            time.sleep(2e-3)
            yield
            time.sleep(2e-3)
            return 1.0

        @sweep([1], n_repeat=3, collect=[slow])
        def f(n):
            with annotate("a"):
                gpu.launch(1e-5)

        (each,) = f().measurements
        assert each.result.cpu.median < 1e-3
        assert each.result.gpu[0].median == pytest.approx(12.15e-6, abs=0.1e-6)

    def test_threads_do_not_mix_up_a_region_s_values(self, gpu):
        @collect("region")
        def slept():
            begin = time.perf_counter()
            yield
            return round(time.perf_counter() - begin, 2)

        region = annotate("a")

        def work(seconds):
            with region:
                time.sleep(seconds)

        @sweep([1], n_repeat=1, n_warmup=1, method="host", collect=[slept])
        def f(n):
            threads = [threading.Thread(target=work, args=(s,)) for s in (0.02, 0.06)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        (each,) = f().measurements
        assert sorted(each.collected["slept"]) == pytest.approx([0.02, 0.06], abs=0.012)

    def test_one_of_the_whole_function(self, gpu):
        @collect("region")
        def entered():
            return 2.0

        (each,) = sweep.run(gpu.launch, [1e-6], n_repeat=3, collect=entered).measurements
        assert each.collected["entered"].tolist() == [2.0] * 3


class TestHeat:
    def hot(self, monkeypatch, states):
        """Let the GPU be in these states, one after the other, then in the last."""
        seen = iter(states)
        last = [states[-1]]

        def read(pci_bus_id):
            last[0] = next(seen, last[0])
            return last[0]

        monkeypatch.setattr(engine, "read_state", read)

    def state(self, *reasons):
        return DeviceState(
            sm_clock=1e9, memory_clock=1e9, temperature=60.0, throttle_reasons=reasons
        )

    def test_throttled_samples_are_marked(self, gpu, monkeypatch):
        slow, fine = self.state("HwThermalSlowdown"), self.state()
        self.hot(monkeypatch, [fine, fine, fine, slow, fine, fine])
        (each,) = sweep.run(gpu.launch, [1e-6], n_repeat=3).measurements
        assert each.throttled.tolist() == [False, True, False]
        assert each.n_discarded == 0

    def test_or_taken_anew(self, gpu, monkeypatch):
        slow, fine = self.state("HwThermalSlowdown"), self.state()
        self.hot(monkeypatch, [fine, slow, fine, slow, fine])
        options = {"n_repeat": 3, "discard_throttled": True}
        (each,) = sweep.run(gpu.launch, [1e-6], **options).measurements
        assert each.throttled.tolist() == [False] * 3
        assert each.n_discarded == 2
        assert each.result.cpu.n == 3

    def test_but_not_for_ever(self, gpu, monkeypatch):
        self.hot(monkeypatch, [self.state("HwThermalSlowdown")])
        options = {"n_repeat": 3, "discard_throttled": True}
        (each,) = sweep.run(gpu.launch, [1e-6], **options).measurements
        assert each.result.cpu.n == 3
        assert each.throttled.all()
        assert 10 <= each.n_discarded <= 13

    def test_waiting_is_noted(self, gpu, monkeypatch):
        slow, fine = self.state("HwThermalSlowdown"), self.state()
        self.hot(monkeypatch, [slow, slow, fine])
        policy = gpubench.ThermalPolicy("wait", timeout=1, poll=0.01)
        result = sweep.run(gpu.launch, [1e-6], n_repeat=3, thermal=policy)
        assert [note.code for note in result.notes] == ["thermal-wait"]
        assert not result.measurements[0].throttled.any()

    def test_an_unknown_state_is_noted(self, gpu):
        result = sweep.run(gpu.launch, [1e-6], n_repeat=3, thermal="wait")
        assert "can't be told: its state is unknown" in str(result.notes[0])


class TestResults:
    def test_derived_metrics_and_exports(self, gpu, tmp_path):
        @sweep(
            [(1,), (2,)],
            n_repeat=5,
            derive={"rate": lambda t, n: (n / t, "1/s")},
            normalize_against={"n": 1},
        )
        def f(n):
            gpu.launch(n * 1e-5)

        result = f()
        text = str(result)
        assert "rate" in text
        values = json.loads(result.to_json(), parse_constant=pytest.fail)
        assert values["name"] == "f"
        result.to_csv(tmp_path / "f.csv", samples=True)
        assert len((tmp_path / "f.csv").read_text().splitlines()) > 10

    def test_the_environment_and_peaks(self, gpu):
        result = sweep.run(gpu.launch, [1e-6], n_repeat=2, flops=1e6)
        assert result.environment["devices"]
        assert result.peaks.source == "a simulated device has none"

    def test_a_sweep_in_a_sweep(self, gpu):
        @sweep([1e-5], n_repeat=2)
        def inner(duration):
            with annotate("inner"):
                gpu.launch(duration)

        @sweep([1], n_repeat=2, method="host")
        def outer(n):
            with annotate("outer"):
                inner()

        result = outer()
        assert [each.region for each in result.measurements] == ["outer"]
        assert [each.region for each in inner.results.measurements] == ["inner"]

    def test_throttled_flags_have_the_samples_shape(self, gpu):
        (each,) = sweep.run(gpu.launch, [1e-6], n_repeat=7).measurements
        assert each.throttled.shape == (7,)
        assert each.throttled.dtype == np.bool_


class TestCounters:
    def test_they_join_the_regions(self, gpu, monkeypatch):
        report = execution.CounterReport(
            {
                (0, "a"): {
                    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 90.0,
                    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
                }
            }
        )
        asked = []

        def collect_counters(func, configs, metrics, **options):
            asked.append((configs, metrics))
            return report

        monkeypatch.setattr(execution, "collect_counters", collect_counters)

        @sweep([1], n_repeat=2, counters="compute")
        def f(n):
            with annotate("a"):
                gpu.launch(1e-5)
            with annotate("b"):
                gpu.launch(1e-5)

        a, b = f().measurements
        assert a.counters == report.values[0, "a"]
        assert a.labels["limited_by"] == "compute"
        assert b.counters == {}
        assert asked[0][0] == [{"n": 1}]

    def test_those_of_a_whole_function(self, gpu, monkeypatch):
        report = execution.CounterReport({(0, None): {"x__y.sum": 1.0}})
        monkeypatch.setattr(execution, "collect_counters", lambda *args, **options: report)
        (each,) = sweep.run(gpu.launch, [1e-6], n_repeat=2, counters=["x__y.sum"]).measurements
        assert each.counters == {"x__y.sum": 1.0}

    def test_without_ncu_the_times_stand(self, gpu):
        result = sweep.run(gpu.launch, [1e-6], n_repeat=2, counters="memory", ncu="/nowhere/ncu")
        assert result.measurements[0].result.cpu.n == 2
        assert [note.code for note in result.notes] == ["no-counters"]
