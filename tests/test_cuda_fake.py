"""The CUDA platform on a fake CuPy: which calls it makes, in which order, on which device."""

import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from fake_cupy import L2_BYTES, PCI_BUS_ID

import gpubench
from gpubench import benchmark
from gpubench.devices import current_platform
from gpubench.devices.base import GATE_DEADLINE


def codes(result):
    return [note.code for note in result.notes]


def only_on(stream, work):
    """Do some work with that stream current."""
    with stream:
        work()


class TestTimes:
    @pytest.mark.parametrize("method", ["auto", "gated", "events", "graph"])
    def test_work_on_the_current_stream(self, fake_cuda, method):
        result = benchmark(fake_cuda.work, (100e-6,), n_repeat=5, method=method)
        assert result.method == ("gated" if method == "auto" else method)
        assert result.gpu_times == pytest.approx(np.full((1, 5), 100e-6))
        assert "no-graph" not in codes(result)

    def test_order_of_a_gated_sample(self, fake_cuda):
        benchmark(fake_cuda.work, (100e-6,), n_repeat=1)
        last = len(fake_cuda.log) - 1 - fake_cuda.log[::-1].index("work on 0")
        assert fake_cuda.log[last - 2 : last + 3] == [
            "hold on 0",
            "record on 0",
            "work on 0",
            "record on 0",
            "synchronize 0",
        ]

    def test_callers_stream_is_timed(self, fake_cuda):
        with fake_cuda.cuda.Stream(non_blocking=True) as stream:
            result = benchmark(fake_cuda.work, (100e-6,), n_repeat=2)
        assert result.gpu[0].median == pytest.approx(100e-6)
        assert "side-stream" not in codes(result)
        assert f"hold on {stream.ptr}" in fake_cuda.log

    def test_a_side_stream_is_timed_by_events_of_the_context(self, fake_cuda):
        side = fake_cuda.cuda.Stream(non_blocking=True)
        call = lambda: only_on(side, lambda: fake_cuda.work(100e-6))  # noqa: E731
        result = benchmark(call, n_repeat=5)
        assert result.gpu[0].median == pytest.approx(100e-6)
        assert "side-stream" in codes(result)
        last = len(fake_cuda.log) - 1 - fake_cuda.log[::-1].index(f"work on {side.ptr}")
        assert fake_cuda.log[last - 2 : last + 3] == [
            "hold every stream",
            "record on every stream",
            f"work on {side.ptr}",
            "record on every stream",
            "synchronize device 0",
        ]

    def test_each_device_is_timed_with_events_of_its_own(self, fake_cuda):
        fake_cuda.n_devices = 2

        def on_second():
            fake_cuda.device = 1
            fake_cuda.work(100e-6)

        result = benchmark(on_second, n_repeat=5, devices=(0, 1))
        assert result.gpu[0].median == 0
        assert result.gpu[1].median == pytest.approx(100e-6)
        assert fake_cuda.device == 0

    def test_only_the_devices_that_are_asked_for_are_touched(self, fake_cuda):
        fake_cuda.n_devices = 2
        fake_cuda.device = 1
        result = benchmark(fake_cuda.work, (100e-6,), n_repeat=5)
        assert result.devices == (1,)
        assert {owner for owner, _ in fake_cuda.events.values()} == {1}
        assert "synchronize device 0" not in fake_cuda.log

    def test_device_and_stream_are_restored_after_an_exception(self, fake_cuda):
        fake_cuda.n_devices = 2
        before = fake_cuda.stream()

        def leaves_a_mess():
            fake_cuda.cuda.Stream(non_blocking=True).use()
            fake_cuda.device = 1
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            benchmark(leaves_a_mess, n_repeat=5)
        assert fake_cuda.device == 0
        assert fake_cuda.stream() is before

    def test_events_of_other_kinds_are_refused(self, fake_cuda):
        device = current_platform().device(0)
        (stream,) = device.current_streams()
        with pytest.raises(TypeError, match="object object"):
            stream.hold(object())
        with pytest.raises(TypeError, match="object object"):
            device.create_event().seconds_since(object())


class TestGate:
    def test_an_expired_gate_means_that_the_call_waits(self, fake_cuda):
        fake_cuda.gates_expire = True
        result = benchmark(fake_cuda.work, (100e-6,), n_repeat=5)
        assert (result.method, "waits-inside" in codes(result)) == ("events", True)

    def test_tickets_grow_and_tell_closings_apart(self, fake_cuda):
        gate = current_platform().gate()
        first, second = gate.close(), gate.close()
        assert second == first + 1
        gate.open()
        assert list(fake_cuda.flags) == [second, 0]
        fake_cuda.flags[1] = first
        assert gate.has_expired(first)
        assert not gate.has_expired(second)

    def test_the_kernel_gets_flag_ticket_and_deadline(self, fake_cuda, monkeypatch):
        platform = current_platform()
        gate, device = platform.gate(), platform.device(0)
        launches = []
        monkeypatch.setattr(
            device.hold_kernel, "linear_launch", lambda *a, **k: launches.append((a, k))
        )
        ticket = gate.close()
        (stream,) = device.current_streams()
        stream.hold(gate)
        (((size, arguments), keywords),) = launches
        assert (size, keywords["stream"].ptr) == (1, stream.ptr)
        assert arguments == (gate.address, ticket, int(GATE_DEADLINE * 1e9))
        assert [type(a) for a in arguments[1:]] == [np.uint32, np.uint64]

    def test_each_thread_has_its_own(self, fake_cuda):
        platform = current_platform()
        gates = [platform.gate(), platform.gate()]
        thread = threading.Thread(target=lambda: gates.append(platform.gate()))
        thread.start()
        thread.join()
        assert gates[0] is gates[1]
        assert gates[0] is not gates[2]

    @pytest.mark.parametrize("value", ["1", "true"])
    def test_blocking_launches_allow_none(self, fake_cuda, monkeypatch, value):
        monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", value)
        result = benchmark(fake_cuda.work, (100e-6,), n_repeat=2)
        assert (result.method, "no-gate" in codes(result)) == ("events", True)
        assert "CUDA_LAUNCH_BLOCKING is set" in str(result)
        assert result.environment["variables"]["CUDA_LAUNCH_BLOCKING"] == value

    @pytest.mark.parametrize("value", ["0", ""])
    def test_launches_that_do_not_block_allow_it(self, fake_cuda, monkeypatch, value):
        monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", value)
        assert benchmark(fake_cuda.work, (100e-6,), n_repeat=2).method == "gated"

    def test_without_a_compiler_there_is_none(self, fake_cuda):
        fake_cuda.compile_error = "NVRTC was not found\nHints"
        result = benchmark(fake_cuda.work, (100e-6,), n_repeat=2)
        assert result.method == "events"
        assert "be compiled: NVRTC was not found; run gpubench info, which" in str(result)

    def test_hip_has_none(self, fake_cuda):
        fake_cuda.runtime.is_hip = True
        result = benchmark(fake_cuda.work, (100e-6,), n_repeat=2)
        assert result.method == "events"
        assert "CuPy for HIP" in str(result)


class TestContextEvents:
    """Where there are none the stream is gated, and a note says why."""

    def gated_on_stream(self, fake_cuda):
        result = benchmark(fake_cuda.work, (100e-6,), n_repeat=2)
        assert result.method == "gated"
        assert result.gpu[0].median == pytest.approx(100e-6)
        (note,) = [note for note in result.notes if note.code == "no-context-events"]
        return str(note)

    def test_no_bindings(self, fake_cuda, monkeypatch):
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
        assert "pip install cuda-bindings" in self.gated_on_stream(fake_cuda)

    def test_bindings_that_are_too_old(self, fake_cuda):
        del fake_cuda.driver.cuCtxRecordEvent
        assert "cuda-bindings is older than 12.5" in self.gated_on_stream(fake_cuda)

    def test_driver_that_is_too_old(self, fake_cuda):
        fake_cuda.driver_version = 12040
        assert "the driver supports CUDA 12.4" in self.gated_on_stream(fake_cuda)

    def test_driver_that_refuses(self, fake_cuda):
        fake_cuda.context_status = 801
        assert "refused a context event: 801" in self.gated_on_stream(fake_cuda)

    def test_hip_has_none(self, fake_cuda):
        device = current_platform().device(0)
        fake_cuda.runtime.is_hip = True
        with pytest.raises(gpubench.UnsupportedError, match="HIP"):
            device.every_stream()


class TestGraph:
    def test_the_call_is_run_once_before_it_is_captured(self, fake_cuda):
        graph = current_platform().device(0).capture(lambda: fake_cuda.work(100e-6))
        stream = graph.stream
        assert fake_cuda.log == [f"work on {stream.ptr}", f"synchronize {stream.ptr}"]
        assert not graph.is_empty
        graph.launch()
        assert fake_cuda.log[-1] == f"launch graph on {stream.ptr}"
        assert fake_cuda.stream().ptr == 0

    def test_a_call_that_synchronizes_is_refused_in_one_line(self, fake_cuda):
        device = current_platform().device(0)

        def call():
            fake_cuda.stream().synchronize()

        with pytest.raises(gpubench.UnsupportedError) as caught:
            device.capture(call)
        assert str(caught.value) == (
            "CUDARuntimeError: cudaErrorStreamCaptureUnsupported: not while capturing"
        )
        assert not fake_cuda.captured
        assert fake_cuda.stream().ptr == 0

    def test_an_error_without_words_is_refused_by_its_name(self, fake_cuda):
        def call():
            if fake_cuda.captured:
                raise ZeroDivisionError

        with pytest.raises(gpubench.UnsupportedError, match="ZeroDivisionError"):
            current_platform().device(0).capture(call)

    def test_an_error_of_the_call_itself_is_passed_on(self, fake_cuda):
        def call():
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            current_platform().device(0).capture(call)
        assert not fake_cuda.captured

    def test_nothing_captured_is_noted(self, fake_cuda):
        side = fake_cuda.cuda.Stream(non_blocking=True)

        def call():
            only_on(side, lambda: fake_cuda.work(1e-6))  # too short for the probe to tell

        result = benchmark(call, n_repeat=2, method="graph")
        assert (result.method, "no-graph" in codes(result)) == ("gated", True)

    def test_whether_a_graph_is_empty_is_unknown_without_bindings(self, fake_cuda, monkeypatch):
        graph = current_platform().device(0).capture(lambda: None)
        assert graph.is_empty
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
        assert not graph.is_empty


class TestColdCache:
    def test_twice_the_l2_cache_is_written_and_read_before_each_call(self, fake_cuda):
        result = benchmark(fake_cuda.work, (100e-6,), n_repeat=2, cache="cold")
        assert result.gpu[0].median == pytest.approx(100e-6)
        log = fake_cuda.log
        last = len(log) - 1 - log[::-1].index("work on 0")
        assert log[last - 6 : last - 1] == [
            f"memset {2 * L2_BYTES}",
            "read_all on 0",
            "synchronize device 0",
            "synchronize device 0",
            "hold on 0",
        ]

    def test_a_device_that_does_not_tell_its_size_is_refused(self, fake_cuda):
        fake_cuda.l2_bytes = 0
        with pytest.raises(gpubench.UnsupportedError, match="L2"):
            benchmark(fake_cuda.work, (100e-6,), n_repeat=2, cache="cold")


class TestDevice:
    def test_properties(self, fake_cuda):
        device = current_platform().device(0)
        assert device.properties.name == "Fake \N{REPLACEMENT CHARACTER} GPU"
        assert device.properties.l2_bytes == L2_BYTES
        assert device.properties.memory_bytes == 80 << 30
        assert device.properties.compute_capability == "9.0"
        assert device.properties.pci_bus_id == PCI_BUS_ID
        assert repr(device) == f"<CudaDevice 0: {device.properties.name}>"

    def test_a_growing_pool_is_noted(self, fake_cuda):
        def call():
            fake_cuda.pool_bytes += 1 << 20
            fake_cuda.work(100e-6)

        result = benchmark(call, n_repeat=8)
        assert "grew by 8.0 MiB" in str(result)

    def test_environment_has_the_versions_of_cuda(self, fake_cuda):
        environment = benchmark(fake_cuda.work, (100e-6,), n_repeat=1).environment
        assert environment["cuda"] == {"driver": 13000, "runtime": 12090}
        assert environment["frameworks"]["cupy"] == "14.0.0"
        assert environment["devices"][0]["pci_bus_id"] == PCI_BUS_ID


class FakeTorch(ModuleType):
    """PyTorch with a current stream of its own."""

    def __init__(self, fake_cuda, pointer):
        super().__init__("torch")
        self.__version__ = "2.9"
        self.entered = []
        self.is_started = True
        self._fake_cuda = fake_cuda
        self.pointer = pointer
        self.cuda = SimpleNamespace(
            is_initialized=lambda: self.is_started,
            current_stream=lambda device: SimpleNamespace(cuda_stream=self.pointer),
            memory_reserved=lambda device: 3 << 20,
            ExternalStream=lambda pointer, device: pointer,
            stream=self._stream,
        )

    def _stream(self, pointer):
        self.entered.append(pointer)
        return self._fake_cuda.cuda.Device(0)  # any context manager


class TestTorch:
    @pytest.fixture
    def torch(self, fake_cuda, monkeypatch):
        torch = FakeTorch(fake_cuda, 7)
        monkeypatch.setitem(sys.modules, "torch", torch)
        return torch

    def work(self, fake_cuda):
        fake_cuda.seconds[0, 7] += 100e-6

    def test_work_on_its_own_current_stream_is_timed_there(self, fake_cuda, torch):
        result = benchmark(self.work, (fake_cuda,), n_repeat=5)
        assert result.gpu[0].median == pytest.approx(100e-6)
        assert "PyTorch's current stream" in str(result)
        assert codes(result)[0] == "other-stream"

    def test_the_same_stream_is_recorded_once(self, fake_cuda, torch):
        torch.pointer = 0
        device = current_platform().device(0)
        assert [stream.label for stream in device.current_streams()] == ["CuPy's current stream"]

    def test_unused_it_is_not_woken(self, fake_cuda, torch):
        torch.is_started = False
        device = current_platform().device(0)
        assert len(device.current_streams()) == 1
        assert device.reserved_bytes() == 0

    def test_its_allocator_counts(self, fake_cuda, torch):
        fake_cuda.pool_bytes = 1 << 20
        assert current_platform().device(0).reserved_bytes() == 4 << 20

    def test_its_work_is_captured_too(self, fake_cuda, torch):
        graph = current_platform().device(0).capture(lambda: fake_cuda.work(1e-6))
        assert torch.entered == [graph.stream.ptr]
