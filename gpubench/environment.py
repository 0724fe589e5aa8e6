"""The machine and the software that a result was taken on, as plain JSON values."""

from __future__ import annotations

import datetime
import functools
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import gpubench
from gpubench.accelerator import accelerators_in_effect
from gpubench.devices.base import Device, Platform
from gpubench.devices.nvml import DeviceState, find_sensors
from gpubench.errors import UnsupportedError

_VARIABLES = ("CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES")
_PREFIX = "CUPY_"
"""How the names of further variables begin."""


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
    in_effect = accelerators_in_effect()
    return {
        **describe_host(),
        "platform": used.name,
        "frameworks": _frameworks(),
        "accelerators": in_effect and {kind: list(names) for kind, names in in_effect.items()},
        "cuda": _cuda_versions() if used.name == "cuda" else None,
        "driver": _driver(devices[0].properties.pci_bus_id) if devices else None,
        "devices": [_describe_device(device) for device in devices],
        "device_states": [[_describe_state(s) for s in pair] for pair in states],
    }


def describe_run(
    started: datetime.datetime, folder: str | os.PathLike[str] = "."
) -> dict[str, Any]:
    """Describe what several results have in common, apart from the machine they come from.

    Parameters
    ----------
    started : datetime
        When the first benchmark was begun; with a time zone.
    folder : str or path-like
        A folder of the git repository whose state is to be told.

    Returns
    -------
    dict
        JSON values: ``started``, the date in UTC (ISO 8601), and ``git``, see `git_state`.
    """
    return {"started": _iso(started), "git": git_state(folder)}


def shared(environments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what all environments say alike."""
    if not environments:
        return {}
    first, *others = environments
    return {
        key: value
        for key, value in first.items()
        if all(key in other and other[key] == value for other in others)
    }


def git_state(folder: str | os.PathLike[str] = ".") -> dict[str, Any] | None:
    """Return which commit of a git repository is checked out.

    Parameters
    ----------
    folder : str or path-like
        The repository's, or one within it.

    Returns
    -------
    dict or None
        ``commit``, its full name, and ``dirty``, whether files that git tracks differ from it;
        None without git, a repository or a commit.
    """
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit.strip(), "dirty": None if changes is None else bool(changes)}


def _git(folder: str | os.PathLike[str], *args: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", os.fspath(folder), *args]
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")


def describe_host() -> dict[str, Any]:
    """Describe this machine and its software, as plain JSON values, without its devices."""
    return {
        "date": _iso(datetime.datetime.now(datetime.timezone.utc)),
        "gpubench": gpubench.__version__,
        "python": platform.python_version(),
        "numpy": _version("numpy"),
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": _cpu_name(),
        "n_cpus": os.cpu_count(),
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if name in _VARIABLES or name.startswith(_PREFIX)
        },
    }


def _iso(date: datetime.datetime) -> str:
    return date.astimezone(datetime.timezone.utc).isoformat(timespec="seconds")


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


@functools.cache
def _driver(pci_bus_id: str) -> str | None:
    """Return the version of the GPU's driver, None if nobody tells."""
    try:
        return find_sensors(pci_bus_id).driver()
    except UnsupportedError:
        return None


def _describe_device(device: Device) -> dict[str, Any]:
    properties = device.properties
    return {
        "id": device.id,
        "name": properties.name,
        "uuid": properties.uuid,
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
