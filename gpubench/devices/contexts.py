"""Which GPUs this process works on, found out without making it work on any."""

from __future__ import annotations

import sys

from gpubench.devices import current_platform, simulated
from gpubench.devices.base import Device, Platform
from gpubench.devices.primary_contexts import devices_with_context


def device_in_use() -> tuple[Platform, Device] | None:
    """Return the current device with its platform; None if this process doesn't use it yet."""
    platform = platform_in_use()
    if platform is None:
        return None
    number = platform.current_device()
    used = devices_with_context() if platform.name == "cuda" else None
    return None if used is not None and number not in used else (platform, platform.device(number))


def platform_in_use() -> Platform | None:
    """Return the current platform; None if this process doesn't use any of its devices yet."""
    if simulated.active() is None:
        used = devices_with_context()
        if not used and (used is not None or "cupy" not in sys.modules):
            return None
    platform = current_platform()
    return platform if platform.device_count() else None
