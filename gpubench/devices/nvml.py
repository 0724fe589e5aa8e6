"""A device's clocks, temperature and throttle reasons, through NVML. Nothing is ever set."""

from __future__ import annotations

from dataclasses import dataclass

_HARMLESS = ("GpuIdle", "ApplicationsClocksSetting")


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


def _names(pynvml: object, reasons: int) -> tuple[str, ...]:
    prefix = "nvmlClocksThrottleReason"
    found = []
    for attribute in dir(pynvml):
        value = getattr(pynvml, attribute)
        name = attribute.removeprefix(prefix)
        single_bit = isinstance(value, int) and value and not value & (value - 1)
        if attribute.startswith(prefix) and single_bit and reasons & value:
            found.append(name)
    return tuple(name for name in found if name not in _HARMLESS)
