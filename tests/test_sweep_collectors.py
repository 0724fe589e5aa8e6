"""Collectors: how they are declared and called, and what becomes of their values."""

import fractions
import functools
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from fake_nvml import FakeNvml

import gpubench
from gpubench.sweeps.collection import Collectors, CollectorWarning
from gpubench.sweeps.collectors import READY, Collector, chosen_collectors, collect


def constant(value, scope="run", name="x"):
    return collect(scope, name=name)(lambda: value)


def raising(error, scope="run", name="x"):
    def fail():
        raise error

    return collect(scope, name=name)(fail)


def run_a_region_and_fail(collection):
    with collection.region("f"):
        pass
    raise KeyError


def columns(*collectors, n_runs=2, region="f", config=(), device=0):
    """What the collectors give in one configuration with so many runs of one region."""
    collection = Collectors(collectors, dict(config), device).of(dict(config))
    with collection.config():
        for _ in range(n_runs):
            with collection.run(), collection.region(region):
                pass
    return collection.columns(region)


class TestDeclaring:
    def test_a_function_becomes_a_value_that_can_still_be_called(self):
        @collect("config", unit="W")
        def load(n=2):
            return n

        assert load == Collector(load.function, "config", "load", "W")
        assert (load(), load(n=3)) == (2, 3)
        with pytest.raises(AttributeError):
            load.name = "other"

    def test_any_callable_has_a_name(self):
        assert collect("run")(functools.partial(max, 1)).name == "max"
        assert collect("run", name="load")(lambda: 1).name == "load"

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: collect("always"), "scope must be one of 'once', 'config', 'run', 'region'"),
            (lambda: collect(time.time), r"needs a scope: decorate time with @collect\('run'\)"),
            (lambda: constant(1, name=""), "name must be the name of a column, got ''"),
            (lambda: constant(1, name=3), "name must be a string, got 3"),
            (lambda: collect("run", unit=1)(max), "unit must be a string, got 1"),
            (lambda: collect("run", name="x")(3), "the collector must be callable, got 3"),
        ],
    )
    def test_what_can_not_be_one(self, make, message):
        with pytest.raises(gpubench.ArgumentError, match=message):
            make()

    def test_one_that_would_not_run_is_refused(self):
        async def late():
            return 1

        with pytest.raises(gpubench.ArgumentError, match="coroutine function"):
            collect("run")(late)

    def test_what_happens_once_has_no_end(self):
        def span():
            yield
            return 1

        with pytest.raises(gpubench.ArgumentError, match=r"'span' is a generator.*got 'once'"):
            collect("once")(span)


class TestChoosing:
    def test_names_and_own_ones(self):
        own = constant(1)
        assert chosen_collectors(["power", own]) == (READY["power"], own)
        assert chosen_collectors("power") == (READY["power"],)
        assert chosen_collectors(own) == (own,)
        assert chosen_collectors(c for c in [own]) == (own,)
        assert chosen_collectors([]) == ()

    @pytest.mark.parametrize(
        ("chosen", "message"),
        [
            (["watts"], "names of these: driver, sm_clock, .*memory_used; got 'watts'"),
            ([max], r"to make max one, decorate it with @collect\('run'\)"),
            (max, "to make max one"),
            ([None], "got None"),
            (3, "got 3"),
            (["power", "power"], "got two of 'power'"),
            (["power", constant(1, name="power")], "got two of 'power'"),
        ],
    )
    def test_what_is_none(self, chosen, message):
        with pytest.raises(gpubench.ArgumentError, match=message):
            chosen_collectors(chosen)


class TestArguments:
    def test_the_configuration_by_the_names_that_it_wants(self):
        @collect("run")
        def twice(n, /, *, absent=5):
            return 2 * n + absent

        @collect("config")
        def everything(dtype, **config):
            return f"{dtype} {sorted(config)}"

        numbers, labels = columns(twice, everything, config={"n": 3, "dtype": "fp32"})
        np.testing.assert_array_equal(numbers["twice"], [11, 11])
        assert labels == {"everything": "fp32 ['n']"}

    def test_the_device_is_the_one_under_test_whatever_the_function_calls_so(self):
        @collect("run")
        def where(device):
            return device

        @collect("run")
        def theirs(**config):
            return config["device"]

        collection = Collectors([where, theirs], ["device"], device=3).of({"device": "cuda:0"})
        with collection.run():
            pass
        numbers, labels = collection.columns("f")
        assert (numbers["where"].tolist(), labels["theirs"]) == ([3.0], "cuda:0")

    def test_one_written_in_c_is_called_without_any(self):
        numbers, _ = columns(collect("run", name="clock")(time.time), config={"n": 1})
        assert (numbers["clock"] > 1e9).all()

    @pytest.mark.parametrize(
        ("scope", "parameters", "message"),
        [
            ("run", ["m"], "'of_n' of the scope 'run' wants an argument 'n', and can have: .*, m"),
            ("once", ["n"], "'of_n' of the scope 'once' .* can have: device$"),
        ],
    )
    def test_what_can_not_be_given_is_known_at_the_begin(self, scope, parameters, message):
        def of_n(n):
            return n

        with pytest.raises(gpubench.ArgumentError, match=message):
            Collectors([collect(scope)(of_n)], parameters)

    def test_the_name_of_a_parameter_is_taken(self):
        with pytest.raises(gpubench.ArgumentError, match="'n' has the name of a parameter"):
            Collectors([constant(1, name="n")], ["n"])


class TestValues:
    @pytest.mark.parametrize(
        ("value", "number"),
        [
            (3, 3.0),
            (2.5, 2.5),
            (True, 1.0),
            (np.float32(0.5), 0.5),
            (np.array(7), 7.0),
            (fractions.Fraction(1, 4), 0.25),
            (float("inf"), float("inf")),
            (None, float("nan")),
        ],
    )
    def test_numbers(self, value, number):
        numbers, labels = columns(constant(value))
        np.testing.assert_array_equal(numbers["x"], [number, number])
        assert numbers["x"].dtype == np.float64
        assert labels == {}

    def test_text_is_a_label_the_last_one(self):
        texts = iter(["a", np.str_("b")])
        numbers, labels = columns(collect("run", name="x")(lambda: next(texts)))
        assert (numbers, labels) == ({}, {"x": "b"})

    def test_one_that_gives_both_has_both(self):
        values = iter([1, "low", 3])
        numbers, labels = columns(collect("run", name="x")(lambda: next(values)), n_runs=3)
        np.testing.assert_array_equal(numbers["x"], [1, np.nan, 3])
        assert labels == {"x": "low"}

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ([1], r"TypeError: it returned \[1\], which is neither a number nor text"),
            (np.ones(1), "neither a number nor text"),
            (b"1", "neither a number nor text"),
            (1j, "neither a number nor text"),
            (10**400, "OverflowError"),
            ((n for n in ()), "returned a generator"),
        ],
    )
    def test_anything_else_is_missing_with_a_warning(self, value, message):
        with pytest.warns(CollectorWarning, match=message):
            numbers, labels = columns(constant(value))
        np.testing.assert_array_equal(numbers["x"], [np.nan, np.nan])
        assert labels == {}


class TestMoments:
    def test_each_scope_has_as_many_values_as_moments(self):
        calls = []

        def counting(scope):
            def count():
                calls.append(scope)
                return len(calls)

            return collect(scope, name=scope)(count)

        collectors = Collectors([counting(s) for s in ("region", "run", "config", "once")])
        for _ in range(2):
            collection = collectors.of({})
            with collection.config():
                for _ in range(2):
                    with collection.run():
                        with collection.region("a"):
                            pass
                        with collection.region("b"), collection.region("a"):
                            pass
        per_config = [*(["region"] * 3 + ["run"]) * 2, "config"]
        assert calls == ["once", *per_config * 2]
        numbers, _ = collection.columns("a")
        assert numbers["once"].tolist() == [1]
        assert numbers["config"].tolist() == [19]
        assert numbers["run"].tolist() == [14, 18]
        assert numbers["region"].tolist() == [11, 12, 15, 16]
        numbers, _ = collection.columns("b")
        assert numbers["region"].tolist() == [13, 17]
        assert "region" not in collection.columns("never")[0]

    def test_interleaved_configurations_keep_theirs_apart(self):
        collectors = Collectors([collect("run", name="x")(lambda n: n)], ["n"])
        first, second = (collectors.of({"n": n}) for n in (1, 2))
        for collection in (first, second, second, first, second):
            with collection.run():
                pass
        assert first.columns("f")[0]["x"].tolist() == [1, 1]
        assert second.columns("f")[0]["x"].tolist() == [2, 2, 2]

    def test_a_generator_covers_the_moment(self):
        log = []

        @collect("run")
        def difference():
            log.append("begin")
            yield
            log.append("end")
            return len(log)

        @collect("run")
        def plain():
            log.append("plain")
            return 0

        collection = Collectors([difference, plain]).of({})
        with collection.run():
            log.append("run")
        assert log[:2] == ["begin", "run"]
        assert sorted(log[2:]) == ["end", "plain"]
        assert collection.columns("f")[0]["difference"].size == 1

    def test_of_a_run_that_raises_nothing_is_kept_and_generators_are_closed(self):
        closed = []

        @collect("run")
        def span():
            try:
                yield
            finally:
                closed.append(True)
            return 1

        collection = Collectors([span, constant(1, "region"), constant(2, name="y")]).of({})
        with pytest.raises(KeyError), collection.run():
            run_a_region_and_fail(collection)
        assert closed == [True]
        assert collection.columns("f") == ({}, {})
        with collection.run():
            pass
        assert collection.columns("f")[0]["span"].tolist() == [1]

    def test_runs_that_do_not_count_are_forgotten(self):
        numbers = iter(range(100))
        own = collect("run", name="x")(lambda: next(numbers))
        collection = Collectors([own, constant(1, "region", "y")]).of({})
        for _ in range(3):
            with collection.run(), collection.region("f"):
                pass
        collection.keep_runs(2)
        with collection.run(), collection.region("f"):
            pass
        assert collection.columns("f")[0]["x"].tolist() == [0, 1, 3]
        assert collection.columns("f")[0]["y"].size == 3
        collection.keep_runs(0)
        assert collection.columns("f") == ({}, {})

    def test_regions_outside_of_a_run_are_not_asked_about(self):
        collection = Collectors([raising(ValueError, "region")]).of({})
        with collection.region("f"):
            pass
        assert collection.columns("f") == ({}, {})

    def test_regions_of_other_threads(self):
        collection = Collectors([constant(1, "region")]).of({})

        def enter(_):
            with collection.region("f"):
                pass

        with collection.run(), ThreadPoolExecutor(4) as pool:
            list(pool.map(enter, range(200)))
        assert collection.columns("f")[0]["x"].size == 200

    def test_units(self):
        collectors = Collectors([*chosen_collectors(["power", "driver"]), constant(1)])
        assert collectors.units == {"power": "W", "driver": "", "x": ""}


class TestFailures:
    def test_one_that_raises_gives_missing_values_and_one_warning(self):
        with pytest.warns(CollectorWarning) as caught:
            numbers, _ = columns(raising(ZeroDivisionError("no")), constant(1, name="y"), n_runs=3)
        assert [str(each.message) for each in caught] == [
            "the collector 'x' gave no value: ZeroDivisionError: no; wherever it fails, its value "
            "is missing"
        ]
        np.testing.assert_array_equal(numbers["x"], [np.nan] * 3)
        np.testing.assert_array_equal(numbers["y"], [1] * 3)

    def test_each_has_its_own_warning(self):
        with pytest.warns(CollectorWarning) as caught:
            columns(raising(ValueError()), raising(ValueError(), "config", "y"))
        assert len(caught) == 2

    def test_one_that_fails_at_times_keeps_what_it_gave(self):
        values = iter([1, 0, 2])
        with pytest.warns(CollectorWarning, match="ZeroDivisionError"):
            numbers, _ = columns(collect("run", name="x")(lambda: 1 / next(values)), n_runs=3)
        np.testing.assert_array_equal(numbers["x"], [1, np.nan, 0.5])

    @pytest.mark.parametrize(
        ("before", "n_yields", "message"),
        [
            (ValueError("early"), 1, "ValueError: early"),
            (None, 0, "TypeError: a generator has to yield once"),
            (None, 2, "TypeError: a generator has to yield once"),
        ],
    )
    def test_generators_that_fail(self, before, n_yields, message):
        @collect("run")
        def span():
            if before:
                raise before
            for _ in range(n_yields):
                yield
            return 1

        with pytest.warns(CollectorWarning, match=message) as caught:
            numbers, _ = columns(span)
        np.testing.assert_array_equal(numbers["span"], [np.nan, np.nan])
        assert len(caught) == 1

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    @pytest.mark.parametrize("scope", ["once", "config", "run", "region"])
    def test_an_interruption_passes(self, scope, error):
        with pytest.raises(error):
            columns(raising(error(), scope))

    def test_a_run_interrupted_by_its_collector_is_not_kept(self):
        numbers = iter([1, KeyboardInterrupt()])

        def interrupt():
            value = next(numbers)
            if isinstance(value, BaseException):
                raise value
            return value

        collection = Collectors([constant(1, name="y"), collect("run", name="x")(interrupt)]).of({})
        with collection.run():
            pass
        with pytest.raises(KeyboardInterrupt), collection.run():
            pass
        assert collection.columns("f")[0]["y"].tolist() == [1]


class TestReady:
    @pytest.fixture
    def nvml(self, monkeypatch):
        """Two simulated GPUs, of which a fake NVML knows the second."""
        fake = FakeNvml()
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        with gpubench.simulated_gpu(n_devices=2) as gpu:
            for i, address in enumerate(["3:2:1", "1:2:3"]):
                known = {**vars(gpu.device(i).properties), "pci_bus_id": address}
                monkeypatch.setattr(gpu.device(i), "properties", SimpleNamespace(**known))
            yield fake

    def test_all_of_them(self, nvml):
        nvml.reasons = 0x44
        collection = Collectors(READY.values(), device=1).of({})
        with collection.run():
            nvml.energy_mj += 2_500
        numbers, labels = collection.columns("f")
        assert labels == {"driver": "570.1", "throttle_reasons": "HwThermalSlowdown, SwPowerCap"}
        assert {name: x.tolist() for name, x in numbers.items()} == {
            "sm_clock": [1.98e9],
            "memory_clock": [2.619e9],
            "temperature": [41.0],
            "power": [pytest.approx(71.16)],
            "energy": [pytest.approx(2.5)],
            "memory_used": [3 * 2**30],
        }

    def test_nothing_slows_it_down(self, nvml):
        assert columns(READY["throttle_reasons"], device=1)[1] == {"throttle_reasons": "none"}

    def test_the_device_under_test_is_the_one_that_is_asked(self, nvml):
        with pytest.warns(CollectorWarning, match="Not Found"):
            numbers, _ = columns(READY["temperature"], device=0)
        assert np.isnan(numbers["temperature"]).all()

    def test_names_and_units(self):
        assert {name: (each.name, each.unit) for name, each in READY.items()} == {
            "driver": ("driver", ""),
            "sm_clock": ("sm_clock", "Hz"),
            "memory_clock": ("memory_clock", "Hz"),
            "temperature": ("temperature", "°C"),
            "power": ("power", "W"),
            "energy": ("energy", "J"),
            "throttle_reasons": ("throttle_reasons", ""),
            "memory_used": ("memory_used", "bytes"),
        }

    def test_what_one_card_does_not_tell_is_missing_alone(self, nvml, monkeypatch):
        monkeypatch.setattr(nvml, "nvmlDeviceGetPowerUsage", nvml._fail)
        with pytest.warns(CollectorWarning) as caught:
            numbers, _ = columns(READY["power"], READY["temperature"], device=1)
        assert [str(each.message) for each in caught] == [
            "power and what needs the same can't be collected: nvmlDeviceGetPowerUsage failed: "
            "Not Found"
        ]
        assert np.isnan(numbers["power"]).all()
        assert numbers["temperature"].tolist() == [41, 41]

    @pytest.mark.parametrize(
        ("package", "message"),
        [
            (None, "driver and .*: nvidia-ml-py is not installed: pip install nvidia-ml-py"),
            (FakeNvml(), "the device is not on the PCI bus"),
        ],
    )
    def test_without_nvml_all_are_missing_with_one_warning(
        self, gpu, monkeypatch, package, message
    ):
        monkeypatch.setitem(sys.modules, "pynvml", package)
        with pytest.warns(CollectorWarning, match=message) as caught:
            numbers, labels = columns(*READY.values())
        assert len(caught) == 1
        assert numbers.keys() == READY.keys()
        assert all(np.isnan(values).all() for values in numbers.values())
        assert labels == {}

    def test_without_a_gpu_too(self, no_cupy):
        with pytest.warns(CollectorWarning, match="no GPU 0: CuPy is not installed") as caught:
            numbers, _ = columns(*READY.values())
        assert len(caught) == 1
        assert numbers.keys() == READY.keys()

    def test_nothing_is_asked_that_nobody_chose(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pynvml", None)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert columns(constant(1))[0]["x"].tolist() == [1, 1]
