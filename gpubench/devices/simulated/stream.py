"""Streams of a simulated GPU: each a queue, executed in order by a worker thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from gpubench.arguments import finite_number
from gpubench.devices.base import Event, Gate, Work
from gpubench.devices.simulated.events import (
    GRAPH_GAP,
    Kernel,
    Operation,
    Recording,
    Request,
    SimulatedEvent,
)
from gpubench.devices.simulated.gate import SimulatedGate
from gpubench.devices.simulated.memory import Buffer
from gpubench.errors import UnsupportedError

if TYPE_CHECKING:
    from gpubench.devices.simulated.device import SimulatedDevice

LAUNCH_GAP = 0.9e-6
"""Seconds between the end of one operation and the start of the kernel queued behind it."""

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
        self._requests: queue.SimpleQueue[Request | threading.Lock] = queue.SimpleQueue()
        self._is_working = threading.Lock()
        self._n_queued = self._n_done = 0
        self._captured: list[Request] | None = None
        self.barrier: SimulatedEvent | None = None  # the device's, as far as it is heeded here
        self._free_time = 0.0

    def __enter__(self) -> SimulatedStream:
        self.device.gpu.enter_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.device.gpu.leave_stream()

    def _submit(self, request: Request | threading.Lock) -> None:
        self._requests.put(request)
        if self._is_working.acquire(blocking=False):
            worker = threading.Thread(target=self._work, daemon=True, name=f"gpu {self.label}")
            try:
                worker.start()
            except BaseException:
                if worker.ident is None:  # Ctrl-C may also come when it works already
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
            if isinstance(request, Request):
                self._execute(request)
            else:
                request.release()

    def _execute(self, request: Request) -> None:
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
                kernels=tuple(kernel.name for kernel in request.kernels),
                durations=request.durations,
                correlation_id=request.correlation_id,
            )
        )
        request.finish()
        self._n_done += 1

    def queue(self, request: Request) -> None:
        """Queue a request; blocks, as a real GPU does, while the queue is full."""
        self.device.gpu.check_open()
        if self._captured is not None:
            self._captured.append(request)
            return
        if self.barrier is not self.device.barrier:
            self.barrier = self.device.barrier
            if self.barrier is not None:
                self.wait(self.barrier)
        while self._n_queued - self._n_done >= self.device.gpu.queue_depth:
            time.sleep(_FULL_QUEUE_POLL)
        self._n_queued += 1
        self._submit(request)

    def launch(self, duration: float, name: str = "kernel") -> None:
        """Queue a kernel that takes `duration` seconds."""
        seconds = finite_number("duration", duration, at_least=0)
        self._launch_kernel(Kernel(name, lambda: seconds))

    def read(self, buffer: Buffer, name: str = "read") -> None:
        """Queue a kernel that reads a buffer."""
        self._launch_kernel(Kernel(name, partial(self.device.l2.read, buffer)))

    def _launch_kernel(self, kernel: Kernel) -> None:
        self.device.gpu.compile(kernel.name)
        request = kernel_request(self.device, kernel.name, [kernel], lead=LAUNCH_GAP)
        self.launch_request("cudaLaunchKernel", request)

    def launch_request(self, call: str, request: Request) -> None:
        """Queue a request that runs kernels, by the call of that name."""
        source = self.device.gpu.source
        if source is None or self.is_capturing:
            self.queue(request)
            return
        with source.call(call) as request.correlation_id:
            request.queued_time = time.perf_counter()
            self.queue(request)

    def record(self, event: Event) -> None:
        """Queue `event` behind the work queued so far."""
        if not isinstance(event, SimulatedEvent):
            raise TypeError(f"a simulated stream can't record {event!r}")
        event.recordings = (self.mark(),)

    def mark(self) -> Recording:
        """Queue a recording behind the work queued so far, and return it."""
        recording = Recording(captured=self.is_capturing)
        self.queue(Request("event", recording.run, recording.happen))
        return recording

    def wait(self, event: SimulatedEvent) -> None:
        """Let work queued from now on wait until `event`, as it is recorded now, has happened."""
        recordings = event.recordings
        self.queue(Request("wait", lambda start: max([start, *(r.wait() for r in recordings)])))

    def hold(self, gate: Gate) -> None:
        """Let work queued from now on wait until `gate` opens."""
        if not isinstance(gate, SimulatedGate):
            raise TypeError(f"a simulated stream can't be held by {gate!r}")
        self.queue(Request("gate", gate.closing.wait))

    @property
    def is_idle(self) -> bool:
        """Whether everything queued here is done."""
        return self._n_done == self._n_queued

    @property
    def is_capturing(self) -> bool:
        """Whether work queued here is captured instead of run."""
        return self._captured is not None

    def synchronize(self) -> None:
        """Wait until all work queued so far is done."""
        if self.is_capturing:
            raise UnsupportedError("a stream can't be synchronized while it is being captured")
        if self.is_idle:
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

    def __init__(self, stream: SimulatedStream, requests: Sequence[Request]) -> None:
        self.stream = stream
        self._kernels = [kernel for request in requests for kernel in request.kernels]

    @property
    def is_empty(self) -> bool:
        """Whether no kernel was captured."""
        return not self._kernels

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The captured kernels' names."""
        return tuple(kernel.name for kernel in self._kernels)

    def launch(self) -> None:
        """Queue the captured kernels in one piece."""
        request = kernel_request(self.stream.device, "graph", self._kernels, gap=GRAPH_GAP)
        self.stream.launch_request("cudaGraphLaunch", request)


def kernel_request(
    device: SimulatedDevice,
    name: str,
    kernels: Sequence[Kernel],
    *,
    lead: float = 0.0,
    gap: float = 0.0,
) -> Request:
    """Return a request that runs kernels, `lead` seconds after it can, `gap` before each.

    Noise is drawn here, in the order of the launches; what cache and clock do to the kernels
    shows when they begin.
    """
    noise = [device.noisy(1.0) for _ in kernels]

    def run(start: float) -> float:
        moment = start + lead
        durations = []
        for kernel, factor in zip(kernels, noise, strict=True):
            durations.append(device.clock.duration(factor * kernel.seconds(), moment))
            moment += gap + durations[-1]
        request.durations = tuple(durations)
        request.duration = sum(durations) + gap * len(durations)
        return start + lead + request.duration

    request = Request(name, run, kernels=kernels)
    return request
