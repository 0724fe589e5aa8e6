"""The current device's clock, read without making the host wait."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from gpubench.devices import current_platform, simulated
from gpubench.devices.base import Device, Event, Platform
from gpubench.devices.primary_contexts import devices_with_context


class GpuClock:
    """Events on the streams that are current, on the device that is current, when it is made.

    Parameters
    ----------
    platform, device : Platform, Device
        The current ones.
    """

    def __init__(self, platform: Platform, device: Device) -> None:
        self._platform = platform
        self._device = device
        self._streams = device.current_streams()

    def now(self) -> Moment | None:
        """Return the moment when the device will be done with what is queued.

        None if a stream is being captured to a graph, where an event has no time.
        """
        if any(stream.is_capturing for stream in self._streams):
            return None
        events = tuple(self._device.create_event() for _ in self._streams)
        with self._platform.preserved():  # recording makes the device current
            for stream, event in zip(self._streams, events, strict=True):
                stream.record(event)
        return Moment(self, events)

    def wait(self) -> None:
        """Wait until every moment taken so far has happened."""
        with self._platform.preserved():
            self._device.synchronize()


@dataclass(frozen=True)
class Moment:
    """One reading of a `GpuClock`.

    Attributes
    ----------
    clock : GpuClock
        The clock.
    events : tuple of Event
        One on each of its streams.
    """

    clock: GpuClock
    events: tuple[Event, ...]

    def seconds_since(self, earlier: Moment) -> float:
        """Wait until both have happened, and return the seconds between them.

        Of several streams, those of the one on which it was longest: one that idles counts only
        what the host did meanwhile.
        """
        self.clock.wait()
        return max(
            end.seconds_since(begin) for begin, end in zip(earlier.events, self.events, strict=True)
        )


def current_clock() -> GpuClock | None:
    """Return the clock of the current device; None if this process doesn't use it yet."""
    found = _device_in_use()
    return GpuClock(*found) if found else None


def wait_for_gpus() -> None:
    """Wait until every device that this process uses is idle."""
    platform = _platform_in_use()
    if platform is not None:
        with platform.preserved():
            platform.drain()


def _device_in_use() -> tuple[Platform, Device] | None:
    """Return the current device with its platform; None if this process doesn't use it yet."""
    platform = _platform_in_use()
    if platform is None:
        return None
    number = platform.current_device()
    used = devices_with_context() if platform.name == "cuda" else None
    return None if used is not None and number not in used else (platform, platform.device(number))


def _platform_in_use() -> Platform | None:
    """Return the current platform; None if this process doesn't use any of its devices yet."""
    if simulated.active() is None:
        used = devices_with_context()
        if not used and (used is not None or "cupy" not in sys.modules):
            return None
    platform = current_platform()
    return platform if platform.device_count() else None
