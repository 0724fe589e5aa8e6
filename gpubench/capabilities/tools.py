"""What gpubench records and measures by, besides CuPy."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from importlib import metadata

from gpubench.capabilities.capability import Capability, lacking
from gpubench.capabilities.driver import Driver
from gpubench.errors import UnsupportedError

_COVERED = ("activity", "cuda12", "cuda13", "cutensor12", "cutensor13", "dev", "docs", "test")
"""Extras that are no rows of their own: others tell of what they bring, or nobody uses it."""


def cupti_capability(driver: Driver | None) -> Capability:
    """Return whether activity can be recorded; where there is a GPU, by beginning to."""
    from gpubench.devices.cupti import load_cupti

    name = "CUPTI"
    try:
        load_cupti()
        if driver is None or not driver.devices:
            return Capability(name, None, "installed; not tried; it needs: GPU")
        from gpubench.devices.cupti_source import CuptiSource

        CuptiSource().close()
    except UnsupportedError as error:
        return lacking(name, error)
    return Capability(name, True, "activity can be recorded")


def nvml_capability(driver: Driver | None) -> Capability:
    """Return whether clocks and temperatures can be read."""
    from gpubench.devices import current_platform
    from gpubench.devices.nvml import find_sensors

    name = "NVML"
    if importlib.util.find_spec("pynvml") is None:
        return lacking(name, "nvidia-ml-py is not installed", "pip install nvidia-ml-py")
    platform = current_platform()
    if driver is None or not platform.device_count():
        return Capability(name, None, "installed; not tried; it needs: GPU, CuPy")
    device = platform.device(platform.current_device())
    try:
        sensors = find_sensors(device.properties.pci_bus_id)
        clock, temperature = sensors.sm_clock() / 1e6, sensors.temperature()
    except UnsupportedError as error:
        return lacking(name, error)
    return Capability(name, True, f"the GPU is at {clock:.0f} MHz and {temperature:g} °C")


def ncu_capability() -> Capability:
    """Return whether Nsight Compute is installed."""
    from gpubench.sweeps.counters.faults import CounterError
    from gpubench.sweeps.counters.tool import find_ncu

    try:
        return Capability("ncu", True, find_ncu())
    except CounterError as error:
        return lacking("ncu", error.message, error.advice)


def nvtx_capability() -> Capability:
    """Return whether ranges reach a profiler."""
    from gpubench.ranges.backends import backend

    found = backend()
    if found.name == "none":
        remedy = "unset NVTX_DISABLE" if "NVTX_DISABLE" in found.reason else "pip install nvtx"
        return lacking("NVTX", found.reason, remedy)
    return Capability("NVTX", True, found.reason)


def extra_capabilities() -> Iterator[Capability]:
    """Yield gpubench's extras, by whether what they name is installed."""
    try:
        requirements = metadata.requires("gpubench") or ()
    except metadata.PackageNotFoundError:  # it is imported from its folder
        return
    packages: dict[str, list[str]] = {}
    for requirement in requirements:
        needed_by = re.search(r"""extra == ["']([\w-]+)["']""", requirement)
        package = re.match(r"[\w.-]+", requirement)
        if needed_by and package and needed_by[1] not in _COVERED:
            packages.setdefault(needed_by[1], []).append(package[0])
    for extra, names in packages.items():
        missing = [name for name in names if not _is_installed(name)]
        if missing:
            problem = f"{', '.join(missing)} not installed"
            yield lacking(f"extra {extra}", problem, f'pip install "gpubench[{extra}]"')
        else:
            yield Capability(f"extra {extra}", True, ", ".join(names))


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
