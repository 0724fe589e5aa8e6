"""Which GPUs this process works on, found out without making it work on any.

CUDA's initialization, a mere count of the devices included, spoils CUDA for every process that is
forked later, and a context takes time and memory. So whoever only looks on asks the driver's
library itself: it can tell that CUDA isn't initialized, and leaves it so.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

from gpubench.devices import current_platform, simulated
from gpubench.devices.base import Device, Platform


def device_in_use() -> tuple[Platform, Device] | None:
    """Return the current device with its platform; None if this process doesn't use it yet."""
    platform = platform_in_use()
    if platform is None:
        return None
    number = platform.current_device()
    used = _cuda_contexts() if platform.name == "cuda" else None
    return None if used is not None and number not in used else (platform, platform.device(number))


def platform_in_use() -> Platform | None:
    """Return the current platform; None if this process doesn't use any of its devices yet."""
    if simulated.active() is None:
        used = _cuda_contexts()
        if not used and (used is not None or "cupy" not in sys.modules):
            return None
    platform = current_platform()
    return platform if platform.device_count() else None


def _cuda_contexts() -> frozenset[int] | None:
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
