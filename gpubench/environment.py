"""The machine and the software that a result was taken on, as plain JSON values."""

from __future__ import annotations

import datetime
import functools
import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import gpubench
from gpubench.devices.base import Device, Platform
from gpubench.devices.nvml import DeviceState

_VARIABLES = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "CUPY_ACCELERATORS",
    "CUPY_TF32",
)


def describe_environment(
    used: Platform,
    devices: Sequence[Device] = (),
    states: Sequence[tuple[DeviceState | None, DeviceState | None]] = (),
) -> dict[str, Any]:
    """Describe where a result comes from.

    Parameters
    ----------
    used : Platform
        The platform that was measured on.
    devices : sequence of Device
        The devices that were timed.
    states : sequence of (DeviceState or None, DeviceState or None)
        Each device's state before and after the samples.

    Returns
    -------
    dict
        JSON values: software versions, host, devices, the variables that change what is
        measured, and the date in UTC (ISO 8601).
    """
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "gpubench": gpubench.__version__,
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": _cpu_name(),
        "n_cpus": os.cpu_count(),
        "platform": used.name,
        "frameworks": _frameworks(),
        "cuda": _cuda_versions() if used.name == "cuda" else None,
        "devices": [_describe_device(device) for device in devices],
        "device_states": [[_describe_state(s) for s in pair] for pair in states],
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


@functools.cache
def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _frameworks() -> dict[str, str]:
    names = ("cupy", "torch", "numba", "jax", "warp")
    versions = {name: getattr(sys.modules.get(name), "__version__", None) for name in names}
    return {name: str(version) for name, version in versions.items() if version is not None}


def _cuda_versions() -> dict[str, int]:
    from cupy.cuda import runtime

    return {"driver": runtime.driverGetVersion(), "runtime": runtime.runtimeGetVersion()}


def _describe_device(device: Device) -> dict[str, Any]:
    properties = device.properties
    return {
        "id": device.id,
        "name": properties.name,
        "pci_bus_id": properties.pci_bus_id,
        "compute_capability": properties.compute_capability,
        "memory_bytes": properties.memory_bytes,
        "l2_bytes": properties.l2_bytes,
    }


def _describe_state(state: DeviceState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {
        "sm_clock_hz": state.sm_clock,
        "memory_clock_hz": state.memory_clock,
        "temperature_c": state.temperature,
        "throttle_reasons": list(state.throttle_reasons),
    }
