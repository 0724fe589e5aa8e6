"""A device that does nothing but write down what it is asked to do, with a clock set by hand."""

from contextlib import contextmanager

from gpubench.devices.base import DeviceProperties
from gpubench.errors import UnsupportedError


class RecordingGpu:
    """A platform; `log` is what was asked of it, `now` its devices' clock in seconds."""

    name = "recording"

    def __init__(self, n_devices=1):
        self.log = []
        self.now = 0.0
        self.expires = False
        self.refusal = None
        self.devices = [RecordingDevice(self, i) for i in range(n_devices)]

    def launch(self, seconds=1e-3):
        """Work for some seconds of device time."""
        self.log.append("call")
        self.now += seconds

    def go_home(self):
        """Make the caller's device current."""
        self.log.append("go home")

    def device_count(self):
        return len(self.devices)

    def current_device(self):
        return 0

    def device(self, device_id):
        return self.devices[device_id]

    def gate(self):
        if self.refusal:
            raise UnsupportedError(self.refusal)
        return RecordingGate(self)

    @contextmanager
    def preserved(self):
        self.log.append("preserve")
        try:
            yield self.go_home
        finally:
            self.log.append("restore")


class RecordingGate:
    def __init__(self, gpu):
        self._gpu = gpu
        self._n_closings = 0
        self._is_open = True

    def close(self):
        self._n_closings += 1
        self._is_open = False
        self._gpu.log.append("close")
        return self._n_closings

    def open(self):
        if not self._is_open:
            self._gpu.log.append("open")
        self._is_open = True

    def has_expired(self, closing):
        return self._gpu.expires


class RecordingDevice:
    def __init__(self, gpu, device_id):
        self.gpu = gpu
        self.id = device_id
        self.properties = DeviceProperties("recorder")
        suffix = f" {device_id}" if device_id else ""
        self.stream = RecordingStream(self, f"stream{suffix}")
        self.context = RecordingStream(self, f"every stream{suffix}")
        self.is_blind = False
        self.capture_refusal = None

    def create_event(self):
        return RecordingEvent()

    def current_streams(self):
        return (self.stream,)

    def every_stream(self):
        if self.is_blind:
            raise UnsupportedError("this recorder is blind")
        return self.context

    def capture(self, work):
        if self.capture_refusal:
            raise UnsupportedError(self.capture_refusal)
        begin, log = self.gpu.now, list(self.gpu.log)
        work()
        n_calls, duration = self.gpu.log[len(log) :].count("call"), self.gpu.now - begin
        self.gpu.log[:], self.gpu.now = [*log, "capture"], begin
        return RecordingGraph(self, n_calls, duration)

    def synchronize(self):
        self.gpu.log.append("synchronize device")

    def reserved_bytes(self):
        return 0

    @contextmanager
    def cold_cache(self):
        self.gpu.log.append("allocate")
        try:
            yield lambda: self.gpu.log.append("flush")
        finally:
            self.gpu.log.append("free")


class RecordingGraph:
    def __init__(self, device, n_calls, duration):
        self.stream = device.stream
        self.n_calls = n_calls
        self.is_empty = not n_calls
        self._duration = duration

    def launch(self):
        self.stream.device.gpu.log.append("launch graph")
        self.stream.device.gpu.now += self._duration


class RecordingStream:
    def __init__(self, device, label):
        self.device = device
        self.label = label

    def record(self, event):
        self.device.gpu.log.append(f"record on {self.label}")
        event.moment = self.device.gpu.now

    def hold(self, gate):
        self.device.gpu.log.append(f"hold {self.label}")

    def synchronize(self):
        self.device.gpu.log.append(f"synchronize {self.label}")


class RecordingEvent:
    moment = float("nan")

    def seconds_since(self, earlier):
        return self.moment - earlier.moment
