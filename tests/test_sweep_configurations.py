"""A sweep's configurations in all the forms in which they may be given."""

import functools

import numpy as np
import pytest

import gpubench
from gpubench.sweeps.configurations import call_arguments, configurations, product


def precision(n, dtype="fp32"):
    return n, dtype


def square(n):
    return n * n


def pair(a, b):
    return a, b


def optional(*, n=1):
    return n


def numbered(first, *rest, scale=1):
    return first, rest, scale


def named(n, **options):
    return n, options


def anything(*args, **kwargs):
    return args, kwargs


class Instance:
    def __call__(self, n, dtype="fp32"):
        return n, dtype

    def method(self, n):
        return n


class TestForms:
    @pytest.mark.parametrize(
        ("func", "configs", "rows"),
        [
            (pair, [(1, 2), (3, 4)], [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
            (pair, [[1, 2]], [{"a": 1, "b": 2}]),
            (pair, ((1, 2),), [{"a": 1, "b": 2}]),
            (pair, [{"b": 2, "a": 1}], [{"a": 1, "b": 2}]),
            (square, [512, 1024], [{"n": 512}, {"n": 1024}]),
            (square, (512, 1024), [{"n": 512}, {"n": 1024}]),
            (square, range(2), [{"n": 0}, {"n": 1}]),
            (square, ["fp32", b"x", None, 2.5], [{"n": v} for v in ("fp32", b"x", None, 2.5)]),
            (square, [((3, 4),)], [{"n": (3, 4)}]),
            (square, (n for n in (1, 2)), [{"n": 1}, {"n": 2}]),
            (square, product(n=[1, 2]), [{"n": 1}, {"n": 2}]),
            (
                precision,
                [512, (512, "fp16"), {"n": 1024}, *product(n=[1], dtype=["x"])],
                [
                    {"n": 512, "dtype": "fp32"},
                    {"n": 512, "dtype": "fp16"},
                    {"n": 1024, "dtype": "fp32"},
                    {"n": 1, "dtype": "x"},
                ],
            ),
            (optional, [{}, {"n": 2}], [{"n": 1}, {"n": 2}]),
            (lambda: None, [()], [{}]),
        ],
    )
    def test_each_becomes_a_dict_by_parameters(self, func, configs, rows):
        assert configurations(func, configs) == rows

    def test_numpy_scalars_and_arrays_are_single_arguments(self):
        rows = configurations(square, np.array([512, 1024]))
        assert rows == [{"n": 512}, {"n": 1024}]
        assert type(rows[0]["n"]) is np.int64
        array = np.ones(3)
        ((_, value),) = configurations(square, [array])[0].items()
        assert value is array

    def test_keys_are_in_the_order_of_the_signature(self):
        assert list(configurations(precision, [{"dtype": "x", "n": 1}])[0]) == ["n", "dtype"]

    def test_the_given_mapping_is_left_alone(self):
        given = {"n": 1}
        configurations(precision, [given])
        assert given == {"n": 1}

    @pytest.mark.parametrize(
        ("func", "config", "row"),
        [
            (functools.partial(pair, 1), (2,), {"b": 2}),
            (functools.partial(pair, b=2), 1, {"a": 1, "b": 2}),
            (Instance(), 1, {"n": 1, "dtype": "fp32"}),
            (Instance().method, 1, {"n": 1}),
            (Instance.method, (None, 1), {"self": None, "n": 1}),
            (max, (1, 2), {"arg0": 1, "arg1": 2}),
            (max, {"default": 0}, {"default": 0}),
            (numbered, (1, 2, 3), {"first": 1, "rest0": 2, "rest1": 3, "scale": 1}),
            (numbered, 1, {"first": 1, "scale": 1}),
            (named, {"n": 1, "dtype": "x"}, {"n": 1, "dtype": "x"}),
            (anything, (1, 2), {"args0": 1, "args1": 2}),
        ],
    )
    def test_any_callable(self, func, config, row):
        assert configurations(func, [config]) == [row]


class TestErrors:
    @pytest.mark.parametrize(
        ("func", "configs", "message"),
        [
            (square, [], "configs must hold at least one configuration, got none"),
            (square, (n for n in ()), "configs must hold at least one configuration, got none"),
            (square, 512, "configs must be an iterable of configurations, .*; got 512"),
            (square, None, "configs must be an iterable of configurations, .*; got None"),
            (square, np.array(5), "configs must be an iterable of configurations"),
            (square, "fp32", r"got 'fp32', did you mean \['fp32'\]\?"),
            (square, {"n": 1}, r"got a mapping, did you mean \[\{...\}\]"),
            (
                square,
                [1, (1, 2)],
                r"configs\[1\] = \(1, 2\) doesn't fit square\(n\): too many positional arguments; "
                r"for one argument that is a sequence, write \(\(...\),\)",
            ),
            (
                precision,
                [(1, 2, 3)],
                r"configs\[0\] = \(1, 2, 3\) doesn't fit precision\(n, dtype='fp32'\): too many",
            ),
            (pair, [(1, 2, 3)], r"doesn't fit pair\(a, b\): too many positional arguments$"),
            (pair, [1], r"configs\[0\] = 1 doesn't fit pair\(a, b\): missing a required .*'b'$"),
            (
                pair,
                [(1, 2), {"a": 1, "c": 3}],
                r"configs\[1\] = \{'a': 1, 'c': 3\} doesn't fit pair\(a, b\): ",
            ),
            (optional, [1], r"configs\[0\] = 1 doesn't fit optional\(\*, n=1\): too many"),
            (square, [{1: 2}], r"configs\[0\] = \{1: 2\} must have names as keys, got 1"),
            (
                square,
                [1, product(n=[2])],
                r"configs\[1\] = product\(n=\[2\]\) is a product, not a configuration; unpack it: "
                r"\[\*product\(...\)\]",
            ),
            (
                Instance(),
                [{"m": 1}],
                r"configs\[0\] = \{'m': 1\} doesn't fit Instance\(n, dtype='fp32'\)",
            ),
        ],
    )
    def test_the_message_says_which_and_what_is_wanted(self, func, configs, message):
        with pytest.raises(gpubench.ArgumentError, match=message):
            configurations(func, configs)

    @pytest.mark.parametrize(
        ("func", "configs"),
        [
            (precision, [512, 1024, (512, "fp32")]),
            (square, product(n=[1, 2, 1])),
            (square, [((1, 2),), ((3, 4),), ((1, 2),)]),
            (square, [np.float32(1), np.float32(2), np.float32(1)]),
            (pair, [{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"b": 2, "a": 1}]),
        ],
    )
    def test_a_repeated_configuration_is_named_with_the_first(self, func, configs):
        with pytest.raises(gpubench.ArgumentError, match=r"configs\[2\] = .* repeats configs\[0\]"):
            configurations(func, configs)

    def test_only_what_is_equal_in_value_and_type_is_a_repetition(self):
        configs = [1, 1.0, True, "1", np.int64(1), ((1, 2),), ((1, 2.0),), np.ones(2), np.ones(2)]
        assert len(configurations(square, configs)) == len(configs)

    @pytest.mark.parametrize(
        "func", [lambda *a, **options: None, lambda *a, a0: None, lambda a0=1, /, **options: None]
    )
    def test_two_arguments_of_one_name(self, func):
        with pytest.raises(gpubench.ArgumentError, match=r"configs\[0\] = \{'a0': 2\}"):
            configurations(func, [{"a0": 2}])

    def test_such_a_name_alone_does_no_harm(self):
        assert configurations(lambda a0, *a: None, [1]) == [{"a0": 1}]

    def test_an_exception_of_the_generator_passes(self):
        def broken():
            yield 1
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            configurations(square, broken())


class TestCallArguments:
    @pytest.mark.parametrize(
        ("func", "config", "args", "kwargs"),
        [
            (precision, 512, (512, "fp32"), {}),
            (lambda n, /, m, *, k=3: None, (1, 2), (1, 2), {"k": 3}),
            (numbered, (1, 2, 3), (1, 2, 3), {"scale": 1}),
            (named, {"n": 1, "dtype": "x"}, (1,), {"dtype": "x"}),
            (anything, (1, 2), (1, 2), {}),
            (max, (1, 2), (1, 2), {}),
            (functools.partial(pair, b=2), {"a": 1}, (1,), {"b": 2}),
            (lambda: None, (), (), {}),
        ],
    )
    def test_the_call_is_the_one_that_was_asked_for(self, func, config, args, kwargs):
        (row,) = configurations(func, [config])
        before = dict(row)
        assert call_arguments(func, row) == (args, kwargs)
        assert row == before

    @pytest.mark.parametrize(
        ("func", "config", "returned"),
        [
            (square, 3, 9),
            (Instance(), {"dtype": "fp16", "n": 1}, (1, "fp16")),
            (functools.partial(pair, 1), 2, (1, 2)),
            (max, (1, 2), 2),
            (numbered, (1, 2, 3), (1, (2, 3), 1)),
        ],
    )
    def test_so_it_returns_what_is_expected(self, func, config, returned):
        args, kwargs = call_arguments(func, configurations(func, [config])[0])
        assert func(*args, **kwargs) == returned


class TestProduct:
    def test_the_last_parameter_changes_first(self):
        assert list(product(n=[1, 2], dtype=["a", "b"])) == [
            {"n": 1, "dtype": "a"},
            {"n": 1, "dtype": "b"},
            {"n": 2, "dtype": "a"},
            {"n": 2, "dtype": "b"},
        ]

    def test_it_is_a_value_that_can_be_read_twice(self):
        both = product(n=(n for n in (1, 2)), dtype=["a", "b", "c"])
        assert len(both) == len(list(both)) == len(list(both)) == 6
        assert both == product(n=[1, 2], dtype=("a", "b", "c"))
        assert both != product(n=[1, 2], dtype=("a", "b"))

    def test_repr_is_the_call(self):
        shown = repr(product(n=2 ** np.arange(3), dtype=["fp32", None]))
        assert shown == "product(n=[1, 2, 4], dtype=['fp32', None])"

    @pytest.mark.parametrize("value", ["fp32", b"x", 5, None, {"a": 1}, np.array(3)])
    def test_what_is_no_series_is_one_value(self, value):
        assert list(product(x=value)) == [{"x": value}]

    def test_a_parameter_may_have_any_name(self):
        assert list(product(self=[1], values=[2])) == [{"self": 1, "values": 2}]

    def test_a_generator_that_fails_says_why(self):
        with pytest.raises(TypeError, match="unsupported operand"):
            product(n=(n + "" for n in (1, 2)))

    def test_nothing_to_combine(self):
        with pytest.raises(gpubench.ArgumentError, match=r"needs the values of a parameter"):
            product()
        with pytest.raises(gpubench.ArgumentError, match="dtype must have at least one value"):
            product(n=[1], dtype=[])
