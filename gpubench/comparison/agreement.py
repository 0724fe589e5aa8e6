"""Whether two return values agree, and if not, in what they differ."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsInt

import numpy as np
import numpy.typing as npt

from gpubench.comparison.host_values import (
    Array,
    container_type,
    epsilon,
    host_array,
    on_host,
)

__all__ = ["disagreement", "on_host"]


def disagreement(expected: object, actual: object) -> str:
    """Say in what two return values differ.

    Floating-point and complex numbers agree if they differ by no more than ``rtol * abs(expected)
    + atol``, where rtol is the square root of the coarser dtype's epsilon, and atol is rtol times
    the largest finite magnitude in `expected`. Summing n numbers in another order changes a sum
    by about ``sqrt(n)`` epsilons of their magnitudes, and by n at worst (Higham, "Accuracy and
    Stability of Numerical Algorithms", 4.2); atol is for sums that come out near zero beside
    larger ones. NaN equals NaN. All else has to be equal: integers (among them indices), bools,
    text, dates. Numbers of the same kind may differ in width, an integer is no float.

    Parameters
    ----------
    expected, actual : object
        What two calls returned, best by way of `on_host`. A number is as good as an array without
        dimensions. What is neither array nor container is compared by ``==``.

    Returns
    -------
    str
        Empty if they agree. Else a sentence with the first place at which they don't, for
        example ``"[0]['x']: 3 of 1,000 elements differ, the largest by 0.25 at (4, 7)"``, or with
        the reason why they can't be compared.
    """
    try:
        return next(_differences(expected, actual, ""), "")
    except Exception as error:  # noqa: BLE001  # whatever a value of any kind raises
        return _incomparable(error)


def _differences(expected: object, actual: object, where: str) -> Iterator[str]:
    """Yield a sentence for each place at which the values differ."""
    container = container_type(expected)
    if container is not container_type(actual):
        yield _at(where, _types(expected, actual))
        return
    if container is not None:
        yield from _part_differences(expected, actual, where)
        return
    expected_array, actual_array = host_array(expected), host_array(actual)
    if expected_array is not None and actual_array is not None:
        yield from _array_differences(expected_array, actual_array, where)
    elif type(expected) is not type(actual) and (expected_array is None) != (actual_array is None):
        yield _at(where, _types(expected, actual))
    elif difference := _object_difference(expected, actual):
        yield _at(where, difference)


def _part_differences(expected: Any, actual: Any, where: str) -> Iterator[str]:
    (place, expected_parts), (_, actual_parts) = _parts(expected), _parts(actual)
    missing = [key for key in expected_parts if key not in actual_parts]
    extra = [key for key in actual_parts if key not in expected_parts]
    if isinstance(expected, dict):
        for keys, problem in ((missing, "is missing"), (extra, "is not expected")):
            for key in keys:
                yield _at(where, f"the key {reprlib.repr(key)} {problem}")
    elif missing or extra:
        yield _at(where, f"length {len(actual_parts)} instead of {len(expected_parts)}")
    for key, part in expected_parts.items():
        if key in actual_parts:
            yield from _differences(part, actual_parts[key], where + place.format(key))


def _parts(value: Any) -> tuple[str, Mapping[Any, object]]:
    """Return how to write a place in a container, and what stands at each."""
    if isinstance(value, dict):
        return "[{!r}]", value
    if isinstance(value, (tuple, list)):
        return "[{}]", dict(enumerate(value))
    names = [field.name for field in dataclasses.fields(value) if field.compare]
    return ".{}", {name: getattr(value, name) for name in names}


def _array_differences(expected: Array, actual: Array, where: str) -> Iterator[str]:
    if expected.shape != actual.shape:
        yield _at(where, f"shape {actual.shape} instead of {expected.shape}")
    elif _kind(expected) != _kind(actual) or expected.dtype.names != actual.dtype.names:
        yield _at(where, f"{actual.dtype} instead of {expected.dtype}")
    elif isinstance(expected, np.ma.MaskedArray) or isinstance(actual, np.ma.MaskedArray):
        masks = np.ma.getmaskarray(expected), np.ma.getmaskarray(actual)
        yield from _array_differences(*masks, f"{where}.mask")
        yield from _array_differences(np.ma.filled(expected, 0), np.ma.filled(actual, 0), where)
    elif expected.dtype.names:
        for name in expected.dtype.names:
            yield from _array_differences(expected[name], actual[name], f"{where}[{name!r}]")
    elif expected.dtype.kind == "O":
        for index in np.ndindex(expected.shape):
            place = f"{where}[{_joined(index)}]"
            yield from _differences(expected[index], actual[index], place)
    elif difference := _element_difference(np.asarray(expected), np.asarray(actual)):
        yield _at(where, difference)


def _kind(array: Array) -> str:
    return {"u": "i", "T": "U"}.get(array.dtype.kind, array.dtype.kind)


def _element_difference(expected: Array, actual: Array) -> str:
    is_inexact = expected.dtype.kind in "fc"
    with np.errstate(all="ignore"):
        unequal = (_out_of_tolerance if is_inexact else _unequal)(expected, actual)
        places = np.flatnonzero(unequal)
        if not places.size:
            return ""
        if expected.ndim == 0:
            return f"{actual[()]} instead of {expected[()]}"
        distances = np.zeros(1)
        if is_inexact:
            wide_expected, wide_actual = _wide(expected.flat[places], actual.flat[places])
            distances = np.nan_to_num(
                np.abs(wide_actual - wide_expected), nan=np.inf, posinf=np.inf
            )
    worst = int(distances.argmax())
    index = np.unravel_index(places[worst], expected.shape)
    differ = "differs" if places.size == 1 else "differ"
    count = f"{places.size:,} of {expected.size:,} elements {differ}"
    if is_inexact and np.isfinite(distances[worst]):
        example = f"the largest by {distances[worst]:.2g}"
    else:
        example = f"for example {actual[index]} instead of {expected[index]}"
    return f"{count}, {example} at ({_joined(index)})"


def _out_of_tolerance(expected: Array, actual: Array) -> npt.NDArray[np.bool_]:
    rtol = max(epsilon(expected.dtype), epsilon(actual.dtype)) ** 0.5
    expected, actual = _wide(expected, actual)
    magnitude, is_finite = np.abs(expected), np.isfinite(expected)
    atol = rtol * np.max(magnitude, where=is_finite, initial=0)
    is_near = is_finite & (np.abs(actual - expected) <= rtol * magnitude + atol)
    is_same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    return np.asarray(~(is_near | is_same))


def _wide(expected: Array, actual: Array) -> tuple[Array, Array]:
    # Differences of half-precision numbers overflow in half precision.
    dtype = np.result_type(expected.dtype, actual.dtype, np.float32)
    return expected.astype(dtype, copy=False), actual.astype(dtype, copy=False)


def _unequal(expected: Array, actual: Array) -> npt.NDArray[np.bool_]:
    unequal = np.asarray(expected != actual)
    if expected.dtype.kind in "mM":
        unequal = unequal & ~(np.isnat(expected) & np.isnat(actual))
    return unequal


def _object_difference(expected: object, actual: object) -> str:
    if expected is actual:
        return ""
    try:
        is_equal = expected == actual
    except Exception as error:  # noqa: BLE001  # of a class that gpubench doesn't know
        return _incomparable(error)
    name = type(expected).__qualname__
    if not isinstance(is_equal, (bool, np.bool_)):
        return f"{name} objects can't be compared: == returns a {type(is_equal).__qualname__}"
    if is_equal:
        return ""
    if type(expected) is type(actual) and type(expected).__eq__ is object.__eq__:
        return f"{name} objects can't be compared: each is equal to itself only"
    return f"{reprlib.repr(actual)} instead of {reprlib.repr(expected)}"


# --- How to say it ---


def _at(where: str, difference: str) -> str:
    return f"{where}: {difference}" if where else difference


def _joined(index: Iterable[SupportsInt]) -> str:
    return ", ".join(str(int(number)) for number in index)


def _types(expected: object, actual: object) -> str:
    return f"{type(actual).__qualname__} instead of {type(expected).__qualname__}"


def _incomparable(error: Exception) -> str:
    return f"they can't be compared: {type(error).__name__}: {error}"
