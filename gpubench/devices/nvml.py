"""A device's clocks, temperature, power and throttle reasons, through NVML. Nothing is ever set."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from gpubench.errors import UnsupportedError

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
    thermal_margin : float or None
        Degrees Celsius that are left until it is slowed down for its heat; None if unknown.
    """

    sm_clock: float
    memory_clock: float
    temperature: float
    throttle_reasons: tuple[str, ...]
    thermal_margin: float | None = None


class Sensors:
    """What NVML tells of one device; each method asks it anew.

    All of them raise `UnsupportedError` where this device or driver doesn't tell.
    """

    def __init__(self, nvml: ModuleType, handle: object) -> None:
        self._nvml = nvml
        self._handle = handle

    def driver(self) -> str:
        """Version of the driver."""
        version = _ask(self._nvml, "nvmlSystemGetDriverVersion")
        return version.decode() if isinstance(version, bytes) else str(version)

    def uuid(self) -> str:
        """Identifies the physical device anywhere."""
        uuid = self._read("nvmlDeviceGetUUID")
        return uuid.decode() if isinstance(uuid, bytes) else str(uuid)

    def sm_clock(self) -> float:
        """Clock of the multiprocessors in hertz."""
        return float(self._read("nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_SM)) * 1e6

    def memory_clock(self) -> float:
        """Clock of the memory in hertz."""
        return float(self._read("nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_MEM)) * 1e6

    def temperature(self) -> float:
        """Degrees Celsius."""
        return float(self._read("nvmlDeviceGetTemperature", self._nvml.NVML_TEMPERATURE_GPU))

    def thermal_margin(self) -> float:
        """Degrees Celsius that are left until the nearest threshold of a thermal slowdown."""
        try:
            return float(self._read("nvmlDeviceGetMarginTemperature"))
        except UnsupportedError:  # older drivers tell the threshold instead
            threshold = self._read(
                "nvmlDeviceGetTemperatureThreshold", self._nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
            )
            return float(threshold) - self.temperature()

    def power(self) -> float:
        """Watts that the board draws; from Ampere on (GA100 excepted) the mean of a second."""
        return float(self._read("nvmlDeviceGetPowerUsage")) * 1e-3

    def energy(self) -> float:
        """Joules that the board has drawn since the driver was loaded."""
        return float(self._read("nvmlDeviceGetTotalEnergyConsumption")) * 1e-3

    def memory_used_bytes(self) -> int:
        """Bytes of its memory that are in use, by any process or by the driver."""
        return int(self._read("nvmlDeviceGetMemoryInfo").used)

    def throttle_reasons(self) -> tuple[str, ...]:
        """What slows the device down now, by NVML's names; idleness doesn't count."""
        reasons = self._read("nvmlDeviceGetCurrentClocksThrottleReasons")
        return tuple(name for name, bit in _reasons(self._nvml) if reasons & bit)

    def _read(self, function: str, *args: object) -> Any:
        return _ask(self._nvml, function, self._handle, *args)


def find_sensors(pci_bus_id: str) -> Sensors:
    """Return the sensors of the device at that place on the PCI bus.

    Raises
    ------
    UnsupportedError
        If nvidia-ml-py isn't installed or NVML doesn't know the device; the message says which.
    """
    try:
        import pynvml
    except ImportError:
        raise UnsupportedError("nvidia-ml-py is not installed: pip install nvidia-ml-py") from None
    if not pci_bus_id:
        raise UnsupportedError("the device is not on the PCI bus, so NVML doesn't know it")
    _ask(pynvml, "nvmlInit")
    handle = _ask(pynvml, "nvmlDeviceGetHandleByPciBusId", pci_bus_id.encode())
    return Sensors(pynvml, handle)


def read_state(pci_bus_id: str) -> DeviceState | None:
    """Read the state of the device at that place on the PCI bus.

    Returns
    -------
    DeviceState or None
        None where nvidia-ml-py isn't installed or NVML doesn't know the device.
    """
    try:
        sensors = find_sensors(pci_bus_id)
        return DeviceState(
            sm_clock=sensors.sm_clock(),
            memory_clock=sensors.memory_clock(),
            temperature=sensors.temperature(),
            throttle_reasons=sensors.throttle_reasons(),
            thermal_margin=_thermal_margin(sensors),
        )
    except UnsupportedError:
        return None


def _thermal_margin(sensors: Sensors) -> float | None:
    try:
        return sensors.thermal_margin()
    except UnsupportedError:
        return None


def _ask(nvml: ModuleType, function: str, *args: object) -> Any:
    """Call one of NVML's functions."""
    ask = getattr(nvml, function, None)
    if ask is None:
        raise UnsupportedError(f"nvidia-ml-py has no {function}; upgrade it")
    try:
        return ask(*args)
    except nvml.NVMLError as error:
        raise UnsupportedError(f"{function} failed: {error}") from None


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
