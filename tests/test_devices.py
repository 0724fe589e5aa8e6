"""Which devices there are, why there is none, and what NVML says of one."""

import sys
from types import SimpleNamespace

import pytest
from fake_nvml import FakeNvml

import gpubench
from gpubench import benchmark
from gpubench.devices import current_platform
from gpubench.devices.host import HostPlatform
from gpubench.devices.nvml import DeviceState, find_sensors, read_state

ASK = "run gpubench info, which says what to do"


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
        assert reason() == f"CuPy can't be imported: {error}; {ASK}"

    def test_the_page_that_cupy_makes_of_a_failure_is_left_out(self, break_cupy):
        page = ImportError("\n=====\nFailed to import CuPy.\n\nOriginal error:\n  ...\n=====\n")
        page.__cause__ = ImportError("libcublas.so.13: cannot open shared object file")
        break_cupy(page)
        assert reason() == f"CuPy can't be imported: {page.__cause__}; {ASK}"
        assert "\\n" not in str(benchmark(len, ("",), n_repeat=1))

    def test_no_driver(self, fake_cuda):
        fake_cuda.driver_version = 0
        fake_cuda.device_error = "cudaErrorInsufficientDriver: CUDA driver version is insufficient"
        assert reason() == f"there is no NVIDIA driver; {ASK}"

    def test_driver_too_old(self, fake_cuda):
        fake_cuda.driver_version = 11040
        fake_cuda.device_error = "cudaErrorInsufficientDriver: CUDA driver version is insufficient"
        assert reason() == (
            f"the driver supports CUDA 11.4, which is too old for this CuPy (CUDA 12); {ASK}"
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
            f"the CUDA driver fails: cudaErrorSystemNotReady: system not yet initialized; {ASK}"
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


class TestNvml:
    @pytest.fixture
    def nvml(self, monkeypatch):
        def install(**options):
            fake = FakeNvml(**options)
            monkeypatch.setitem(sys.modules, "pynvml", fake)
            return fake

        return install

    def test_the_fake_has_the_names_of_the_real_one(self):
        real = vars(pytest.importorskip("pynvml"))
        fake = {**vars(FakeNvml), **vars(FakeNvml())}
        names = [name for name in fake if name.lower().startswith("nvml")]
        assert len(names) > 20
        assert [n for n in names if n not in real] == []

    def test_a_state_in_hertz_and_degrees(self, nvml):
        nvml()
        assert read_state("1:2:3") == DeviceState(
            sm_clock=1.98e9,
            memory_clock=2.619e9,
            temperature=41.0,
            throttle_reasons=(),
            thermal_margin=46.0,
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

    @pytest.mark.parametrize(
        ("missing", "margin"),
        [
            ((), 46.0),
            (("nvmlDeviceGetMarginTemperature",), 90.0 - 41.0),
            (("nvmlDeviceGetMarginTemperature", "nvmlDeviceGetTemperatureThreshold"), None),
        ],
    )
    def test_the_margin_is_told_or_follows_from_the_threshold_or_is_unknown(
        self, nvml, missing, margin
    ):
        nvml(missing=missing)
        assert read_state("1:2:3").thermal_margin == margin

    def test_a_function_that_an_old_package_lacks_is_like_one_that_fails(self, nvml):
        nvml(nvmlDeviceGetMarginTemperature=None)
        assert read_state("1:2:3").thermal_margin == 90.0 - 41.0

    def test_sensors_are_in_the_units_of_the_si(self, nvml):
        nvml(reasons=0x44)
        sensors = find_sensors("1:2:3")
        assert sensors.driver() == "570.1"
        assert sensors.sm_clock() == 1.98e9
        assert sensors.memory_clock() == 2.619e9
        assert sensors.temperature() == 41.0
        assert sensors.thermal_margin() == 46.0
        assert sensors.power() == pytest.approx(71.16)
        assert sensors.energy() == pytest.approx(5.0)
        assert sensors.memory_used_bytes() == 3 * 2**30
        assert sensors.throttle_reasons() == ("HwThermalSlowdown", "SwPowerCap")

    def test_a_driver_version_in_bytes_is_text_too(self, nvml):
        nvml(nvmlSystemGetDriverVersion=lambda: b"450.80")
        assert find_sensors("1:2:3").driver() == "450.80"

    @pytest.mark.parametrize(
        ("address", "options", "message"),
        [
            ("", {}, "the device is not on the PCI bus, so NVML doesn't know it"),
            ("3:2:1", {}, "nvmlDeviceGetHandleByPciBusId failed: Not Found"),
            ("1:2:3", {"missing": ("nvmlInit",)}, "nvmlInit failed: Not Found"),
            ("1:2:3", {"nvmlInit": None}, "nvidia-ml-py has no nvmlInit; upgrade it"),
        ],
    )
    def test_why_there_are_no_sensors(self, nvml, address, options, message):
        nvml(**options)
        with pytest.raises(gpubench.UnsupportedError) as caught:
            find_sensors(address)
        assert str(caught.value) == message

    def test_why_there_are_none_without_the_package(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pynvml", None)
        with pytest.raises(gpubench.UnsupportedError, match="pip install nvidia-ml-py"):
            find_sensors("1:2:3")

    def test_one_sensor_may_be_missing(self, nvml):
        nvml(missing=("nvmlDeviceGetPowerUsage",))
        sensors = find_sensors("1:2:3")
        assert sensors.energy() == pytest.approx(5.0)
        with pytest.raises(gpubench.UnsupportedError, match="nvmlDeviceGetPowerUsage failed"):
            sensors.power()

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
