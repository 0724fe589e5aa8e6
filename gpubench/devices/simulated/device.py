"""One simulated device, and all its streams as one."""

from __future__ import annotations

import functools
import itertools
import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from gpubench.devices.base import DeviceProperties, Event, Gate, Work
from gpubench.devices.simulated.clock import Clock
from gpubench.devices.simulated.events import SimulatedEvent
from gpubench.devices.simulated.memory import Buffer, L2Cache
from gpubench.devices.simulated.stream import SimulatedGraph, SimulatedStream

if TYPE_CHECKING:
    from gpubench.devices.simulated.gpu import SimulatedGpu

L2_BYTES = 50_000_000
"""Size of a device's L2 cache."""


class EveryStream:
    """All streams of a device, those made later included."""

    label = "every stream"
    is_capturing = False

    def __init__(self, device: SimulatedDevice) -> None:
        self.device = device
        self._holder = device.create_stream()

    def record(self, event: Event) -> None:
        """Queue `event` behind the work queued so far on any stream.

        What idle streams are given later begins after the event.
        """
        if not isinstance(event, SimulatedEvent):
            raise TypeError(f"a simulated stream can't record {event!r}")
        busy = {self._holder, *(s for s in list(self.device.streams) if not s.is_idle)}
        event.recordings = [stream.mark() for stream in busy]
        self.device.barrier = event
        for stream in busy:
            stream.barrier = event

    def hold(self, gate: Gate) -> None:
        """Let work queued on any stream from now on wait until `gate` opens."""
        self._holder.hold(gate)
        released = self.device.create_event()
        self._holder.record(released)
        self._holder.barrier = self.device.barrier = released

    def synchronize(self) -> None:
        """Wait until every stream of the device is idle."""
        self.device.synchronize()


class SimulatedDevice:
    """One simulated GPU."""

    def __init__(self, gpu: SimulatedGpu, device_id: int) -> None:
        self.gpu = gpu
        self.id = device_id
        self.properties = DeviceProperties(
            "simulated GPU", l2_bytes=L2_BYTES, uuid=f"simulated-{device_id}"
        )
        self.clock = Clock(gpu.clock, gpu.ramp_time)
        self.l2 = L2Cache(L2_BYTES)
        self.barrier: SimulatedEvent | None = None
        self.streams: WeakSet[SimulatedStream] = WeakSet()
        self._numbers = itertools.count()
        self.default_stream = self.create_stream()
        self._random = random.Random(f"{gpu.seed}/{device_id}")
        self._deviation = 0.0
        self._begin = time.perf_counter()

    def __repr__(self) -> str:
        return f"<SimulatedDevice {self.id}>"

    def noisy(self, duration: float) -> float:
        """Return `duration` with the device's jitter and drift.

        The jitter is a first-order autoregressive process: each kernel's relative deviation is
        ``correlation`` times the last one's plus fresh Gaussian noise, with the standard
        deviation ``jitter`` in the long run.
        """
        gpu = self.gpu
        fresh = gpu.jitter * math.sqrt(1.0 - gpu.correlation**2)
        noise = fresh * self._random.gauss(0.0, 1.0)
        self._deviation = gpu.correlation * self._deviation + noise
        drift = gpu.drift * (time.perf_counter() - self._begin)
        return max(0.0, duration * (1.0 + self._deviation + drift))

    def create_stream(self) -> SimulatedStream:
        """Make a stream that runs beside the others."""
        self.gpu.check_open()
        stream = SimulatedStream(self, next(self._numbers))
        self.streams.add(stream)
        return stream

    def create_event(self) -> SimulatedEvent:
        """Make an event that any stream of this device can record."""
        return SimulatedEvent(self.gpu.clock_step)

    def current_streams(self) -> Sequence[SimulatedStream]:
        """The stream that is current in this thread."""
        return (self.gpu.current_stream(self.id),)

    @functools.cached_property
    def _all_streams(self) -> EveryStream:
        return EveryStream(self)

    def every_stream(self) -> EveryStream:
        """All streams of the device, as one."""
        return self._all_streams

    def capture(self, work: Work) -> SimulatedGraph:
        """Capture what `work` queues on the current stream."""
        return self.create_stream().capture(work)

    def synchronize(self) -> None:
        """Wait until every stream of the device is idle."""
        for stream in list(self.streams):
            stream.synchronize()

    def launch_empty(self) -> None:
        """Queue a kernel that does nothing on the current stream."""
        self.gpu.current_stream(self.id).launch(0.0, "empty")

    def reserved_bytes(self) -> int:
        """Return 0: a simulated device has no memory."""
        return 0

    @contextmanager
    def cold_cache(self) -> Iterator[Work]:
        """Lend a function that reads twice what the L2 cache holds."""
        other_data = Buffer(2 * L2_BYTES)

        def flush() -> None:
            self.default_stream.read(other_data, "flush")
            self.synchronize()

        yield flush
