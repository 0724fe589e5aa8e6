"""As much of CuPy, the CUDA runtime and cuda-bindings as gpubench uses, with a clock set by hand.

Work takes device time and nothing else. What a real runtime refuses (an event of one device
recorded while another is current, a stream that is synchronized while it is captured) is refused
here too.
"""

import itertools
import sys
from collections import defaultdict
from types import ModuleType, SimpleNamespace

import numpy as np

PCI_BUS_ID = "FFFF:FF:1F.0"  # no machine has a device there
L2_BYTES = 50 << 20


class CUDARuntimeError(RuntimeError):
    """What the runtime raises; its text begins with the name of the error."""


class FakeCuda:
    """A machine with CUDA devices: how it is set up, and what was asked of it (`log`)."""

    def __init__(self):
        self.n_devices = 1
        self.driver_version = 13000
        self.device_error = None
        self.compile_error = None
        self.context_status = 0
        self.gates_expire = False
        self.l2_bytes = L2_BYTES
        self.pool_bytes = 0
        self.log = []
        self.device = 0
        self.current = {}  # the stream that is current on each device
        self.captured = {}  # seconds of work, by the stream that is being captured
        self.seconds = defaultdict(float)  # of device time, by device and stream
        self.events = {}
        self.pointers = itertools.count(1000)
        self.runtime = _runtime(self)
        self.cuda = _cuda(self)
        self.driver = _driver(self)

    def install(self, monkeypatch):
        """Make this what is imported as CuPy and as cuda-bindings."""
        cupy = _module(
            "cupy",
            __version__="14.0.0",
            cuda=self.cuda,
            RawModule=lambda code: _RawModule(self, code),
            get_default_memory_pool=lambda: SimpleNamespace(total_bytes=lambda: self.pool_bytes),
        )
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.setitem(sys.modules, "cupy.cuda", self.cuda)
        bindings = _module("cuda.bindings", driver=self.driver)
        monkeypatch.setitem(sys.modules, "cuda", _module("cuda", bindings=bindings))
        monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
        monkeypatch.setitem(sys.modules, "cuda.bindings.driver", self.driver)

    def stream(self):
        """The stream that is current on the current device."""
        return self.current.get(self.device, self.cuda.Stream.null)

    def work(self, seconds):
        """Do what a launched kernel does: take time on the current stream."""
        pointer = self.stream().ptr
        if pointer in self.captured:
            self.captured[pointer] += seconds
            return
        self.log.append(f"work on {pointer}")
        self.seconds[self.device, pointer] += seconds

    def align(self, device):
        """Let all streams of a device be equally far: they waited for each other."""
        latest = self.latest(device)
        for key in self.seconds:
            if key[0] == device:
                self.seconds[key] = latest

    def latest(self, device):
        return max((time for key, time in self.seconds.items() if key[0] == device), default=0.0)

    def record(self, event, pointer):
        owner, _ = self.events[event]
        if owner != self.device:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        self.log.append(f"record on {pointer}")
        self.events[event] = owner, self.seconds[self.device, pointer]

    def synchronize(self, what):
        if self.captured:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: not while capturing\nmore")
        self.log.append(f"synchronize {what}")


def _module(name, **attributes):
    module = ModuleType(name)
    vars(module).update(attributes)
    return module


def _runtime(machine):
    def device_count():
        if machine.device_error:
            raise CUDARuntimeError(machine.device_error)
        return machine.n_devices

    def elapsed(start, end):
        (_, begin), (_, finish) = machine.events[start], machine.events[end]
        return 1e3 * (finish - begin)

    return _module(
        "cupy.cuda.runtime",
        CUDARuntimeError=CUDARuntimeError,
        is_hip=False,
        hostAllocPortable=1,
        hostAllocMapped=2,
        driverGetVersion=lambda: machine.driver_version,
        runtimeGetVersion=lambda: 12090,
        getDeviceCount=device_count,
        getDevice=lambda: machine.device,
        setDevice=lambda device: setattr(machine, "device", device),
        getDeviceProperties=lambda device: {
            "name": b"Fake \xff GPU",
            "l2CacheSize": machine.l2_bytes,
            "totalGlobalMem": 80 << 30,
            "major": 9,
            "minor": 0,
        },
        deviceGetPCIBusId=lambda device: PCI_BUS_ID,
        eventRecord=machine.record,
        eventElapsedTime=elapsed,
        streamSynchronize=lambda pointer: machine.synchronize(pointer),
        streamIsCapturing=lambda pointer: pointer in machine.captured,
        deviceSynchronize=lambda: machine.synchronize(f"device {machine.device}"),
        memsetAsync=lambda pointer, value, size, stream: machine.log.append(f"memset {size}"),
    )


def _cuda(machine):
    class Device:
        def __init__(self, number):
            self._number = number

        def __enter__(self):
            self._before, machine.device = machine.device, self._number

        def __exit__(self, *_):
            machine.device = self._before

    class Event:
        def __init__(self):
            self.ptr = next(machine.pointers)
            machine.events[self.ptr] = machine.device, None

    class Stream:
        def __init__(self, non_blocking=False):
            self.ptr = next(machine.pointers) if non_blocking else 0
            self._device = machine.device
            machine.seconds[self._device, self.ptr] += 0.0

        def __enter__(self):
            self._before = machine.stream()
            return self.use()

        def __exit__(self, *_):
            machine.current[self._device] = self._before

        def use(self):
            machine.current[machine.device] = self
            return self

        def synchronize(self):
            machine.synchronize(self.ptr)

        def begin_capture(self):
            machine.captured[self.ptr] = 0.0

        def end_capture(self):
            return _Graph(machine, self._device, machine.captured.pop(self.ptr))

    class PinnedMemoryPointer(bytearray):
        def __init__(self, memory, offset):
            super().__init__(memory.size)
            self.ptr = next(machine.pointers)
            machine.flags = np.frombuffer(self, np.uint32)

    Stream.null = Stream()
    return _module(
        "cupy.cuda",
        runtime=machine.runtime,
        driver=SimpleNamespace(ctxGetCurrent=lambda: machine.device),
        pinned_memory=SimpleNamespace(PinnedMemoryPointer=PinnedMemoryPointer),
        PinnedMemory=lambda size, flags: SimpleNamespace(size=size, flags=flags),
        Memory=lambda size: SimpleNamespace(ptr=next(machine.pointers), size=size),
        Device=Device,
        Event=Event,
        Stream=Stream,
        get_current_stream=lambda device=None: machine.current.get(
            machine.device if device is None else device, Stream.null
        ),
    )


def _driver(machine):
    def record(context, event):
        if not machine.context_status:
            machine.log.append("record on every stream")
            machine.events[event] = context, machine.latest(context)
        return (machine.context_status,)

    def wait(context, event):
        machine.log.append("hold every stream")
        machine.align(context)
        return (machine.context_status,)

    return _module(
        "cuda.bindings.driver",
        CUcontext=int,
        CUevent=int,
        CUgraph=int,
        cuCtxRecordEvent=record,
        cuCtxWaitEvent=wait,
        cuGraphGetNodes=lambda graph, n: (0, [], graph),  # the handle is the number of nodes
    )


class _Graph:
    def __init__(self, machine, device, seconds):
        self.graph = 1 if seconds else 0
        self._machine = machine
        self._device = device
        self._seconds = seconds

    def launch(self, stream):
        self._machine.log.append(f"launch graph on {stream.ptr}")
        self._machine.seconds[self._device, stream.ptr] += self._seconds


class _RawModule:
    def __init__(self, machine, code):
        self._machine = machine
        self._code = code

    def get_function(self, name):
        if self._machine.compile_error:
            raise RuntimeError(self._machine.compile_error)
        if f"void {name}(" not in self._code:
            raise CUDARuntimeError(f"CUDA_ERROR_NOT_FOUND: {name}")
        return SimpleNamespace(kernel=_Kernel(self._machine, name))


class _Kernel:
    def __init__(self, machine, name):
        self._machine = machine
        self._name = name
        self._device = machine.device

    def linear_launch(self, size, args, block_max_size=128, stream=None):
        if self._device != self._machine.device:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        self._machine.log.append(f"{self._name} on {stream.ptr}")
        if self._name == "hold" and self._machine.gates_expire:
            self._machine.flags[1] = args[1]
