"""Where something is measured: what can do one thing at a time undisturbed."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.devices import current_platform


@dataclass(frozen=True)
class Place:
    """A GPU of a host, or the CPUs of one that has no GPU.

    Attributes
    ----------
    host : str
        The host's name.
    gpu : str
        The GPU's UUID, or its address on the PCI bus where that is unknown; empty for the CPUs.
    gpu_name : str
        The vendor's name of the GPU; empty for the CPUs.
    """

    host: str
    gpu: str = ""
    gpu_name: str = ""

    def __str__(self) -> str:
        device = f"{self.gpu_name} {self.gpu}".strip() or "CPU"
        return f"{self.host}, {device}" if self.host else device


def this_place() -> Place:
    """Return where this process measures: on its current GPU, if there is one."""
    used = current_platform()
    if not used.device_count():
        return Place(platform.node())
    properties = used.device(used.current_device()).properties
    return Place(platform.node(), properties.uuid or properties.pci_bus_id, properties.name)


def places_of(environment: Mapping[str, Any]) -> tuple[Place, ...]:
    """Return where something was measured, by its environment: a place for each device."""
    host, devices = str(environment.get("host") or ""), environment.get("devices")
    return tuple(
        Place(
            host,
            str(device.get("uuid") or device.get("pci_bus_id") or ""),
            str(device.get("name") or ""),
        )
        for device in (devices if isinstance(devices, (list, tuple)) else ())
        if isinstance(device, Mapping)
    ) or (Place(host),)
