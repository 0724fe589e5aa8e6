"""On which CUDA devices this process has a context, asked without making one.

CUDA's initialization, a mere count of the devices included, spoils CUDA for every process that is
forked later, and a context takes time and memory. So the driver's library itself is asked: it can
tell that CUDA isn't initialized, and leaves it so.
"""

from __future__ import annotations

import ctypes
from functools import cache


def devices_with_context() -> frozenset[int] | None:
    """Return the devices with a primary context, which all frameworks share; None if unknown."""
    driver = _driver()
    if driver is None:
        return None
    count, flags, is_active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)):  # CUDA isn't initialized
        return frozenset()
    found = set()
    for number in range(count.value):
        state = ctypes.byref(flags), ctypes.byref(is_active)
        if not driver.cuDevicePrimaryCtxGetState(number, *state) and is_active.value:
            found.add(number)
    return frozenset(found)


@cache
def _driver() -> ctypes.CDLL | None:
    for library in ("libcuda.so.1", "nvcuda.dll"):
        try:
            return ctypes.CDLL(library)
        except OSError:
            continue
    return None
