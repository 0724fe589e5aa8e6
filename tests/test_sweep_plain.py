"""Configurations and measurements as strict JSON, and back again."""

import enum
import functools
import json
import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from example_results import make_result

import gpubench
from gpubench.plain import Described, canonical, from_plain, plain
from gpubench.sweeps.cells import cell
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.plain import measurement_from_dict, measurement_to_dict


class Color(enum.IntEnum):
    RED = 1


class Opaque:
    pass


class Hostile:
    def __repr__(self):
        raise RuntimeError


class Plainly:
    def __repr__(self):
        return "Plainly()"


def through_json(values):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(json.dumps(values, allow_nan=False), parse_constant=refuse)


class TestValues:
    @pytest.mark.parametrize(
        "value",
        [None, True, 0, -3, 2**70, 1.5, "", "é\n\ud800", (), (1, "a", (2.0,)), {"a": {"b": (1,)}}],
    )
    def test_plain_values_come_back(self, value):
        back = from_plain(through_json(plain(value)))
        assert back == value
        assert type(back) is type(value)

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (np.int64(512), 512),
            (np.bool_(True), True),
            (np.float32(0.5), 0.5),
            (np.str_("a"), "a"),
            ([1, [2]], (1, (2,))),
        ],
    )
    def test_numpy_scalars_become_pythons_and_lists_tuples(self, value, expected):
        back = from_plain(through_json(plain(value)))
        assert back == expected
        assert type(back) is type(expected)

    @pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, np.float64("nan")])
    def test_infinities_and_nan_come_back_though_json_has_none(self, value):
        back = from_plain(through_json(plain(value)))
        assert type(back) is float
        assert str(back) == str(float(value))

    @pytest.mark.parametrize(
        ("value", "type_name", "identity"),
        [
            (Color.RED, f"{__name__}.Color", "<Color.RED: 1>"),
            (np.float32, "builtins.type", "numpy.float32"),
            (plain, "builtins.function", "gpubench.plain.plain"),
            (Opaque(), f"{__name__}.Opaque", f"<{__name__}.Opaque object>"),
            (Hostile(), f"{__name__}.Hostile", "<Hostile>"),
            (Plainly(), f"{__name__}.Plainly", "Plainly()"),
            (1 + 2j, "builtins.complex", "(1+2j)"),
            (b"x", "builtins.bytes", "b'x'"),
            ({1: 2}, "builtins.dict", "{1: 2}"),
            (
                functools.partial(plain, 1),
                "functools.partial",
                "functools.partial(<function plain>, 1)",
            ),
            (
                SimpleNamespace(shape=[2, 3], dtype="float16"),
                "types.SimpleNamespace",
                "SimpleNamespace(shape=(2, 3), dtype=float16)",
            ),
        ],
    )
    def test_what_json_can_not_hold_is_described(self, value, type_name, identity):
        described = from_plain(through_json(plain(value)))
        assert (described.type, described.identity) == (type_name, identity)
        assert plain(described) == plain(value)
        assert hash(described) == hash(from_plain(plain(value)))

    @pytest.mark.parametrize("value", [np.float32, plain, np.ones((2, 3)), Color.RED, b"x"])
    def test_in_a_table_it_looks_as_before(self, value):
        assert cell(from_plain(plain(value))) == str(cell(value))

    def test_a_dict_that_looks_like_a_description_is_described_itself(self):
        value = {"type": "a", "identity": "b", "shown": "c"}
        described = from_plain(through_json(plain(value)))
        assert described == Described("builtins.dict", str(value), str(value))

    def test_arrays_are_told_apart_by_shape_dtype_and_content(self):
        arrays = [np.zeros(2000), np.zeros(2001), np.zeros(2000, "f4"), np.eye(1, 2000)[0]]
        arrays += [np.zeros((2000, 1)), np.array([None])]
        texts = [canonical({"a": array}) for array in arrays]
        assert len(set(texts)) == len(texts)
        assert texts[0] == canonical({"a": np.zeros(2000)})

    def test_canonical_ignores_the_order_of_names_only(self):
        assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1}) == '{"a": 1, "b": 2}'
        assert canonical({"a": 1}) != canonical({"a": 1.0})
        assert canonical({"a": 1}) != canonical({"a": "1"})
        names = {"type": 1, "identity": 2, "shown": 3}
        assert canonical(names) == '{"identity": 2, "shown": 3, "type": 1}'

    def test_another_process_describes_alike(self):
        code = (
            "import numpy as np; from gpubench.plain import canonical\n"
            "print(canonical({'a': np.arange(5000.), 'b': canonical, 'c': object(), 'd': np.int8}))"
        )
        run = [sys.executable, "-c", code]
        first, second = (subprocess.check_output(run, text=True) for _ in range(2))
        assert first == second


def full_measurement():
    return Measurement(
        config={"n": np.int64(512), "dtype": np.float32, "shape": (3, 4), "x": math.inf},
        region="fp32",
        status="interrupted",
        error="KeyboardInterrupt",
        result=make_result(),
        entries=2.5,
        throttled=np.array([True, False, True]),
        n_discarded=2,
        collected={"power": np.array([1.5, np.nan, np.inf]), "none": np.zeros(0)},
        labels={"driver": "570.1"},
        counters={"dram__bytes_read.sum": 1e9, "missing": math.nan},
    )


class TestMeasurement:
    def test_it_comes_back_whole(self):
        measurement = full_measurement()
        back = measurement_from_dict(through_json(measurement_to_dict(measurement)))
        assert back.config["n"] == 512
        assert str(back.config["dtype"]) == "float32"
        assert (back.config["shape"], back.config["x"]) == ((3, 4), math.inf)
        for key in ("region", "status", "error", "result", "entries", "n_discarded", "labels"):
            assert getattr(back, key) == getattr(measurement, key)
        assert back.throttled.dtype == np.bool_
        np.testing.assert_array_equal(back.throttled, measurement.throttled)
        assert back.collected.keys() == measurement.collected.keys()
        for name, values in measurement.collected.items():
            np.testing.assert_array_equal(back.collected[name], values)
            assert back.collected[name].dtype == np.float64
        np.testing.assert_equal(dict(back.counters), dict(measurement.counters))
        assert measurement_to_dict(back) == measurement_to_dict(measurement)

    def test_one_that_failed_comes_back(self):
        failed = Measurement(config={}, region="f", status="failed", error="ValueError: no")
        back = measurement_from_dict(through_json(measurement_to_dict(failed)))
        assert (back.status, back.error, back.result) == ("failed", "ValueError: no", None)
        assert back.entries == 1.0

    def test_what_is_absent_has_its_default_and_what_is_unknown_is_ignored(self):
        back = measurement_from_dict({"config": {"n": 1}, "region": "f", "newer": 1})
        assert measurement_to_dict(back) == measurement_to_dict(
            Measurement(config={"n": 1}, region="f")
        )

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"config": None}, "config is missing"),
            ({"region": None}, "region is missing"),
            ({"config": [1]}, r"config must be a mapping, got \[1\]"),
            ({"status": "done"}, "status must be one of 'ok', 'failed', 'interrupted'; got 'done'"),
            ({"throttled": 1}, "throttled must be a list, got 1"),
            ({"throttled": [0]}, "throttled must hold true and false, got 0"),
            ({"n_discarded": -1}, "n_discarded must be at least 0"),
            (
                {"collected": {"power": [1, "high"]}},
                "collected: power must be a number, got 'high'",
            ),
            ({"collected": {"power": 1}}, "collected: power must be a list, got 1"),
            ({"labels": {"driver": 1}}, "labels: driver must be a string, got 1"),
            ({"counters": {"a": []}}, r"counters: a must be a number, got \[\]"),
            ({"result": {"name": "f"}}, "cpu_times_s is missing"),
            ({"entries": "many"}, "entries must be a number, got 'many'"),
        ],
    )
    def test_a_wrong_value_is_named(self, changes, message):
        values = {**measurement_to_dict(full_measurement()), **changes}
        with pytest.raises(gpubench.ArgumentError, match=message):
            measurement_from_dict(values)

    def test_no_mapping_at_all(self):
        with pytest.raises(gpubench.ArgumentError, match="a measurement must be a mapping, got 3"):
            measurement_from_dict(3)
