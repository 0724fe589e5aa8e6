"""The simulated GPU: its devices, and what a program asks of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import TracebackType

from gpubench.arguments import finite_number, whole_number
from gpubench.devices.base import Work
from gpubench.devices.simulated.device import SimulatedDevice
from gpubench.devices.simulated.events import Operation
from gpubench.devices.simulated.gate import SimulatedGate
from gpubench.devices.simulated.memory import Buffer
from gpubench.devices.simulated.source import SimulatedSource
from gpubench.devices.simulated.stream import SimulatedStream
from gpubench.errors import ArgumentError, UnsupportedError

_active: list[SimulatedGpu] = []


def active() -> SimulatedGpu | None:
    """Return the simulated GPU whose ``with`` block was entered last, if any."""
    return _active[-1] if _active else None


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
    clock : float
        Clock of a busy device, relative to the one for which kernels' durations are given: with
        0.5 they take twice as long.
    ramp_time : float
        Seconds of work in which the clock of an idle device rises to that; with 0 it never
        falls. A device is idle after 0.2 s without work.
    compile_time : float
        Seconds that the host spends on the first launch of each kernel, by its name.
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
        clock: float = 1.0,
        ramp_time: float = 0.0,
        compile_time: float = 0.0,
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
        self.clock = finite_number("clock", clock, above=0)
        self.ramp_time = finite_number("ramp_time", ramp_time, at_least=0)
        self.compile_time = finite_number("compile_time", compile_time, at_least=0)
        self.queue_depth = whole_number("queue_depth", queue_depth, at_least=1)
        self.seed = whole_number("seed", seed, at_least=0)
        self.history: list[Operation] = []
        self.source: SimulatedSource | None = None
        self._compiled: set[str] = set()
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

    def buffer(self, n_bytes: int) -> Buffer:
        """Return memory of that size, for `read`."""
        return Buffer(whole_number("n_bytes", n_bytes, at_least=1))

    def read(self, buffer: Buffer, name: str = "read") -> None:
        """Queue a kernel that reads a buffer, sooner if it is in the L2 cache, and return at once.

        The cache has 50 MB, and evicts what was read longest ago.
        """
        self.current_stream(self.current_device()).read(buffer, name)

    def compile(self, kernel: str) -> None:
        """Spend the time of a kernel's first launch, unless it has been launched before."""
        if self.compile_time and kernel not in self._compiled:
            self._compiled.add(kernel)
            with self.source.call("cuModuleLoadData") if self.source else nullcontext():
                time.sleep(self.compile_time)

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
