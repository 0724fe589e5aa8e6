"""A device's clocks, temperature and throttle reasons, through NVML. Nothing is ever set."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import ModuleType

_HARMLESS = ("GpuIdle", "ApplicationsClocksSetting", "UserDefinedClocks")
"""The last two are names of one reason: the clocks that somebody has set are kept to."""


@dataclass(frozen=True)
class DeviceState:
    """The state of a device at one moment.

    Attributes
    ----------
    sm_clock : float
        Clock of the multiprocessors in hertz.
    memory_clock : float
        Clock of the memory in hertz.
    temperature : float
        Degrees Celsius.
    throttle_reasons : tuple of str
        What slows the device down now, by NVML's names; idleness doesn't count.
    """

    sm_clock: float
    memory_clock: float
    temperature: float
    throttle_reasons: tuple[str, ...]


def read_state(pci_bus_id: str) -> DeviceState | None:
    """Read the state of the device at that place on the PCI bus.

    Returns
    -------
    DeviceState or None
        None where nvidia-ml-py isn't installed or NVML doesn't know the device.
    """
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
        reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        return DeviceState(
            sm_clock=pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM) * 1e6,
            memory_clock=pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM) * 1e6,
            temperature=float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
            throttle_reasons=_names(pynvml, reasons),
        )
    except pynvml.NVMLError:
        return None


def _names(pynvml: ModuleType, reasons: int) -> tuple[str, ...]:
    return tuple(name for name, bit in _reasons(pynvml) if reasons & bit)


@functools.cache
def _reasons(pynvml: ModuleType) -> tuple[tuple[str, int], ...]:
    """Names and bits of the reasons that this version of NVML knows."""
    prefix = "nvmlClocksThrottleReason"
    named = {
        n.removeprefix(prefix): v for n, v in sorted(vars(pynvml).items()) if n.startswith(prefix)
    }
    return tuple(
        (name, value)
        for name, value in named.items()
        if isinstance(value, int) and value and not value & (value - 1) and name not in _HARMLESS
    )
