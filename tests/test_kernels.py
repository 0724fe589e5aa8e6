"""Which kernels a call runs: both ways to find out, on fakes, and what their names say."""

import ctypes
import dataclasses
import sys
from types import ModuleType, SimpleNamespace

import pytest
from recording_device import RecordingGpu

import gpubench
from gpubench.activity import demangling
from gpubench.activity.kernels import KernelNames, back_end_of, kernel_names
from gpubench.devices import current_platform

REDUCE = (
    "_ZN3cub17CUB_300102_SM_9006detail6reduce18DeviceReduceKernelINS2_10policy_hubIfj4plusE"
    "10Policy1000EPfjS5_S4_fEEvT0_PT3_T1_"
)
SORT = (
    "_ZN3cub17CUB_300102_SM_9006detail10radix_sort30DeviceRadixSortHistogramKernelINS1_5radix"
    "10policy_hubIfNS0_8NullTypeEyE10Policy1000ELNS0_9SortOrderE0EfyEEvPT2_PKT1_S9_iiT3_"
)


class CuptiError(Exception):
    """What the fake's functions raise; as in cupti-python, no kind of `RuntimeError`."""


class FakeCupti:
    """As much of cupti-python as gpubench uses; `launch` is a launch that CUPTI sees."""

    def __init__(self):
        self.log = []
        self.refusals = {}  # exceptions, by the function that raises them
        self.records = []
        self.enabled = set()
        self.subscriber = None
        self.complete = None
        self.n_launches = 0

    def install(self, monkeypatch):
        functions = ("subscribe", "unsubscribe")
        functions += tuple(
            f"activity_{name}" for name in ("register_callbacks", "enable", "flush_all", "disable")
        )
        module = ModuleType("cupti.cupti")
        module.ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=10)
        for name in functions:
            setattr(module, name, self._refusing(name))
        package = ModuleType("cupti")
        package.cupti = module
        monkeypatch.setitem(sys.modules, "cupti", package)
        monkeypatch.setitem(sys.modules, "cupti.cupti", module)

    def _refusing(self, name):
        def function(*args):
            self.log.append(name)
            if name in self.refusals:
                raise self.refusals[name]
            return getattr(self, name)(*args)

        return function

    def launch(self, name, *, kind=10, device_id=0, correlation_id=None):
        """What the record of a kernel says; the later it was launched, the sooner it ends here."""
        self.n_launches += 1
        if kind in self.enabled:
            record = SimpleNamespace(
                kind=kind,
                device_id=device_id,
                correlation_id=correlation_id or self.n_launches,
                start=1000 + self.n_launches,
                name=name,
            )
            self.records.insert(0, record)

    def subscribe(self, callback, userdata):
        if self.subscriber:
            raise CuptiError("ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)")
        self.subscriber = 7
        return self.subscriber

    def unsubscribe(self, subscriber):
        assert subscriber == self.subscriber
        self.subscriber = None

    def activity_register_callbacks(self, request, complete):
        size, n_records = request()
        assert size >= 1 << 20
        assert n_records == 0
        self.complete = complete

    def activity_enable(self, kind):
        self.enabled.add(kind)

    def activity_disable(self, kind):
        self.enabled.remove(kind)

    def activity_flush_all(self, flag):
        assert flag == 1
        self.complete(self.records)
        for record in self.records:  # its memory is CUPTI's again
            vars(record).clear()
        self.records = []


@pytest.fixture
def cupti(monkeypatch, fake_cuda):
    fake = FakeCupti()
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def no_cupti(monkeypatch, fake_cuda):
    monkeypatch.setitem(sys.modules, "cupti", None)


@pytest.fixture
def device(fake_cuda):
    return current_platform().device(0)


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
    def test_names_in_the_order_of_launch_without_repeats(self, cupti, device):
        def call():
            for name in ("b", "a", "b", "c"):
                cupti.launch(name)

        assert kernel_names(call, device) == KernelNames(("b", "a", "c"), "cupti")

    def test_the_kernels_of_a_graph_share_a_launch(self, cupti, device):
        def call():
            cupti.launch("before", correlation_id=5)
            cupti.launch("z", correlation_id=6)
            cupti.launch("a", correlation_id=6)

        assert kernel_names(call, device).names == ("before", "z", "a")

    def test_other_devices_and_other_records_dont_count(self, cupti, device):
        cupti.enabled.add(1)

        def call():
            cupti.launch("elsewhere", device_id=1)
            cupti.launch("copy", kind=1)
            cupti.launch("here")

        assert kernel_names(call, device).names == ("here",)

    def test_a_call_that_launches_nothing(self, cupti, device):
        assert kernel_names(lambda: None, device) == KernelNames((), "cupti")

    def test_order_of_what_is_asked_of_cupti(self, cupti, fake_cuda, device):
        cupti.log = fake_cuda.log
        kernel_names(lambda: fake_cuda.work(1e-6), device)
        assert fake_cuda.log == [
            "synchronize device 0",
            "subscribe",
            "activity_register_callbacks",
            "activity_enable",
            "work on 0",
            "synchronize device 0",
            "activity_flush_all",
            "activity_disable",
            "unsubscribe",
        ]

    def test_the_device_is_current_during_the_call_only(self, cupti, fake_cuda):
        fake_cuda.n_devices = 2
        seen = []
        kernel_names(lambda: seen.append(fake_cuda.device), current_platform().device(1))
        assert (seen, fake_cuda.device) == ([1], 0)

    def test_an_exception_of_the_call_ends_the_recording(self, cupti, device):
        def call():
            cupti.launch("lost")
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            kernel_names(call, device)
        assert (cupti.enabled, cupti.subscriber, cupti.records) == (set(), None, [])
        assert kernel_names(lambda: cupti.launch("next"), device).names == ("next",)

    def test_a_refusal_of_the_calls_own_reaches_the_caller(self, cupti, device):
        def call():
            raise gpubench.UnsupportedError("mine")

        with pytest.raises(gpubench.UnsupportedError, match=r"^mine$"):
            kernel_names(call, device)


class TestFallingThrough:
    @pytest.mark.parametrize(
        "function",
        [
            "subscribe",
            "activity_register_callbacks",
            "activity_enable",
            "activity_flush_all",
            "activity_disable",
            "unsubscribe",
        ],
    )
    @pytest.mark.parametrize("error", [CuptiError("ERROR_X (1)"), RuntimeError("no driver")])
    def test_whatever_cupti_refuses_the_graph_is_asked(
        self, cupti, fake_cuda, device, nodes, function, error
    ):
        cupti.refusals[function] = error
        found = kernel_names(lambda: fake_cuda.work(1e-6), device)
        assert found == KernelNames(("first", "second"), "graph")
        if function not in ("subscribe", "unsubscribe"):
            assert cupti.subscriber is None
        if function != "activity_disable":
            assert not cupti.enabled

    def test_another_profiler_keeps_its_records(self, cupti, fake_cuda, device, nodes):
        cupti.subscriber = 1
        assert kernel_names(lambda: fake_cuda.work(1e-6), device).source == "graph"
        assert cupti.log == ["subscribe"]

    def test_pytorchs_profiler_keeps_its_records(
        self, monkeypatch, cupti, fake_cuda, device, nodes
    ):
        profiler = ModuleType("torch.autograd.profiler")
        monkeypatch.setitem(sys.modules, "torch.autograd.profiler", profiler)
        for is_recording in (False, True):
            profiler._is_profiler_enabled = is_recording
            cupti.log.clear()
            found = kernel_names(lambda: fake_cuda.work(1e-6), device)
            assert found.source == ("graph" if is_recording else "cupti")
            assert bool(cupti.log) == (not is_recording)

    def test_the_reasons_when_nothing_helps(self, cupti, device, nodes):
        cupti.subscriber = 1
        assert kernel_names(lambda: None, device) == KernelNames(
            (),
            "",
            "cupti: CUPTI refuses to record: ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39); end "
            "the profiler that uses CUPTI now; graph: the call queues no kernel on the current "
            "stream",
        )

    def test_without_cupti_the_reason_names_the_extra(self, no_cupti, device, nodes):
        reason = kernel_names(lambda: None, device).reason
        assert reason.startswith(
            'cupti: cupti-python is not installed; pip install "gpubench[activity]"; graph: '
        )

    def test_a_broken_cupti(self, monkeypatch, device, nodes):
        monkeypatch.setitem(sys.modules, "cupti", ModuleType("cupti"))
        reason = kernel_names(lambda: None, device).reason
        assert reason.startswith("cupti: cupti-python can't be imported: cannot import name")

    def test_a_record_that_cant_be_read_raises_nothing_into_cupti(self, cupti, device, nodes):
        def call():
            cupti.launch("fine")
            if cupti.records:
                del cupti.records[0].name

        found = kernel_names(call, device)
        assert found.source == ""
        assert "records of this cupti-python can't be read: AttributeError" in found.reason
        assert not cupti.enabled

    def test_a_call_that_refuses_to_be_captured(self, no_cupti, fake_cuda, device, nodes):
        def call():
            if fake_cuda.captured:
                raise NotImplementedError("calling cuBLAS is unsupported")

        reason = kernel_names(call, device).reason
        assert reason.endswith("graph: NotImplementedError: calling cuBLAS is unsupported")

    def test_a_result_is_a_value(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            KernelNames(("a",), "cupti").source = "graph"

    def test_any_device_without_records_is_captured(self):
        recorder = RecordingGpu().device(0)

        def no_records(work):
            raise gpubench.UnsupportedError("no records")

        recorder.record_kernels = no_records
        recorder.capture = lambda work: SimpleNamespace(kernel_names=("a", "a", "b"))
        assert kernel_names(lambda: None, recorder) == KernelNames(("a", "b"), "graph")


class TestGraph:
    def find(self, fake_cuda, device):
        return kernel_names(lambda: fake_cuda.work(1e-6), device)

    def test_graphs_inside_it(self, no_cupti, fake_cuda, device, nodes):
        nodes.insert(1, SimpleNamespace(kind="graph", graph=[kernel(b"inner"), kernel(b"first")]))
        assert self.find(fake_cuda, device).names == ("first", "inner", "second")

    def test_kernels_that_are_not_loaded_yet(self, no_cupti, fake_cuda, device, nodes):
        nodes[0].func = 0
        assert self.find(fake_cuda, device).names == ("kernel first", "second")

    def test_bindings_that_are_too_old(self, no_cupti, fake_cuda, device, nodes):
        del fake_cuda.driver.cuFuncGetName
        assert "graph: cuFuncGetName can't be called: " in self.find(fake_cuda, device).reason

    def test_a_driver_that_is_too_old(self, no_cupti, fake_cuda, device, nodes):
        def missing(handle):
            raise RuntimeError("function cuFuncGetName is not found")

        fake_cuda.driver.cuFuncGetName = missing
        reason = self.find(fake_cuda, device).reason
        assert reason.endswith("can't be called: function cuFuncGetName is not found")

    def test_a_driver_that_refuses(self, no_cupti, fake_cuda, device, nodes):
        fake_cuda.driver.cuGraphNodeGetType = lambda node: (1, None)
        reason = self.find(fake_cuda, device).reason
        assert reason.endswith("graph: the CUDA driver refused cuGraphNodeGetType: 1")

    def test_without_cuda_bindings(self, no_cupti, monkeypatch, fake_cuda, device, nodes):
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
        assert "cuda-bindings can't be imported" in self.find(fake_cuda, device).reason


class TestSimulated:
    def test_kernels_of_all_streams_in_the_order_of_launch(self, gpu):
        side = gpu.stream()
        gpu.launch(1e-3, "before")

        def call():
            side.launch(5e-3, "long")
            gpu.launch(1e-6, "short")
            side.record(gpu.device(0).create_event())
            gpu.launch(1e-6, "short")

        found = kernel_names(call, gpu.device(0))
        assert found == KernelNames(("long", "short"), "cupti")
        assert gpu.device(0).record_kernels(call) == ("long", "short", "short")

    def test_other_devices_dont_count(self):
        with gpubench.simulated_gpu(n_devices=2) as gpu:

            def call():
                gpu.launch(1e-6, "here")
                gpu.use_device(1)
                gpu.launch(1e-6, "there")
                gpu.use_device(0)

            assert kernel_names(call, gpu.device(0)).names == ("here",)
            assert kernel_names(call, gpu.device(1)).names == ("there",)

    def test_a_kernel_may_have_any_name(self, gpu):
        assert kernel_names(lambda: gpu.launch(0, "event"), gpu.device(0)).names == ("event",)

    def test_the_kernels_inside_a_graph(self, gpu):
        graph = gpu.device(0).capture(lambda: [gpu.launch(1e-6, name) for name in "aba"])
        assert graph.kernel_names == ("a", "b", "a")
        assert kernel_names(graph.launch, gpu.device(0)).names == ("a", "b")

    def test_an_exception_of_the_call(self, gpu):
        with pytest.raises(ZeroDivisionError):
            kernel_names(lambda: 1 // 0, gpu.device(0))


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
    def test_names_are_as_in_the_source(self, cupti, device):
        found = kernel_names(lambda: cupti.launch("_Z4scanIfEvPT_i"), device)
        assert found.names == ("void scan<float>(float*, int)",)

    @pytest.mark.parametrize("name", ["f", "cupy_sum", "_Z", "_Zbad", ""])
    def test_other_names_stay_as_they_are(self, name):
        assert demangling.demangled(name) == name

    def test_without_the_library(self, monkeypatch):
        def missing(name):
            raise OSError(name)

        monkeypatch.setattr(ctypes, "CDLL", missing)
        assert demangling.demangled("_Z4scanIfEvPT_i") == "_Z4scanIfEvPT_i"
