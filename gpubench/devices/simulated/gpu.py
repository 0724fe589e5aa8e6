"""Simulated devices, and the GPU that holds them."""

from __future__ import annotations

import functools
import itertools
import math
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import TracebackType
from weakref import WeakSet

from gpubench.arguments import finite_number, whole_number
from gpubench.devices.base import DeviceProperties, Event, Gate, Work
from gpubench.devices.simulated.events import Operation, SimulatedEvent
from gpubench.devices.simulated.gate import SimulatedGate
from gpubench.devices.simulated.source import SimulatedSource
from gpubench.devices.simulated.stream import SimulatedGraph, SimulatedStream
from gpubench.errors import ArgumentError, UnsupportedError

_active: list[SimulatedGpu] = []


def active() -> SimulatedGpu | None:
    """Return the simulated GPU whose ``with`` block was entered last, if any."""
    return _active[-1] if _active else None


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
        self.properties = DeviceProperties("simulated GPU", l2_bytes=50_000_000)
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

    def record_kernels(self, work: Work) -> tuple[str, ...]:
        """Run `work` and name the kernels that ran, by the history."""
        self.synchronize()
        begin = len(self.gpu.history)
        work()
        self.synchronize()
        ran = [op for op in self.gpu.history[begin:] if op.device == self.id]
        ran.sort(key=lambda op: op.queued_time)
        return tuple(name for op in ran for name in op.kernels)

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
        """Lend a function that passes the time of a flush."""

        def flush() -> None:
            self.default_stream.launch(20e-6, "flush")
            self.synchronize()

        yield flush


class SimulatedGpu:
    """A GPU to launch kernels of known duration on; current inside its ``with`` block.

    `gpubench.simulated_gpu` is the public name. Inside the block, `benchmark` measures on it.

    Parameters
    ----------
    n_devices : int
        How many devices there are.
    launch_latency : float
        Seconds from a launch on the host until an idle device can begin with it.
    clock_step : float
        Seconds between the values that events can have.
    jitter : float
        Relative standard deviation of kernels' durations.
    correlation : float
        Lag-1 autocorrelation of the jitter, from 0 to below 1.
    drift : float
        Relative growth of kernels' durations per second.
    queue_depth : int
        How many operations a stream holds before a launch blocks.
    seed : int
        Seed of the jitter.

    Attributes
    ----------
    history : list of Operation
        What the streams did, in the order in which it ended.

    Examples
    --------
    >>> import gpubench
    >>> with gpubench.simulated_gpu(jitter=0) as gpu:
    ...     result = gpubench.benchmark(gpu.launch, (50e-6,), n_repeat=10)
    >>> 50e-6 < result.gpu[0].median < 53e-6
    True
    """

    name = "simulated"

    def __init__(
        self,
        *,
        n_devices: int = 1,
        launch_latency: float = 4e-6,
        clock_step: float = 32e-9,
        jitter: float = 0.01,
        correlation: float = 0.0,
        drift: float = 0.0,
        queue_depth: int = 1024,
        seed: int = 0,
    ) -> None:
        self.launch_latency = finite_number("launch_latency", launch_latency, at_least=0)
        self.clock_step = finite_number("clock_step", clock_step, above=0)
        self.jitter = finite_number("jitter", jitter, at_least=0)
        self.correlation = finite_number("correlation", correlation, at_least=0)
        if self.correlation >= 1:
            raise ArgumentError(f"correlation must be below 1, got {correlation!r}")
        self.drift = finite_number("drift", drift)
        self.queue_depth = whole_number("queue_depth", queue_depth, at_least=1)
        self.seed = whole_number("seed", seed, at_least=0)
        self.history: list[Operation] = []
        self.source: SimulatedSource | None = None
        self._is_closed = False
        self._local = threading.local()
        self._devices = [
            SimulatedDevice(self, i)
            for i in range(whole_number("n_devices", n_devices, at_least=1))
        ]

    def __enter__(self) -> SimulatedGpu:
        self.check_open()
        if self in _active:
            raise UnsupportedError("this simulated GPU is in use already; make another one")
        _active.append(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _active.remove(self)
        self._is_closed = True
        self.drain()

    def check_open(self) -> None:
        """Raise `UnsupportedError` after the ``with`` block."""
        if self._is_closed:
            raise UnsupportedError("this simulated GPU is closed; work inside its with block")

    def launch(self, duration: float, name: str = "kernel") -> None:
        """Queue a kernel of `duration` seconds on the current stream, and return at once."""
        self.current_stream(self.current_device()).launch(duration, name)

    def stream(self) -> SimulatedStream:
        """Make a stream on the current device, independent of all others."""
        return self.device(self.current_device()).create_stream()

    def synchronize(self) -> None:
        """Wait until the current device is idle."""
        with self.source.call("cudaDeviceSynchronize") if self.source else nullcontext():
            self.device(self.current_device()).synchronize()

    def use_device(self, device_id: int) -> None:
        """Make a device current in this thread."""
        number = whole_number("device_id", device_id, at_least=0)
        if number >= len(self._devices):
            raise ArgumentError(
                f"device_id must be below {len(self._devices)}, the number of devices, "
                f"got {device_id!r}"
            )
        self._local.device = number

    def device_count(self) -> int:
        """How many devices there are."""
        return len(self._devices)

    def current_device(self) -> int:
        """Id of the device that is current in this thread."""
        return int(getattr(self._local, "device", 0))

    def device(self, device_id: int) -> SimulatedDevice:
        """Return the device with that id."""
        return self._devices[device_id]

    def gate(self) -> SimulatedGate:
        """Return a gate, open."""
        return SimulatedGate(self.launch_latency)

    def drain(self) -> None:
        """Wait until every device is idle."""
        for device in self._devices:
            device.synchronize()

    def activity_source(self) -> SimulatedSource:
        """Open a source of activity records."""
        self.check_open()
        if self.source is not None:
            raise UnsupportedError("activities of this simulated GPU are being recorded already")
        return SimulatedSource(self)

    @contextmanager
    def preserved(self) -> Iterator[Work]:
        """Restore the current device and stream on exit."""
        home = self.current_device()
        streams = list(self._streams())
        try:
            yield lambda: self.use_device(home)
        finally:
            self.use_device(home)
            self._local.streams = streams

    def _streams(self) -> list[SimulatedStream]:
        if not hasattr(self._local, "streams"):
            self._local.streams = []
        entered: list[SimulatedStream] = self._local.streams
        return entered

    def enter_stream(self, stream: SimulatedStream) -> None:
        """Make `stream` current in this thread until `leave_stream`."""
        self._streams().append(stream)

    def leave_stream(self) -> None:
        """Make the stream current again that was so before."""
        self._streams().pop()

    def current_stream(self, device_id: int) -> SimulatedStream:
        """Return the stream of a device that is current in this thread."""
        for stream in reversed(self._streams()):
            if stream.device.id == device_id:
                return stream
        return self.device(device_id).default_stream
