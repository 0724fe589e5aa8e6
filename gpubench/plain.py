"""Any value as something that strict JSON can hold, and back again."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from types import ModuleType
from typing import Any

import numpy as np

from gpubench.arguments import finite_number, text
from gpubench.sweeps.cells import cell


@dataclass(frozen=True)
class Described:
    """Stands for a value that JSON can't hold, in a configuration that was read back.

    Attributes
    ----------
    type : str
        The value's type, with its module.
    identity : str
        What tells it from others: of an array a digest, of a function its full name, else what
        `repr` made of it, without addresses in memory.
    shown : str
        How it is shown in a table.
    """

    type: str
    identity: str
    shown: str

    def __str__(self) -> str:
        return self.shown


def plain(value: object) -> Any:
    """Return a value of a configuration as JSON can hold it.

    Numbers, strings, None, and lists, tuples and dicts of them are kept; NumPy's numbers become
    Python's. Anything else is described. The same value makes the same JSON in another process,
    unless its `repr` is another one there.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    object
        What strict JSON can hold; `from_plain` reads it.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) in (list, tuple):
        return [plain(item) for item in value]  # type: ignore[attr-defined]
    if type(value) is dict and all(type(key) is str for key in value) and not _is_described(value):
        return {key: plain(item) for key, item in value.items()}
    return asdict(value if isinstance(value, Described) else _described(value))


def from_plain(value: Any) -> object:
    """Return a value that equals the one of which `plain` made this.

    Lists come back as tuples, so that they can be hashed; what JSON can't hold, as `Described`.
    """
    if isinstance(value, list):
        return tuple(map(from_plain, value))
    if not isinstance(value, Mapping):
        return value
    if not _is_described(value):
        return {key: from_plain(item) for key, item in value.items()}
    described = Described(**{key: text(key, part) for key, part in value.items()})
    if described.type == "builtins.float":
        return _NOT_FINITE.get(described.identity, described)
    return described


def canonical(values: Mapping[str, object]) -> str:
    """Return named values as JSON, the same whatever order the names are in."""
    return json.dumps(each_plain(values), allow_nan=False, sort_keys=True)


def has_identity(value: object) -> bool:
    """Whether what JSON makes of a value tells it from others, in another process too.

    It doesn't for functions that are made on the way, for objects that only their place in memory
    tells apart, and for arrays that lie on a GPU.
    """
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(has_identity, value))
    if isinstance(value, Mapping):
        return all(map(has_identity, value.values()))
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        owner = getattr(value, "__self__", None)
        return "<" not in name and (owner is None or isinstance(owner, ModuleType))
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject
    return _ADDRESS.search(repr(value)) is None


def each_plain(values: Mapping[str, object]) -> dict[str, Any]:
    """Return named values as `plain` makes them."""
    return {name: plain(value) for name, value in values.items()}


def number_to_plain(value: float) -> float | str | None:
    """Return a number as strict JSON holds it: NaN is None, an infinity ``"inf"`` or ``"-inf"``."""
    number = float(value)
    if math.isnan(number):
        return None
    return number if math.isfinite(number) else str(number)


def number_from_plain(key: str, value: Any) -> float:
    """Return the number of which `number_to_plain` made this; `key` names it in errors."""
    if value is None:
        return math.nan
    known = _NOT_FINITE.get(value) if isinstance(value, str) else None
    return finite_number(key, value) if known is None else known


_NOT_FINITE = {str(number): number for number in (math.inf, -math.inf, math.nan)}


def _is_described(value: Mapping[str, Any]) -> bool:
    return value.keys() == {field.name for field in fields(Described)}


def _described(value: object) -> Described:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return Described(name, _text_of(_identity, value), _text_of(cell, value))


def _text_of(describe: Callable[[object], object], value: object) -> str:
    """Return a description without addresses in memory."""
    try:
        return _ADDRESS.sub("", str(describe(value)))
    except Exception:  # noqa: BLE001  # of a class that gpubench doesn't know
        return f"<{type(value).__name__}>"


def _identity(value: object) -> str:
    name = getattr(value, "__qualname__", None)  # of a class or a function
    if isinstance(name, str):
        return f"{getattr(value, '__module__', None)}.{name}"
    if isinstance(value, np.ndarray):
        digest = ""
        if not value.dtype.hasobject:
            digest = f", sha256={hashlib.sha256(value.tobytes()).hexdigest()[:16]}"
        return f"ndarray(shape={value.shape}, dtype={value.dtype}{digest})"
    if hasattr(value, "shape") and hasattr(value, "dtype"):  # another framework's array
        return f"{type(value).__name__}(shape={tuple(value.shape)}, dtype={value.dtype})"
    return repr(value)


_ADDRESS = re.compile(" at 0x[0-9a-fA-F]+")
