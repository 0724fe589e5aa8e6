"""Return values brought to the host, whichever framework they come from.

No framework is imported here. Their arrays are known by the protocols that they offer, and by
the modules that are loaded already.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_SCALARS = (bool, int, float, complex, np.generic)


def on_host(value: object) -> object:
    """Return a copy of what a function returned, with its arrays in the host's memory.

    It is a copy since a function may return the same buffer at each call.

    Parameters
    ----------
    value : object
        Arrays of any framework, also inside tuples, lists, dicts and dataclasses.

    Returns
    -------
    object
        NumPy arrays in the same containers. Floats that NumPy doesn't have, such as bfloat16,
        are float32 there, and still count as coarse in `disagreement`. What is no array, or
        can't be brought to the host, is returned as it is.
    """
    try:
        return _copied(value)
    except Exception:  # noqa: BLE001  # of a kind that gpubench doesn't know
        return value


def container_type(value: object) -> type | None:
    """Return dict, tuple or list, the class of a dataclass, or None for what has no parts."""
    for kind in (dict, tuple, list):
        if isinstance(value, kind):
            return kind
    is_instance = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return type(value) if is_instance else None


def _copied(value: Any) -> object:
    container = container_type(value)
    if container is tuple:
        items = [on_host(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if container is not None:
        return _copied_in_place(copy.copy(value))
    if isinstance(value, _SCALARS):
        return value
    array = host_array(value)
    if array is None:
        return copy.copy(value) if isinstance(value, (set, bytearray)) else value
    return np.frompyfunc(on_host, 1, 1)(array) if array.dtype.kind == "O" else array.copy()


def _copied_in_place(container: Any) -> object:
    if isinstance(container, list):
        container[:] = map(on_host, container)
    elif isinstance(container, dict):
        for key in container:
            container[key] = on_host(container[key])
    else:
        for field in dataclasses.fields(container):
            part = on_host(getattr(container, field.name))
            object.__setattr__(container, field.name, part)  # the class may be frozen
    return container


def host_array(value: object) -> Array | None:
    """Return a number or any framework's array as NumPy's, without a need to copy; or None."""
    if isinstance(value, (str, bytes)):
        return None
    if isinstance(value, np.ndarray):
        return _plain(value)
    if isinstance(value, _SCALARS):
        number = np.asarray(value)
        return None if number.dtype.kind == "O" else _plain(number)  # an int beyond 64 bits
    torch = sys.modules.get("torch")
    if isinstance(value, getattr(torch, "Tensor", ())):
        return _of_tensor(value, torch)
    offered = type(value)
    if hasattr(offered, "__cuda_array_interface__"):
        for method in ("copy_to_host", "to_numpy", "get"):  # Numba's; cuDF's; CuPy's
            if hasattr(offered, method):
                return _plain(getattr(value, method)())
    if hasattr(offered, "__array__"):
        return _plain(np.asarray(value))
    cupy: Any = sys.modules.get("cupy")
    if hasattr(offered, "__cuda_array_interface__") and cupy is not None:
        return _plain(cupy.asarray(value).get())
    if hasattr(offered, "__dlpack__"):
        return _of_dlpack(value, cupy)
    return None


def _of_tensor(tensor: Any, torch: Any) -> Array:
    try:
        return _plain(tensor.numpy(force=True))
    except TypeError:  # a dtype that NumPy doesn't have, or a sparse tensor
        if not tensor.is_floating_point():
            raise
        wide = tensor.detach().to(torch.float32).numpy(force=True)
        return _with_epsilon(wide, torch.finfo(tensor.dtype).eps)


def _of_dlpack(value: Any, cupy: Any) -> Array:
    kind, _ = value.__dlpack_device__()
    if kind == 1 or cupy is None:  # kDLCPU
        return _plain(np.from_dlpack(value))
    return _plain(cupy.from_dlpack(value).get())


def _plain(array: Array) -> Array:
    """Return an array of a dtype of ml_dtypes (bfloat16, int4 ...) in one of NumPy's own."""
    ml_dtypes: Any = sys.modules.get("ml_dtypes")
    if ml_dtypes is None or array.dtype.type.__module__ != "ml_dtypes":
        return array
    try:
        eps = float(ml_dtypes.finfo(array.dtype).eps)
    except ValueError:  # no floats
        return array.astype(np.int64)
    return _with_epsilon(array.astype(np.float32), eps)


def _with_epsilon(array: Array, eps: float) -> Array:
    # In the dtype, where it outlives copies and pickling.
    return array.view(np.dtype(array.dtype, metadata={"epsilon": eps}))


def epsilon(dtype: np.dtype[Any]) -> float:
    """Return the epsilon of a floating-point or complex dtype, or of the one it stands for."""
    metadata: Mapping[str, Any] = dtype.metadata or {}
    return float(metadata.get("epsilon") or np.finfo(dtype).eps)
