"""A GPU in miniature, for tests and for teaching without a GPU.

Each stream has a worker thread that executes the stream's queue in order. Device time is the
host's `time.perf_counter`, but it is *modelled*: an operation begins at the latest of the time
at which the stream became free and the time at which the operation arrived (its queueing time
plus the launch latency), and ends a known duration later. The worker then sleeps until that
moment, so that the host really runs ahead and really has to wait, while what events report
doesn't depend on how soon the operating system woke a thread.
"""

from __future__ import annotations

import functools
import itertools
import math
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from weakref import WeakSet

from gpubench.arguments import finite_number, whole_number
from gpubench.devices.base import GATE_DEADLINE, DeviceProperties, Event, Gate, Work
from gpubench.errors import ArgumentError, UnsupportedError

EVENT_TIME = 1.25e-6
"""Seconds between two events recorded one behind the other, as on an H200."""

LAUNCH_GAP = 0.9e-6
"""Seconds between the end of one operation and the start of the kernel queued behind it."""

GRAPH_GAP = 0.5e-6
"""Seconds between two kernels of a graph."""

_active: list[SimulatedGpu] = []


def active() -> SimulatedGpu | None:
    """Return the simulated GPU whose ``with`` block was entered last, if any."""
    return _active[-1] if _active else None


@dataclass(frozen=True)
class Operation:
    """One thing that a simulated stream did; times in seconds of `time.perf_counter`.

    Attributes
    ----------
    name : str
        The kernel's name, or ``"event"``, ``"gate"``, ``"wait"``, ``"flush"``.
    device, stream : int
        Where it ran; stream 0 is the device's default stream.
    queued_time, start_time, end_time : float
        When the host queued it, when the device began with it, and when it was done.
    kernels : tuple of str
        The names of the kernels that ran; more than one in a graph, none in an event.
    """

    name: str
    device: int
    stream: int
    queued_time: float
    start_time: float
    end_time: float
    kernels: tuple[str, ...] = ()


@dataclass
class _Request:
    """A queued operation: `run` takes the time at which it can begin and returns its end.

    Only kernels, and graphs of them, have a `duration` and the names of `kernels`.
    """

    name: str
    run: Callable[[float], float]
    finish: Work = lambda: None
    duration: float | None = None
    kernels: tuple[str, ...] = ()
    queued_time: float = field(default_factory=time.perf_counter)


class _Recording:
    """One recording of an event on one stream: what waits for it keeps to this one."""

    def __init__(self, *, captured: bool) -> None:
        self._captured = captured
        self._pending = threading.Lock()
        self._pending.acquire()
        self._moment = math.nan

    def run(self, start: float) -> float:
        """Be reached by the stream at `start`."""
        self._moment = start
        return start + EVENT_TIME

    def happen(self) -> None:
        """Let go whoever waits."""
        self._pending.release()

    def wait(self) -> float:
        """Block until the stream has been here, and return when that was."""
        if self._captured:
            raise UnsupportedError("an event recorded while capturing has no time of its own")
        with self._pending:
            return self._moment


class SimulatedEvent:
    """An event: the device time at which its stream reached it, cut to the clock's step.

    Attributes
    ----------
    recordings : sequence of _Recording
        The last one, on each stream that it was made on; the event is the latest of them.
    """

    def __init__(self, clock_step: float) -> None:
        self._clock_step = clock_step
        self.recordings: Sequence[_Recording] = ()

    def seconds_since(self, earlier: Event) -> float:
        """Device time since `earlier`, in seconds."""
        if not isinstance(earlier, SimulatedEvent):
            raise TypeError(f"a simulated event can't be compared with {earlier!r}")
        return (self._step() - earlier._step()) * self._clock_step

    def _step(self) -> int:
        if not self.recordings:
            raise UnsupportedError("an event has no time before it is recorded")
        moment = max(recording.wait() for recording in self.recordings)
        return math.floor(moment / self._clock_step)


class _Closing:
    """One closing of a gate: what the streams held by it wait for."""

    def __init__(self, gate: SimulatedGate, number: int) -> None:
        self._gate = gate
        self._number = number
        self.opened = threading.Event()
        self.opened_time = math.inf

    def wait(self, begin: float) -> float:
        """Block a worker from `begin` until the host opens or the deadline passes."""
        deadline = begin + GATE_DEADLINE
        self.opened.wait(max(0.0, deadline - time.perf_counter()))
        if self.opened_time <= deadline:
            return max(begin, self.opened_time)
        self._gate.last_expired = max(self._gate.last_expired, self._number)
        return deadline


class SimulatedGate:
    """A gate that any number of simulated streams can be held by.

    That it has been opened takes as long to reach the device as a launch does.
    """

    def __init__(self, launch_latency: float) -> None:
        self.last_expired = 0
        self._launch_latency = launch_latency
        self._n_closings = 0
        self.close()
        self.open()

    def close(self) -> int:
        """Close the gate for the streams that are held from now on."""
        self._n_closings += 1
        self.closing = _Closing(self, self._n_closings)
        return self._n_closings

    def open(self) -> None:
        """Release every stream that the gate holds."""
        if not self.closing.opened.is_set():
            self.closing.opened_time = time.perf_counter() + self._launch_latency
            self.closing.opened.set()

    def has_expired(self, closing: int) -> bool:
        """Whether the deadline released a stream held at that closing or a later one."""
        return self.last_expired >= closing


_IDLE_TIME = 0.1
"""Seconds after which the worker of a stream that has nothing to do ends, until it has again."""

_FULL_QUEUE_POLL = 50e-6


class SimulatedStream:
    """A queue with a worker thread. Make it current with ``with stream:``."""

    def __init__(self, device: SimulatedDevice, number: int) -> None:
        self.device = device
        self.number = number
        self.label = "the default stream" if number == 0 else f"stream {number}"
        # A queue and locks in C, which Ctrl-C in the main thread can't leave half-way.
        self._requests: queue.SimpleQueue[_Request | threading.Lock] = queue.SimpleQueue()
        self._is_working = threading.Lock()
        self._n_queued = self._n_done = 0
        self._captured: list[_Request] | None = None
        self._free_time = 0.0

    def __enter__(self) -> SimulatedStream:
        self.device.gpu.enter_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.device.gpu.leave_stream()

    def _submit(self, request: _Request | threading.Lock) -> None:
        self._requests.put(request)
        if self._is_working.acquire(blocking=False):
            try:
                threading.Thread(target=self._work, daemon=True, name=f"gpu {self.label}").start()
            except BaseException:
                self._is_working.release()
                raise

    def _work(self) -> None:
        while True:
            try:
                request = self._requests.get(timeout=_IDLE_TIME)
            except queue.Empty:
                self._is_working.release()
                if self._requests.empty() or not self._is_working.acquire(blocking=False):
                    return
                continue
            if isinstance(request, _Request):
                self._execute(request)
            else:
                request.release()

    def _execute(self, request: _Request) -> None:
        gpu = self.device.gpu
        start = max(self._free_time, request.queued_time + gpu.launch_latency)
        end = self._free_time = request.run(start)
        ahead = end - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)
        begin = start if request.duration is None else end - request.duration
        gpu.history.append(
            Operation(
                name=request.name,
                device=self.device.id,
                stream=self.number,
                queued_time=request.queued_time,
                start_time=begin,
                end_time=end,
                kernels=request.kernels,
            )
        )
        request.finish()
        self._n_done += 1

    def queue(self, request: _Request) -> None:
        """Queue a request; blocks, as a real GPU does, while the queue is full."""
        self.device.gpu.check_open()
        if self._captured is not None:
            self._captured.append(request)
            return
        while self._n_queued - self._n_done >= self.device.gpu.queue_depth:
            time.sleep(_FULL_QUEUE_POLL)
        self._n_queued += 1
        self._submit(request)

    def launch(self, duration: float, name: str = "kernel") -> None:
        """Queue a kernel that takes `duration` seconds."""
        duration = self.device.noisy(finite_number("duration", duration, at_least=0))
        run = lambda start: start + LAUNCH_GAP + duration  # noqa: E731
        self.queue(_Request(name, run, duration=duration, kernels=(name,)))

    def record(self, event: Event) -> None:
        """Queue `event` behind the work queued so far."""
        if not isinstance(event, SimulatedEvent):
            raise TypeError(f"a simulated stream can't record {event!r}")
        event.recordings = (self.mark(),)

    def mark(self) -> _Recording:
        """Queue a recording behind the work queued so far, and return it."""
        recording = _Recording(captured=self.is_capturing)
        self.queue(_Request("event", recording.run, recording.happen))
        return recording

    def wait(self, event: SimulatedEvent) -> None:
        """Let work queued from now on wait until `event`, as it is recorded now, has happened."""
        recordings = event.recordings
        self.queue(_Request("wait", lambda start: max([start, *(r.wait() for r in recordings)])))

    def hold(self, gate: Gate) -> None:
        """Let work queued from now on wait until `gate` opens."""
        if not isinstance(gate, SimulatedGate):
            raise TypeError(f"a simulated stream can't be held by {gate!r}")
        self.queue(_Request("gate", gate.closing.wait))

    @property
    def is_capturing(self) -> bool:
        """Whether work queued here is captured instead of run."""
        return self._captured is not None

    def synchronize(self) -> None:
        """Wait until all work queued so far is done."""
        if self.is_capturing:
            raise UnsupportedError("a stream can't be synchronized while it is being captured")
        if self._n_done == self._n_queued:
            return
        reached = threading.Lock()
        reached.acquire()
        self._submit(reached)
        reached.acquire()

    def capture(self, work: Work) -> SimulatedGraph:
        """Collect what `work` queues here instead of running it."""
        self._captured = []
        try:
            with self:
                work()
            return SimulatedGraph(self, self._captured)
        finally:
            self._captured = None


class SimulatedGraph:
    """Captured requests, launched as one."""

    def __init__(self, stream: SimulatedStream, requests: Sequence[_Request]) -> None:
        self.stream = stream
        self._durations = [r.duration for r in requests if r.duration is not None]
        self.kernel_names = tuple(name for request in requests for name in request.kernels)

    @property
    def is_empty(self) -> bool:
        """Whether no kernel was captured."""
        return not self._durations

    def launch(self) -> None:
        """Queue the captured kernels in one piece."""
        device = self.stream.device
        total = sum(device.noisy(duration) + GRAPH_GAP for duration in self._durations)
        run = lambda start: start + total  # noqa: E731
        self.stream.queue(_Request("graph", run, duration=total, kernels=self.kernel_names))


class _EveryStream:
    """All streams of a device, those made later included."""

    label = "every stream"

    def __init__(self, device: SimulatedDevice) -> None:
        self.device = device
        self._holder = device.create_stream()

    def record(self, event: Event) -> None:
        """Queue `event` behind the work queued so far on any stream."""
        if not isinstance(event, SimulatedEvent):
            raise TypeError(f"a simulated stream can't record {event!r}")
        event.recordings = [stream.mark() for stream in list(self.device.streams)]

    def hold(self, gate: Gate) -> None:
        """Let work queued on any stream from now on wait until `gate` opens."""
        self._holder.hold(gate)
        released = self.device.create_event()
        self._holder.record(released)
        self.device.barrier = released
        for stream in list(self.device.streams):
            stream.wait(released)

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
        if self.barrier is not None:
            stream.wait(self.barrier)
        self.streams.add(stream)
        return stream

    def create_event(self) -> SimulatedEvent:
        """Make an event that any stream of this device can record."""
        return SimulatedEvent(self.gpu.clock_step)

    def current_streams(self) -> Sequence[SimulatedStream]:
        """The stream that is current in this thread."""
        return (self.gpu.current_stream(self.id),)

    @functools.cached_property
    def _all_streams(self) -> _EveryStream:
        return _EveryStream(self)

    def every_stream(self) -> _EveryStream:
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
        for device in self._devices:
            device.synchronize()

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


simulated_gpu = SimulatedGpu
