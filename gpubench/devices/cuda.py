"""CUDA devices, through CuPy and, for what CuPy lacks, the driver API of cuda-bindings."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from uuid import UUID

import numpy as np

from gpubench.devices.base import GATE_DEADLINE, DeviceProperties, Event, Gate, Stream, Work
from gpubench.devices.cuda_gate import CudaGate, kernels
from gpubench.devices.cupti_source import CuptiSource
from gpubench.devices.driver import driver_api, graph_kernel_names, graph_size
from gpubench.devices.nvml import find_sensors
from gpubench.devices.primary_contexts import devices_with_context
from gpubench.errors import UnsupportedError, first_line

_ASK = "run gpubench info, which says what to do"


class CudaEvent:
    """A timing event; `pointer` is its ``cudaEvent_t``."""

    def __init__(self) -> None:
        import cupy

        self._event = cupy.cuda.Event()
        self.pointer: int = self._event.ptr
        self._elapsed = cupy.cuda.runtime.eventElapsedTime

    def seconds_since(self, earlier: Event) -> float:
        """Device time since `earlier` in seconds.

        The driver answers in single-precision milliseconds, so the two events should be close.
        """
        if not isinstance(earlier, CudaEvent):
            raise TypeError(f"a CUDA event can't be compared with {earlier!r}")
        return float(self._elapsed(earlier.pointer, self.pointer)) * 1e-3


class CudaStream:
    """A stream by its ``cudaStream_t``, whoever made it."""

    def __init__(self, device: CudaDevice, pointer: int, label: str) -> None:
        from cupy.cuda import runtime

        self.device = device
        self.label = label
        self.ptr = pointer  # the name by which CuPy's launcher reads it
        self._runtime = runtime

    def record(self, event: Event) -> None:
        """Queue `event` behind the work queued so far."""
        self._runtime.setDevice(self.device.id)
        self._runtime.eventRecord(event.pointer, self.ptr)  # type: ignore[attr-defined]

    def hold(self, gate: Gate) -> None:
        """Let work queued from now on wait until `gate` opens."""
        if not isinstance(gate, CudaGate):
            raise TypeError(f"a CUDA stream can't be held by {gate!r}")
        self._runtime.setDevice(self.device.id)
        arguments = (gate.address, np.uint32(gate.ticket), np.uint64(GATE_DEADLINE * 1e9))
        self.device.hold_kernel.linear_launch(1, arguments, stream=self)

    @property
    def is_capturing(self) -> bool:
        """Whether work queued here is captured instead of run."""
        try:
            return bool(self._runtime.streamIsCapturing(self.ptr))
        except self._runtime.CUDARuntimeError:  # another stream is, and this one is the null stream
            return True

    def synchronize(self) -> None:
        """Wait until all work queued so far is done."""
        self._runtime.setDevice(self.device.id)
        self._runtime.streamSynchronize(self.ptr)


class CudaContext:
    """Every stream of this process on one device, through the driver's context events."""

    label = "every stream"
    is_capturing = False

    def __init__(self, device: CudaDevice) -> None:
        import cupy

        driver = _context_driver()
        self.device = device
        self._driver = driver
        with cupy.cuda.Device(device.id):
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._released = device.create_event()
            self._handle = driver.CUcontext(cupy.cuda.driver.ctxGetCurrent())
        self._holder = CudaStream(device, self._stream.ptr, "the gate's stream")
        self.record(self._released)  # a driver that refuses does so here, before it is relied on

    def record(self, event: Event) -> None:
        """Queue `event` behind the work queued so far on any stream."""
        pointer = event.pointer  # type: ignore[attr-defined]
        _check(self._driver.cuCtxRecordEvent(self._handle, self._driver.CUevent(pointer)))

    def hold(self, gate: Gate) -> None:
        """Let work queued on any stream from now on wait until `gate` opens."""
        self._holder.hold(gate)
        self._holder.record(self._released)
        event = self._driver.CUevent(self._released.pointer)
        _check(self._driver.cuCtxWaitEvent(self._handle, event))

    def synchronize(self) -> None:
        """Wait until every stream of the device is idle."""
        self.device.synchronize()


def _context_driver() -> Any:
    """Return the driver API with context events, or say why there is none."""
    from cupy.cuda import runtime

    if runtime.is_hip:
        raise UnsupportedError("HIP has no context-wide events")
    driver = driver_api()
    if not hasattr(driver, "cuCtxRecordEvent"):
        raise UnsupportedError("cuda-bindings is older than 12.5; upgrade it")
    version = runtime.driverGetVersion()
    if version < 12050:
        raise UnsupportedError(
            f"the driver supports CUDA {version // 1000}.{version % 1000 // 10}, "
            "and context events need 12.5"
        )
    return driver


def _check(result: tuple[Any, ...]) -> None:
    (status, *_) = result
    if int(status) != 0:
        raise UnsupportedError(f"the CUDA driver refused a context event: {status}")


class CudaGraph:
    """A captured graph, with what it captured kept alive."""

    def __init__(self, stream: CudaStream, graph: Any, kept: object) -> None:
        self.stream = stream
        self._graph = graph
        self._kept = kept

    @property
    def is_empty(self) -> bool:
        """Whether nothing was captured; False where that can't be asked."""
        try:
            return graph_size(self._graph.graph) == 0
        except UnsupportedError:
            return False

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The captured kernels' names, mangled, in the order of their launch."""
        return graph_kernel_names(self._graph.graph)

    def launch(self) -> None:
        """Queue the captured work on the stream that it was captured from."""
        self._graph.launch(self.stream)


class CudaDevice:
    """One CUDA device, by its ordinal in this process."""

    def __init__(self, device_id: int) -> None:
        from cupy.cuda import runtime

        self.id = device_id
        self._runtime = runtime

    def __repr__(self) -> str:
        return f"<CudaDevice {self.id}: {self.properties.name}>"

    @functools.cached_property
    def properties(self) -> DeviceProperties:
        """What the device says of itself."""
        fields = self._runtime.getDeviceProperties(self.id)
        pci_bus_id = self._runtime.deviceGetPCIBusId(self.id)
        return DeviceProperties(
            name=fields["name"].decode(errors="replace"),
            l2_bytes=int(fields.get("l2CacheSize", 0)),
            memory_bytes=int(fields["totalGlobalMem"]),
            compute_capability=f"{fields['major']}.{fields['minor']}",
            pci_bus_id=pci_bus_id,
            uuid=_uuid(fields.get("uuid", b""), pci_bus_id),
        )

    @functools.cached_property
    def hold_kernel(self) -> Any:
        """The kernel that waits for a gate, loaded on this device."""
        import cupy

        with cupy.cuda.Device(self.id):
            return kernels().get_function("hold").kernel

    def create_event(self) -> CudaEvent:
        """Make a timing event on this device."""
        import cupy

        with cupy.cuda.Device(self.id):
            return CudaEvent()

    def current_streams(self) -> Sequence[Stream]:
        """CuPy's current stream and, where PyTorch's is another one, PyTorch's too."""
        import cupy

        cupy_stream = cupy.cuda.get_current_stream(self.id).ptr
        streams = [CudaStream(self, cupy_stream, "CuPy's current stream")]
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            torch_stream = torch.cuda.current_stream(self.id).cuda_stream
            if torch_stream != cupy_stream:
                streams.append(CudaStream(self, torch_stream, "PyTorch's current stream"))
        return streams

    @functools.cached_property
    def _context(self) -> CudaContext:
        return CudaContext(self)

    def every_stream(self) -> CudaContext:
        """All streams of this process on the device, as one."""
        return self._context

    def capture(self, work: Work) -> CudaGraph:
        """Capture what `work` queues on the frameworks' current streams."""
        import cupy

        with cupy.cuda.Device(self.id):
            stream = cupy.cuda.Stream(non_blocking=True)
            with stream, _torch_stream(self.id, stream.ptr):
                # once for real, so that pools and library handles exist on this stream
                work()
                stream.synchronize()
                stream.begin_capture()
                try:
                    try:
                        kept = work()
                    finally:
                        graph = stream.end_capture()
                except Exception as error:
                    message = str(error).splitlines()[0] if str(error) else ""
                    raise UnsupportedError(f"{type(error).__name__}: {message}") from error
        return CudaGraph(
            CudaStream(self, stream.ptr, "the capturing stream"), graph, (stream, kept)
        )

    @functools.cached_property
    def _empty_kernel(self) -> Any:
        return kernels().get_function("empty").kernel

    def launch_empty(self) -> None:
        """Queue a kernel that does nothing on CuPy's current stream."""
        import cupy

        with cupy.cuda.Device(self.id):
            self._empty_kernel.linear_launch(1, (), stream=self.current_streams()[0])

    def synchronize(self) -> None:
        """Wait until every stream of the device is idle, and make it current."""
        self._runtime.setDevice(self.id)
        self._runtime.deviceSynchronize()

    def reserved_bytes(self) -> int:
        """Device memory that CuPy's default pool and PyTorch's allocator hold, in bytes."""
        import cupy

        with cupy.cuda.Device(self.id):
            total = int(cupy.get_default_memory_pool().total_bytes())
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            total += int(torch.cuda.memory_reserved(self.id))
        return total

    @contextmanager
    def cold_cache(self) -> Iterator[Work]:
        """Lend a function that writes, then reads, twice the size of the L2 cache."""
        import cupy

        size = 2 * self.properties.l2_bytes // 16 * 16
        if not size:
            raise UnsupportedError(f"{self.properties.name} does not tell the size of its L2 cache")
        with cupy.cuda.Device(self.id):
            memory = cupy.cuda.Memory(size)
            sink = cupy.cuda.Memory(4)
            read_all = kernels().get_function("read_all").kernel
            stream = CudaStream(self, cupy.cuda.Stream.null.ptr, "the default stream")

        def flush() -> None:
            with cupy.cuda.Device(self.id):
                self._runtime.memsetAsync(memory.ptr, 0x5A, size, stream.ptr)
                arguments = (memory.ptr, np.uint64(size // 16), sink.ptr)
                read_all.linear_launch(1 << 18, arguments, block_max_size=256, stream=stream)
            self.synchronize()

        try:
            yield flush
        finally:
            memory = sink = None  # which `flush` would keep


def _uuid(raw: bytes, pci_bus_id: str) -> str:
    """Return a device's UUID, empty if neither CuPy nor NVML tells."""
    if len(raw) == 16:  # CuPy cuts it off at a byte that is zero
        return f"GPU-{UUID(bytes=raw)}"
    try:
        return find_sensors(pci_bus_id).uuid()
    except UnsupportedError:
        return ""


def _torch_stream(device_id: int, pointer: int) -> Any:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return nullcontext()
    return torch.cuda.stream(torch.cuda.ExternalStream(pointer, device=device_id))


class CudaPlatform:
    """The CUDA devices that this process sees."""

    name = "cuda"

    def __init__(self) -> None:
        from cupy.cuda import runtime

        self._runtime = runtime
        self._local = threading.local()  # an own gate for each thread: one must not open another's
        self._devices = [CudaDevice(i) for i in range(runtime.getDeviceCount())]

    def device_count(self) -> int:
        """How many devices this process sees."""
        return len(self._devices)

    def current_device(self) -> int:
        """Id of the device that is current in this thread."""
        return int(self._runtime.getDevice())

    def device(self, device_id: int) -> CudaDevice:
        """Return the device with that id."""
        return self._devices[device_id]

    def drain(self) -> None:
        """Wait until every device that this process uses is idle."""
        used = devices_with_context()
        for device_id in [self.current_device()] if used is None else used:
            self._devices[device_id].synchronize()

    def activity_source(self) -> CuptiSource:
        """Open a source of activity records: CUPTI."""
        return CuptiSource()

    def gate(self) -> CudaGate:
        """Return this thread's gate, open."""
        if self._runtime.is_hip:
            raise UnsupportedError("this is CuPy for HIP, and the gate's kernel is CUDA's")
        if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
            raise UnsupportedError(
                "CUDA_LAUNCH_BLOCKING is set, so that each launch waits for the GPU; unset it"
            )
        try:
            _ = self._devices[self.current_device()].hold_kernel
        except Exception as error:  # NVRTC missing, no headers, an unknown architecture ...
            raise UnsupportedError(
                f"the gate's kernel can't be compiled: {first_line(error)}; {_ASK}"
            ) from error
        if not hasattr(self._local, "gate"):
            self._local.gate = CudaGate()
        gate: CudaGate = self._local.gate
        return gate

    @contextmanager
    def preserved(self) -> Iterator[Work]:
        """Restore the current device and CuPy's current stream on exit."""
        import cupy

        home = self._runtime.getDevice()
        stream = cupy.cuda.get_current_stream()
        try:
            yield functools.partial(self._runtime.setDevice, home)
        finally:
            self._runtime.setDevice(home)
            stream.use()


@functools.cache
def _platform() -> CudaPlatform:
    return CudaPlatform()


def find_cuda() -> CudaPlatform:
    """Return the CUDA platform.

    Raises
    ------
    UnsupportedError
        If there is no GPU to be used: no CuPy, no driver, a driver that is too old, or no
        device; the message tells which and what to do.
    """
    try:
        import cupy
    except Exception as error:  # importing CuPy fails in many ways
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            raise UnsupportedError(
                'CuPy is not installed; pip install "gpubench[cuda12]" (or [cuda13])'
            ) from None
        raise UnsupportedError(
            f"CuPy can't be imported: {why_not_imported(error)}; {_ASK}"
        ) from error
    runtime = cupy.cuda.runtime
    version = runtime.driverGetVersion()
    if version == 0:
        raise UnsupportedError(f"there is no NVIDIA driver; {_ASK}")
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        if "InsufficientDriver" in str(error):
            raise UnsupportedError(
                f"the driver supports CUDA {version // 1000}.{version % 1000 // 10}, which is too "
                f"old for this CuPy (CUDA {runtime.runtimeGetVersion() // 1000}); {_ASK}"
            ) from error
        if "NoDevice" not in str(error):
            raise UnsupportedError(f"the CUDA driver fails: {error}; {_ASK}") from error
        count = 0
    if count == 0:
        raise UnsupportedError(
            "the driver shows no device to this process; see nvidia-smi and CUDA_VISIBLE_DEVICES "
            f"(now {os.environ.get('CUDA_VISIBLE_DEVICES', 'unset')!r})"
        )
    return _platform()


def why_not_imported(error: Exception) -> str:
    """Return what the import of CuPy failed at, without the page that CuPy makes of it."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return first_line(cause)
