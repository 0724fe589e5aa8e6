"""Which devices there are, why there is none, and what NVML says of one."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import gpubench
from gpubench import benchmark
from gpubench.devices import current_platform
from gpubench.devices.host import HostPlatform
from gpubench.devices.nvml import DeviceState, read_state


def reason():
    """Why no GPU is found."""
    platform = current_platform()
    assert isinstance(platform, HostPlatform)
    return platform.reason


class BrokenFinder:
    """A CuPy whose import fails in some way."""

    def __init__(self, error):
        self._error = error

    def find_spec(self, name, path=None, target=None):
        if name == "cupy":
            raise self._error


@pytest.fixture
def break_cupy(monkeypatch):
    def break_it(error):
        monkeypatch.delitem(sys.modules, "cupy", raising=False)
        monkeypatch.setattr(sys, "meta_path", [BrokenFinder(error), *sys.meta_path])

    return break_it


class TestWhyThereIsNoGpu:
    def test_no_cupy(self, break_cupy):
        break_cupy(ModuleNotFoundError("No module named 'cupy'", name="cupy"))
        assert reason() == 'CuPy is not installed; pip install "gpubench[cuda12]" (or [cuda13])'

    def test_cupy_hidden(self, no_cupy):
        assert reason().startswith("CuPy is not installed")

    @pytest.mark.parametrize(
        "error",
        [
            ImportError("libcudart.so.12: cannot open shared object file"),
            ModuleNotFoundError("No module named 'fastrlock'", name="fastrlock"),
            RuntimeError("CuPy failed to load libnvrtc.so.12"),
            AttributeError("partially initialized module"),
        ],
    )
    def test_cupy_that_fails_to_import(self, break_cupy, error):
        break_cupy(error)
        assert reason() == f"CuPy can't be imported: {error}"

    def test_no_driver(self, fake_cuda):
        fake_cuda.driver_version = 0
        fake_cuda.device_error = "cudaErrorInsufficientDriver: CUDA driver version is insufficient"
        assert reason() == "there is no NVIDIA driver; install one"

    def test_driver_too_old(self, fake_cuda):
        fake_cuda.driver_version = 11040
        fake_cuda.device_error = "cudaErrorInsufficientDriver: CUDA driver version is insufficient"
        assert reason() == (
            "the driver supports CUDA 11.4, which is too old for this CuPy (CUDA 12); update the "
            "driver or install the CuPy for its version"
        )

    @pytest.mark.parametrize("visible", ["", "7", None])
    @pytest.mark.parametrize("error", [None, "cudaErrorNoDevice: no CUDA-capable device"])
    def test_no_device(self, fake_cuda, monkeypatch, visible, error):
        if visible is None:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        else:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        fake_cuda.n_devices = 0
        fake_cuda.device_error = error
        shown = "unset" if visible is None else visible
        assert reason() == (
            "the driver shows no device to this process; see nvidia-smi and CUDA_VISIBLE_DEVICES "
            f"(now {shown!r})"
        )

    def test_driver_that_fails_otherwise(self, fake_cuda):
        fake_cuda.device_error = "cudaErrorSystemNotReady: system not yet initialized"
        assert reason() == (
            "the CUDA driver fails: cudaErrorSystemNotReady: system not yet initialized"
        )

    def test_the_reasons_tell_each_other_apart_in_the_result(self, fake_cuda):
        texts = set()
        for version, error in [
            (0, None),
            (13000, "cudaErrorNoDevice"),
            (13000, "cudaErrorUnknown"),
        ]:
            fake_cuda.driver_version, fake_cuda.device_error = version, error
            result = benchmark(sum, ([1, 2],), n_repeat=1)
            assert [note.code for note in result.notes][:1] == ["no-gpu"]
            assert (result.method, result.environment["platform"]) == ("host", "host")
            texts.add(str(result.notes[0]))
        assert len(texts) == 3

    def test_a_device_that_appears_is_found(self, fake_cuda):
        fake_cuda.device_error = "cudaErrorNoDevice"
        assert isinstance(current_platform(), HostPlatform)
        fake_cuda.device_error = None
        assert (current_platform().name, current_platform().device_count()) == ("cuda", 1)


class TestWhichPlatform:
    def test_cuda_is_found_once(self, fake_cuda):
        assert current_platform().name == "cuda"
        assert current_platform() is current_platform()

    def test_a_simulated_gpu_in_use_comes_first(self, fake_cuda):
        with gpubench.simulated_gpu() as gpu:
            assert current_platform() is gpu
        assert current_platform().name == "cuda"

    def test_a_simulated_gpu_needs_no_cupy(self, no_cupy):
        with gpubench.simulated_gpu() as gpu:
            assert benchmark(gpu.launch, (1e-6,), n_repeat=2).devices == (0,)


class TestHostPlatform:
    def test_it_has_no_devices_and_says_why(self):
        host = HostPlatform("the GPU is at the cleaner's")
        assert (host.name, host.device_count()) == ("host", 0)
        for ask in (host.current_device, host.gate, lambda: host.device(3)):
            with pytest.raises(gpubench.UnsupportedError, match="at the cleaner's"):
                ask()
        with pytest.raises(gpubench.UnsupportedError, match="no GPU 3"):
            host.device(3)

    def test_there_is_nothing_to_restore(self):
        with HostPlatform("none").preserved() as go_home:
            assert go_home() is None


class NVMLError(Exception):
    pass


class NVMLNotFoundError(NVMLError):
    pass


def fake_nvml(reasons=0, missing=()):
    """A pynvml with one device, at PCI address 1:2:3, some of whose functions fail."""
    nvml = ModuleType("pynvml")

    def by_address(address):
        if address != b"1:2:3":
            raise NVMLNotFoundError
        return "handle"

    functions = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByPciBusId": by_address,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: reasons,
        "nvmlDeviceGetClockInfo": lambda handle, clock: {0: 1980, 1: 2619}[clock],
        "nvmlDeviceGetTemperature": lambda handle, sensor: 41,
    }

    def fail(*args):
        raise NVMLNotFoundError

    vars(nvml).update(functions, **dict.fromkeys(missing, fail))
    vars(nvml).update(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=0,
        NVML_CLOCK_MEM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlClocksThrottleReasonNone=0x0,
        nvmlClocksThrottleReasonGpuIdle=0x1,
        nvmlClocksThrottleReasonApplicationsClocksSetting=0x2,
        nvmlClocksThrottleReasonUserDefinedClocks=0x2,
        nvmlClocksThrottleReasonSwPowerCap=0x4,
        nvmlClocksThrottleReasonHwThermalSlowdown=0x40,
        nvmlClocksThrottleReasonAll=0x47,
    )
    return nvml


class TestNvml:
    @pytest.fixture
    def nvml(self, monkeypatch):
        def install(**options):
            monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(**options))

        return install

    def test_a_state_in_hertz_and_degrees(self, nvml):
        nvml()
        assert read_state("1:2:3") == DeviceState(
            sm_clock=1.98e9, memory_clock=2.619e9, temperature=41.0, throttle_reasons=()
        )

    @pytest.mark.parametrize(
        ("reasons", "names"),
        [
            (0x0, ()),
            (0x1, ()),
            (0x2, ()),
            (0x3, ()),
            (0x4, ("SwPowerCap",)),
            (0x45, ("HwThermalSlowdown", "SwPowerCap")),
            (0x8000, ()),
        ],
    )
    def test_what_slows_down_is_named_and_what_is_wanted_is_not(self, nvml, reasons, names):
        nvml(reasons=reasons)
        assert read_state("1:2:3").throttle_reasons == names

    def test_another_device_is_unknown(self, nvml):
        nvml()
        assert read_state("3:2:1") is None
        assert read_state("") is None

    @pytest.mark.parametrize(
        "function", ["nvmlInit", "nvmlDeviceGetClockInfo", "nvmlDeviceGetTemperature"]
    )
    def test_what_nvml_refuses_is_unknown(self, nvml, function):
        nvml(missing=(function,))
        assert read_state("1:2:3") is None

    def test_without_the_package_it_is_unknown(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pynvml", None)
        assert read_state("1:2:3") is None

    def test_states_make_notes_and_stand_in_the_environment(self, nvml, gpu, monkeypatch):
        nvml(reasons=0x4)
        properties = SimpleNamespace(**{**vars(gpu.device(0).properties), "pci_bus_id": "1:2:3"})
        monkeypatch.setattr(gpu.device(0), "properties", properties)
        result = benchmark(gpu.launch, (1e-4,), n_repeat=5)
        assert "GPU-0 was slowed down (SwPowerCap)" in str(result)
        state = {
            "sm_clock_hz": 1.98e9,
            "memory_clock_hz": 2.619e9,
            "temperature_c": 41.0,
            "throttle_reasons": ["SwPowerCap"],
        }
        assert result.environment["device_states"] == [[state, state]]
