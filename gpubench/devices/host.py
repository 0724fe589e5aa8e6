"""The platform of a machine without a GPU: no devices, and the reason why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpubench.devices.base import ActivitySource, Device, Gate, Work
from gpubench.errors import UnsupportedError


@dataclass(frozen=True)
class HostPlatform:
    """No GPU.

    Attributes
    ----------
    reason : str
        Why there is none, in words that end with what to do about it.
    """

    reason: str
    name: str = "host"

    def device_count(self) -> int:
        """Return 0."""
        return 0

    def current_device(self) -> int:
        """Raise `UnsupportedError`: there is no device."""
        raise UnsupportedError(f"no GPU found: {self.reason}")

    def device(self, device_id: int) -> Device:
        """Raise `UnsupportedError`: there is no device."""
        raise UnsupportedError(f"no GPU {device_id}: {self.reason}")

    def drain(self) -> None:
        """Do nothing: there is no device to wait for."""

    def gate(self) -> Gate:
        """Raise `UnsupportedError`: there is no stream to hold."""
        raise UnsupportedError(f"no GPU found: {self.reason}")

    def activity_source(self) -> ActivitySource:
        """Raise `UnsupportedError`: there is no device to record."""
        raise UnsupportedError(f"no GPU found: {self.reason}")

    @contextmanager
    def preserved(self) -> Iterator[Work]:
        """Do nothing: the host has no current device to restore."""
        yield lambda: None
