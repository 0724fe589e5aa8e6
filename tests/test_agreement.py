import dataclasses
import datetime
import enum
import fractions
import pickle
import sys
from collections import OrderedDict, namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

from gpubench.comparison.agreement import disagreement, on_host

NAN, INF = float("nan"), float("inf")
Pair = namedtuple("Pair", "x y")


@dataclasses.dataclass(frozen=True)
class Point:
    x: object
    label: str = ""
    time: float = dataclasses.field(default=0.0, compare=False)


class DeviceArray:
    """An array that NumPy can't read by itself."""

    __cuda_array_interface__ = property(lambda self: {"version": 3})

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, *_args, **_kwargs):
        raise TypeError("implicit conversion to NumPy is not allowed")


class CupyLike(DeviceArray):
    def get(self):
        return self.values


class NumbaLike(DeviceArray):
    def copy_to_host(self):
        return self.values


class CudfLike(DeviceArray):
    def to_numpy(self):
        return self.values

    def get(self, key):
        raise AssertionError("this looks up a label")


class JaxLike:
    """An array that the host can read."""

    __cuda_array_interface__ = property(lambda self: {"version": 3})

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, *_args, **_kwargs):
        return self.values


class DlpackOnly:
    def __init__(self, values):
        self.values = np.asarray(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Tensor:
    """What of a torch tensor is looked at."""

    def __init__(self, values, dtype="float32"):
        self.values, self.dtype = np.asarray(values, "f4"), dtype

    def is_floating_point(self):
        return self.dtype != "sparse int64"

    def detach(self):
        return self

    def to(self, dtype):
        return Tensor(self.values, dtype)

    def numpy(self, force):
        assert force  # or a tensor on a GPU, or one with gradients, is refused
        if self.dtype != "float32":
            raise TypeError(f"Got unsupported ScalarType {self.dtype}")
        return self.values


@pytest.fixture
def torch(monkeypatch):
    torch = SimpleNamespace(
        Tensor=Tensor, float32="float32", finfo=lambda dtype: SimpleNamespace(eps=2**-7)
    )
    monkeypatch.setitem(sys.modules, "torch", torch)


# --- Copies on the host ---


@pytest.mark.parametrize("kind", [CupyLike, NumbaLike, CudfLike, JaxLike, DlpackOnly, np.asarray])
def test_arrays_of_every_framework_are_copied_to_the_host(kind):
    original = np.arange(6.0).reshape(2, 3)
    copy = on_host(kind(original))
    original[...] = -1
    assert type(copy) is np.ndarray
    assert copy.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_tensors_are_copied_and_bfloat16_stays_as_coarse_as_it_is(torch):
    values = np.ones(2, "f4")
    single, half = on_host((Tensor(values), Tensor(values, "bfloat16")))
    values[0] = 1.05
    assert single.tolist() == half.tolist() == [1.0, 1.0]
    for coarse in (half, pickle.loads(pickle.dumps(half)), on_host(half)):
        assert coarse.dtype == np.float32
        assert disagreement(coarse, values) == ""
    assert "1 of 2 elements differs" in disagreement(single, values)


def test_a_tensor_that_numpy_cannot_hold_is_left_and_said_to_be_incomparable(torch):
    tensor = Tensor([1], "sparse int64")
    assert on_host(tensor) is tensor
    assert disagreement(tensor, tensor) == (
        "they can't be compared: TypeError: Got unsupported ScalarType sparse int64"
    )


def test_dtypes_of_ml_dtypes_become_numpys():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    half = on_host(np.ones(2, ml_dtypes.bfloat16))
    assert half.dtype == np.float32
    assert disagreement(half, np.float32([1, 1.05])) == ""
    assert on_host(np.ones(2, ml_dtypes.int4)).dtype == np.int64


def test_containers_stay_what_they_are():
    array = np.zeros(2)
    value = {
        "tuple": (array, 1),
        "pair": Pair(array, "y"),
        "point": Point([array], "p", 1.5),
        "ordered": OrderedDict(a=array),
    }
    copy = on_host(value)
    array += 1
    assert type(copy["pair"]) is Pair
    assert type(copy["ordered"]) is OrderedDict
    assert (copy["tuple"][1], copy["pair"].y, copy["point"].label) == (1, "y", "p")
    assert copy["point"].time == 1.5
    arrays = [copy["tuple"][0], copy["pair"].x, copy["point"].x[0], copy["ordered"]["a"]]
    assert [one.tolist() for one in arrays] == [[0, 0]] * 4
    assert value["pair"].x is array  # the caller's own is as it was


def test_buffers_inside_object_arrays_and_other_mutable_values_are_copied():
    buffer, elements = bytearray(b"ab"), np.empty(2, object)
    elements[:] = {"a": CupyLike([1])}, "text"
    copied_buffer, copied = on_host([buffer, elements])
    buffer[0] = 0
    assert copied_buffer == b"ab"
    assert type(copied[0]["a"]) is np.ndarray
    assert copied[1] == "text"


def test_masks_are_kept():
    copy = on_host(np.ma.masked_greater([1, 5], 3))
    assert np.ma.getmaskarray(copy).tolist() == [False, True]


@pytest.mark.parametrize("value", [None, 3, 2.5, "text", b"ab", np.float32(1), np.ndarray, len])
def test_what_is_no_array_is_returned_as_it_is(value):
    assert on_host(value) is value


def test_no_framework_is_imported_for_it(monkeypatch):
    for name in ("cupy", "torch", "jax", "ml_dtypes"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    on_host([np.ones(2), CupyLike([1])])
    assert not {"cupy", "torch", "jax", "ml_dtypes"} & sys.modules.keys()


def test_an_array_that_only_cupy_can_read_goes_through_it(monkeypatch):
    cupy = SimpleNamespace(asarray=lambda value: CupyLike(value.values))
    value = type("Foreign", (), {"__cuda_array_interface__": {}, "values": [1, 2]})()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert on_host(value).tolist() == [1, 2]
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert on_host(value) is value


def test_an_array_that_cannot_be_read_is_left():
    class Broken(CupyLike):
        def get(self):
            raise RuntimeError("illegal memory access")

    broken = Broken([1])
    assert on_host([broken]) == [broken]
    assert disagreement(broken, broken) == (
        "they can't be compared: RuntimeError: illegal memory access"
    )


# --- What agrees ---


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1.0, np.float32(1 + 1e-4)),
        (np.float16(1), np.float64(1.02)),
        (np.float32([1000, 1e-3]), np.float32([1000, 2e-2])),  # beside a larger sum
        (np.complex64([1 + 1j]), np.complex64([1 + 1.0001j])),
        (np.float16([6e4]), np.float16([6e4])),
        (np.array([NAN, INF, -INF, 0.0]), np.array([NAN, INF, -INF, -0.0])),
        (complex(NAN, 1), complex(1, NAN)),
        (np.array([1, 2]), np.array([1, 2], np.uint8)),
        (3, np.array(3)),
        (True, np.bool_(True)),
        (2**70, 2**70),
        (np.array([], "f4"), np.array([], "f8")),
        (np.array(["a", "bc"]), np.array(["a", "bc"], "U9")),
        ("a", np.str_("a")),
        (b"a\0", b"a\0"),
        (None, None),
        (np.datetime64("NaT", "s"), np.datetime64("NaT", "s")),
        (datetime.date(2020, 1, 1), datetime.date(2020, 1, 1)),
        (fractions.Fraction(1, 3), fractions.Fraction(1, 3)),
        ({1, 2}, {2, 1}),
        ([1.0, (2, {"a": NAN})], [1.0 + 1e-12, (2, {"a": NAN})]),
        ({"a": 1, "b": 2}, OrderedDict(b=2, a=1)),
        (Point(1.0, time=1.0), Point(1.0, time=2.0)),
        (Pair(1, 2), Pair(1, 2)),
        (np.array([1.0, "a", None], object), np.array([1.0 + 1e-12, "a", None], object)),
        (np.array([(1, 2.0)], "i4,f4"), np.array([(1, 2.0001)], "i4,f4")),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 9], mask=[0, 1])),
        (np.ones((2, 2)), np.asfortranarray(np.ones((2, 2)))),
        (np.zeros(2), CupyLike(np.zeros(2))),
        (len, len),
    ],
)
def test_agree(expected, actual):
    assert disagreement(expected, actual) == ""
    assert disagreement(actual, expected) == ""


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_tolerance_is_the_root_of_epsilon_of_the_element_and_of_the_largest(dtype):
    rtol = np.finfo(dtype).eps ** 0.5
    expected = np.array([1, 0, INF, NAN], dtype)
    for factor, agrees in ((0.9, True), (1.2, False)):
        # 2 rtol for the largest element, 1 rtol for the zero beside it
        actual = expected + np.array([2 * rtol * factor, 0, 0, 0], dtype)
        assert (disagreement(expected, actual) == "") is agrees
        actual = expected + np.array([0, rtol * factor, 0, 0], dtype)
        assert (disagreement(expected, actual) == "") is agrees


def test_sums_in_another_order_agree():
    terms = np.random.default_rng(1).normal(size=(100_000, 8)).astype("f4")
    one, other = terms.cumsum(0)[-1], terms.sum(0, dtype="f8").astype("f4")
    assert (one != other).any()
    assert disagreement(other, one) == ""


# --- What doesn't ---


@pytest.mark.parametrize(
    ("expected", "actual", "sentence"),
    [
        (1.0, 2.5, "2.5 instead of 1.0"),
        (1.0, NAN, "nan instead of 1.0"),
        (INF, -INF, "-inf instead of inf"),
        (3, 4, "4 instead of 3"),
        (2**70, 2**70 + 1, "1180591620717411303425 instead of 1180591620717411303424"),
        (2**70, 3, "3 instead of 1180591620717411303424"),
        (True, False, "False instead of True"),
        ("a", "b", "'b' instead of 'a'"),
        (b"a", b"a\0", "b'a\\x00' instead of b'a'"),
        ("1", None, "None instead of '1'"),
        (1, 1.0, "float64 instead of int64"),
        (1, True, "bool instead of int64"),
        (np.ones(2, "f4"), np.ones(2, "i4"), "int32 instead of float32"),
        (np.ones(2, "f4"), np.ones(2, "c8"), "complex64 instead of float32"),
        (np.ones((2, 1)), np.ones(2), "shape (2,) instead of (2, 1)"),
        (1.0, np.ones(1), "shape (1,) instead of ()"),
        (None, np.ones(1), "ndarray instead of NoneType"),
        ([1], (1,), "tuple instead of list"),
        (Point(1), {"x": 1}, "dict instead of Point"),
        ([1, 2], [1], "length 1 instead of 2"),
        ({"a": 1}, {}, "the key 'a' is missing"),
        ({"a": 1}, {"a": 1, 0: 2}, "the key 0 is not expected"),
        ([0, {"a": (1, 2)}], [0, {"a": (1, 3)}], "[1]['a'][1]: 3 instead of 2"),
        (Pair(1, 2), Pair(1, 3), "[1]: 3 instead of 2"),
        ([Point(1)], [Point(2)], "[0].x: 2 instead of 1"),
        (
            np.array([[3, 1], [2, 0]]),
            np.array([[3, 4], [7, 0]]),
            "2 of 4 elements differ, for example 4 instead of 1 at (0, 1)",
        ),
        (
            np.array([1.0, 2.0, INF]),
            np.array([1.0, NAN, INF]),
            "1 of 3 elements differs, for example nan instead of 2.0 at (1)",
        ),
        (
            np.array(["2020-01-01", "NaT"], "M8[D]"),
            np.array(["NaT", "NaT"], "M8[D]"),
            "1 of 2 elements differs, for example NaT instead of 2020-01-01 at (0)",
        ),
        (
            np.array([6e4], "f2"),
            np.array([-6e4], "f2"),
            "1 of 1 elements differs, the largest by 1.2e+05 at (0)",
        ),
        (np.array([None, "a"], object), np.array([None, "b"], object), "[1]: 'b' instead of 'a'"),
        (
            np.array([(1, 2.0)], "i4,f4"),
            np.array([(1, 3.0)], "i4,f4"),
            "['f1']: 1 of 1 elements differs, the largest by 1 at (0)",
        ),
        (
            np.ma.array([1, 2], mask=[0, 1]),
            np.array([1, 2]),
            ".mask: 1 of 2 elements differs, for example False instead of True at (1)",
        ),
    ],
)
def test_differ(expected, actual, sentence):
    assert disagreement(expected, actual) == sentence


def test_the_largest_difference_is_named_with_its_place():
    expected = np.zeros((10, 100), "f4")
    expected[0, 0] = 1
    actual = expected.copy()
    actual[1, 1], actual[4, 7], actual[9, 9] = 0.1, -0.25, 0.2
    assert disagreement([{"x": expected}], [{"x": actual}]) == (
        "[0]['x']: 3 of 1,000 elements differ, the largest by 0.25 at (4, 7)"
    )


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrices_differ_as_arrays_do():
    expected, actual = np.matrix([[1.0, 2.0]]), np.matrix([[1.0, 5.0]])
    assert disagreement(expected, actual) == ("1 of 2 elements differs, the largest by 3 at (0, 1)")


# --- What can't be compared ---


class Silent:
    def __eq__(self, other):
        return [self, other]

    __hash__ = None


class Raising:
    def __eq__(self, other):
        raise LookupError("no such thing")

    __hash__ = None


class Opaque:
    pass


class Unprintable:
    def __eq__(self, other):
        return False

    def __repr__(self):
        raise LookupError("no text")

    __hash__ = None


Colour = enum.Enum("Colour", "RED BLUE")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Silent, "[0]: Silent objects can't be compared: == returns a list"),
        (Raising, "[0]: they can't be compared: LookupError: no such thing"),
        (Opaque, "[0]: Opaque objects can't be compared: each is equal to itself only"),
    ],
)
def test_objects_without_a_usable_equality_are_said_to_be_incomparable(kind, sentence):
    assert disagreement([kind()], [kind()]) == sentence
    same = kind()
    assert disagreement([same], [same]) == ""


def test_enumerations_are_compared_by_identity():
    assert disagreement(Colour.RED, Colour.RED) == ""
    assert disagreement(Colour.RED, Colour.BLUE)


def test_objects_without_text_and_endless_ones_raise_nothing():
    assert "instead of <Unprintable instance" in disagreement(Unprintable(), Unprintable())
    endless: list[object] = []
    endless.append(endless)
    assert "RecursionError" in disagreement(on_host(endless), endless)
