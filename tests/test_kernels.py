"""Which kernels a call runs: both ways to find out, on fakes, and what their names say."""

import ctypes
import dataclasses
import sys
from types import ModuleType, SimpleNamespace

import fake_cupti
import pytest
from fake_cupti import CuptiError
from recording_device import RecordingGpu

import gpubench
from gpubench.activity import demangling
from gpubench.activity.kernels import KernelNames, back_end_of, kernel_names
from gpubench.bench import Bench
from gpubench.devices import current_platform, sharing
from gpubench.devices.sharing import shared

REDUCE = (
    "_ZN3cub17CUB_300102_SM_9006detail6reduce18DeviceReduceKernelINS2_10policy_hubIfj4plusE"
    "10Policy1000EPfjS5_S4_fEEvT0_PT3_T1_"
)
SORT = (
    "_ZN3cub17CUB_300102_SM_9006detail10radix_sort30DeviceRadixSortHistogramKernelINS1_5radix"
    "10policy_hubIfNS0_8NullTypeEyE10Policy1000ELNS0_9SortOrderE0EfyEEvPT2_PKT1_S9_iiT3_"
)


class FakeCupti(fake_cupti.FakeCupti):
    """`launch` is a launch that CUPTI sees: the later it is, the sooner it ends."""

    n_launches = 0

    def launch(self, name, **fields):
        self.n_launches += 1
        others, self._rows = self._rows, []
        times = {"start": self.n_launches, "end": 1000 - self.n_launches}
        self.emit(10, name=name, **{"correlation_id": self.n_launches, **times, **fields})
        self._rows += others


@pytest.fixture
def cupti(monkeypatch, fake_cuda):
    fake = FakeCupti()
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def no_cupti(monkeypatch, fake_cuda):
    monkeypatch.setitem(sys.modules, "cupti", None)


def find(call, device_id=0):
    """Find out which kernels a call runs on a device of the current platform."""
    platform = current_platform()
    return kernel_names(call, platform, platform.device(device_id))


def kernel(name):
    """A kernel's node; `name` is bytes, as the driver gives it."""
    return SimpleNamespace(kind="kernel", func=1, kern=0, name=name)


@pytest.fixture
def nodes(fake_cuda):
    """What the driver says of each captured graph with work in it: change it in place."""
    nodes = [kernel(b"first"), SimpleNamespace(kind="memset"), kernel(b"second")]
    graphs = {0: [], 1: nodes}

    def get_nodes(graph, n):
        inside = graphs[graph] if isinstance(graph, int) else graph
        return 0, inside[:n], len(inside)

    def name(found):
        return 0, found

    vars(fake_cuda.driver).update(
        CUgraphNodeType=SimpleNamespace(
            CU_GRAPH_NODE_TYPE_KERNEL="kernel", CU_GRAPH_NODE_TYPE_GRAPH="graph"
        ),
        cuGraphGetNodes=get_nodes,
        cuGraphNodeGetType=lambda node: (0, node.kind),
        cuGraphChildGraphNodeGetGraph=lambda node: (0, node.graph),
        cuGraphKernelNodeGetParams=lambda node: (
            0,
            SimpleNamespace(func=node.func and _Handle(node.name), kern=_Handle(node.name)),
        ),
        cuFuncGetName=lambda handle: (0, handle.name),
        cuKernelGetName=lambda handle: (0, b"kernel " + handle.name),
    )
    return nodes


class _Handle:
    def __init__(self, name):
        self.name = name

    def __int__(self):
        return 0xABC


class TestRecords:
    def test_names_in_the_order_of_launch_without_repeats(self, cupti):
        def call():
            for name in ("b", "a", "b", "c"):
                cupti.launch(name)

        assert find(call) == KernelNames(("b", "a", "c"), "cupti")

    def test_the_kernels_of_a_graph_share_a_launch(self, cupti):
        def call():
            cupti.launch("before", correlation_id=5)
            cupti.launch("z", correlation_id=6)
            cupti.launch("a", correlation_id=6)

        assert find(call).names == ("before", "z", "a")

    def test_other_devices_and_other_records_dont_count(self, cupti):
        def call():
            cupti.launch("elsewhere", device_id=1)
            cupti.emit(1, copy_kind=1, start=1, end=2)
            cupti.launch("here")

        with shared(current_platform(), ("memcpy",)) as share:
            assert find(call).names == ("here",)
            assert len(share.collect().activities) == 3

    def test_a_call_that_launches_nothing(self, cupti):
        assert find(lambda: None) == KernelNames((), "cupti")

    def test_order_of_what_is_asked_of_cupti(self, cupti, fake_cuda):
        cupti.log = fake_cuda.log
        find(lambda: fake_cuda.work(1e-6))
        assert fake_cuda.log == [
            "synchronize device 0",
            "subscribe",
            "set_thread_id_type",
            "activity_enable",
            "activity_flush_all",
            "work on 0",
            "synchronize device 0",
            "activity_flush_all",
            "activity_disable",
            "activity_flush_all",
            "unsubscribe",
        ]

    def test_the_device_is_current_during_the_call_only(self, cupti, fake_cuda):
        fake_cuda.n_devices = 2
        seen = []
        find(lambda: seen.append(fake_cuda.device), device_id=1)
        assert (seen, fake_cuda.device) == ([1], 0)

    def test_an_exception_of_the_call_ends_the_recording(self, cupti, fake_cuda):
        def call():
            cupti.launch("lost")
            fake_cuda.device = 1
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            find(call)
        assert (cupti.enabled, cupti.subscriber, fake_cuda.device) == (set(), None, 0)
        assert find(lambda: cupti.launch("next")).names == ("next",)

    def test_a_refusal_of_the_calls_own_reaches_the_caller(self, cupti):
        def call():
            raise gpubench.UnsupportedError("mine")

        with pytest.raises(gpubench.UnsupportedError, match=r"^mine$"):
            find(call)

    @pytest.mark.parametrize("function", ["activity_flush_all", "activity_disable", "unsubscribe"])
    def test_what_fails_when_it_is_over_takes_no_name_away(self, monkeypatch, cupti, function):
        leave = sharing._Hub.leave

        def refusing(hub, share):
            cupti.refusals[function] = CuptiError("ERROR_X (1)")
            leave(hub, share)

        monkeypatch.setattr(sharing._Hub, "leave", refusing)
        assert find(lambda: cupti.launch("a")) == KernelNames(("a",), "cupti")


class TestBesideOthers:
    """Whoever else records at the time has his records, and the call is told from the rest."""

    def test_in_a_recorded_block(self, gpu):
        with gpubench.record_activity() as trace:
            gpu.launch(1e-3, "before")
            found = find(lambda: gpu.launch(1e-6, "a"))
            gpu.launch(1e-6, "after")
        assert found == KernelNames(("a",), "cupti")
        recording = trace.recording
        assert [recording.names[i] for i in recording.activities["name"]] == [
            "before",
            "a",
            "after",
        ]

    def test_in_a_recorded_block_by_cupti(self, cupti):
        with shared(current_platform(), ("kernel",)) as share:
            cupti.launch("before")
            assert find(lambda: cupti.launch("a")) == KernelNames(("a",), "cupti")
            cupti.launch("after")
            records = share.collect()
        assert [records.names[i] for i in records.activities["name"]] == ["before", "a", "after"]

    def test_while_calls_are_timed_by_records(self, gpu):
        with Bench(method="cupti") as bench:
            found = bench.kernels(lambda: gpu.launch(1e-6, "a"))
        assert found == KernelNames(("a",), "cupti")


class TestFallingThrough:
    @pytest.mark.parametrize(
        "function", ["subscribe", "set_thread_id_type", "activity_enable", "activity_flush_all"]
    )
    @pytest.mark.parametrize("error", [CuptiError("ERROR_X (1)"), RuntimeError("no driver")])
    def test_whatever_cupti_refuses_the_graph_is_asked(
        self, cupti, fake_cuda, nodes, function, error
    ):
        cupti.refusals[function] = error
        found = find(lambda: fake_cuda.work(1e-6))
        assert found == KernelNames(("first", "second"), "graph")
        assert (cupti.enabled, cupti.subscriber) == (set(), None)

    def test_callbacks_that_cupti_refuses(self, monkeypatch, cupti, fake_cuda, nodes):
        monkeypatch.setattr(cupti, "cuptiActivityRegisterCallbacks", lambda *_: 999)
        assert find(lambda: fake_cuda.work(1e-6)).source == "graph"
        assert cupti.subscriber is None

    def test_records_that_cant_be_had_after_the_call(self, cupti, fake_cuda, nodes):
        def call():
            cupti.refusals["activity_flush_all"] = CuptiError("ERROR_X (1)")
            fake_cuda.work(1e-6)

        assert find(call) == KernelNames(("first", "second"), "graph")
        assert (cupti.enabled, cupti.subscriber) == (set(), None)

    def test_another_profiler_keeps_its_records(self, cupti, fake_cuda, nodes):
        cupti.subscriber = 1
        assert find(lambda: fake_cuda.work(1e-6)).source == "graph"
        assert cupti.log == ["subscribe"]

    def test_pytorchs_profiler_keeps_its_records(self, monkeypatch, cupti, fake_cuda, nodes):
        profiler = ModuleType("torch.autograd.profiler")
        monkeypatch.setitem(sys.modules, "torch.autograd.profiler", profiler)
        for is_recording in (False, True):
            profiler._is_profiler_enabled = is_recording
            cupti.log.clear()
            found = find(lambda: fake_cuda.work(1e-6))
            assert found.source == ("graph" if is_recording else "cupti")
            assert bool(cupti.log) == (not is_recording)

    def test_the_reasons_when_nothing_helps(self, cupti, nodes):
        cupti.subscriber = 1
        assert find(lambda: None) == KernelNames(
            (),
            "",
            "cupti: CUPTI refuses to record: ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39); end "
            "the profiler that uses CUPTI now (PyTorch's keeps it for as long as the process "
            "lives); graph: the call queues no kernel on the current stream",
        )

    def test_without_cupti_the_reason_names_the_extra(self, no_cupti, nodes):
        assert find(lambda: None).reason.startswith(
            'cupti: cupti-python is not installed; pip install "gpubench[activity]"; graph: '
        )

    def test_a_broken_cupti(self, monkeypatch, fake_cuda, nodes):
        monkeypatch.setitem(sys.modules, "cupti", ModuleType("cupti"))
        reason = find(lambda: None).reason
        assert reason.startswith("cupti: cupti-python can't be imported: cannot import name")

    def test_a_record_that_cant_be_read_raises_nothing_into_cupti(self, cupti, nodes):
        cupti.surplus_bytes = -8
        found = find(lambda: cupti.launch("short"))
        assert found.source == ""
        assert "CUPTI's records can't be read: UnsupportedError" in found.reason
        assert (cupti.enabled, cupti.subscriber) == (set(), None)

    def test_records_that_were_lost_are_not_guessed(self, cupti, nodes):
        def call():
            cupti.launch("kept")
            cupti.n_dropped = 2

        assert "cupti: 2 activity records were lost; graph: " in find(call).reason

    def test_a_call_that_refuses_to_be_captured(self, no_cupti, fake_cuda, nodes):
        def call():
            if fake_cuda.captured:
                raise NotImplementedError("calling cuBLAS is unsupported")

        reason = find(call).reason
        assert reason.endswith("graph: NotImplementedError: calling cuBLAS is unsupported")

    def test_a_result_is_a_value(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            KernelNames(("a",), "cupti").source = "graph"

    def test_any_device_without_records_is_captured(self):
        def no_records():
            raise gpubench.UnsupportedError("no records")

        platform = RecordingGpu()
        device = platform.device(0)
        platform.activity_source = no_records
        device.capture = lambda work: SimpleNamespace(kernel_names=("a", "a", "b"))
        found = kernel_names(lambda: None, platform, device)
        assert found == KernelNames(("a", "b"), "graph")


class TestGraph:
    @pytest.fixture(autouse=True)
    def _without_records(self, no_cupti):
        pass

    def find(self, fake_cuda):
        return find(lambda: fake_cuda.work(1e-6))

    def test_graphs_inside_it(self, fake_cuda, nodes):
        nodes.insert(1, SimpleNamespace(kind="graph", graph=[kernel(b"inner"), kernel(b"first")]))
        assert self.find(fake_cuda).names == ("first", "inner", "second")

    def test_kernels_that_are_not_loaded_yet(self, fake_cuda, nodes):
        nodes[0].func = 0
        assert self.find(fake_cuda).names == ("kernel first", "second")

    def test_bindings_that_are_too_old(self, fake_cuda, nodes):
        del fake_cuda.driver.cuFuncGetName
        assert "graph: cuFuncGetName can't be called: " in self.find(fake_cuda).reason

    def test_a_driver_that_is_too_old(self, fake_cuda, nodes):
        def missing(handle):
            raise RuntimeError("function cuFuncGetName is not found")

        fake_cuda.driver.cuFuncGetName = missing
        reason = self.find(fake_cuda).reason
        assert reason.endswith("can't be called: function cuFuncGetName is not found")

    def test_a_driver_that_refuses(self, fake_cuda, nodes):
        fake_cuda.driver.cuGraphNodeGetType = lambda node: (1, None)
        reason = self.find(fake_cuda).reason
        assert reason.endswith("graph: the CUDA driver refused cuGraphNodeGetType: 1")

    def test_without_cuda_bindings(self, monkeypatch, fake_cuda, nodes):
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
        assert "cuda-bindings can't be imported" in self.find(fake_cuda).reason


class TestSimulated:
    def test_kernels_of_all_streams_in_the_order_of_launch(self, gpu):
        side = gpu.stream()
        gpu.launch(1e-3, "before")

        def call():
            side.launch(5e-3, "long")
            gpu.launch(1e-6, "short")
            side.record(gpu.device(0).create_event())
            gpu.launch(1e-6, "short")

        assert find(call) == KernelNames(("long", "short"), "cupti")

    def test_other_devices_dont_count(self):
        with gpubench.simulated_gpu(n_devices=2) as gpu:

            def call():
                gpu.launch(1e-6, "here")
                gpu.use_device(1)
                gpu.launch(1e-6, "there")
                gpu.use_device(0)

            assert find(call).names == ("here",)
            assert find(call, device_id=1).names == ("there",)

    def test_a_kernel_may_have_any_name(self, gpu):
        assert find(lambda: gpu.launch(0, "event")).names == ("event",)

    def test_the_kernels_inside_a_graph(self, gpu):
        graph = gpu.device(0).capture(lambda: [gpu.launch(1e-6, name) for name in "aba"])
        assert graph.kernel_names == ("a", "b", "a")
        assert find(graph.launch).names == ("a", "b")

    def test_an_exception_of_the_call(self, gpu):
        with pytest.raises(ZeroDivisionError):
            find(lambda: 1 // 0)


class TestBackEnd:
    @pytest.mark.parametrize(
        ("name", "back_end"),
        [
            ("cupy_sum", "CuPy"),
            ("cupy_add__float32_float32_float32", "CuPy"),
            ("cupy_scan_btree", "CuPy"),
            ("cupy_cub_sum", "cub"),
            ("cupyx_cub_norm", "cub"),
            ("mynorm_pass1", "cub"),
            ("mynorm", "CuPy"),
            (REDUCE, "cub"),
            (SORT, "CuPy"),
            ("_ZN3cub4deta20DeviceScanInitKernelINS0_13ScanTileStateIfLb1EEEEEvT_i", "cub"),
            ("void cub::CUB_1::DeviceHistogramSweepKernel<float, 1>(float*)", "cub"),
            ("void cub::detail::DeviceFixedSizeSegmentedReduceKernel<float>()", "cub"),
            ("void cub::DeviceMergeSortMergeKernel<cub::DeviceReduceKernel>()", "CuPy"),
            ("void cub::detail::transform_kernel<thrust::counting_iterator<long> >()", "CuPy"),
            ("void thrust::cuda_cub::core::_kernel_agent<DeviceReduceKernel>()", "CuPy"),
            ("_ZN26cutensor_internal_namespace17reduction_kernel_EvT_", "cutensor"),
            ("void cutensor_internal_namespace::k<cutlass_80_tensorop>()", "cutensor"),
            ("sm80_xmma_gemm_f32f32_f32_nn_n_tilesize128x64x8_kernel__5x_cublas", "cuBLAS"),
            ("nvjet_sm90_hsh_128x64_64x8_1x2_h_bz_NNT", "cuBLAS"),
            ("ampere_sgemm_128x64_nn", "cuBLAS"),
            ("void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64>()", "cuBLAS"),
            ("void internal::gemvx::kernel<cublasGemvParamsEx<int> >()", "cuBLAS"),
        ],
    )
    def test_of_one_kernel(self, name, back_end):
        assert back_end_of([name]) == back_end

    @pytest.mark.parametrize("name", [REDUCE, SORT])
    def test_is_the_same_of_a_demangled_name(self, name):
        assert back_end_of([demangling.demangled(name)]) == back_end_of([name])

    def test_of_several(self):
        assert back_end_of(["cupy_copy", REDUCE, "cupy_cub_sum", "cupy_add"]) == "CuPy+cub"

    def test_of_none(self):
        assert back_end_of([]) == ""


class TestDemangling:
    @pytest.fixture(autouse=True)
    def _afresh(self):
        demangling._demangler.cache_clear()
        yield
        demangling._demangler.cache_clear()

    @pytest.mark.skipif(sys.platform != "linux", reason="needs libstdc++")
    def test_names_are_as_in_the_source(self, cupti):
        found = find(lambda: cupti.launch("_Z4scanIfEvPT_i"))
        assert found.names == ("void scan<float>(float*, int)",)

    @pytest.mark.parametrize("name", ["f", "cupy_sum", "_Z", "_Zbad", ""])
    def test_other_names_stay_as_they_are(self, name):
        assert demangling.demangled(name) == name

    def test_without_the_library(self, monkeypatch):
        def missing(name):
            raise OSError(name)

        monkeypatch.setattr(ctypes, "CDLL", missing)
        assert demangling.demangled("_Z4scanIfEvPT_i") == "_Z4scanIfEvPT_i"
