"""What a result says of the machine and the software it was taken on."""

import datetime
import json
import os
import platform
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from fake_nvml import FakeNvml

import gpubench
from gpubench import environment
from gpubench.devices.cuda import find_cuda
from gpubench.devices.host import HostPlatform
from gpubench.devices.nvml import DeviceState
from gpubench.environment import describe_environment, describe_run, git_state

HOST = HostPlatform("there is none")


def test_the_host_and_the_software():
    described = describe_environment(HOST)
    assert described["python"] == platform.python_version()
    assert described["numpy"] == np.__version__
    assert described["gpubench"] == gpubench.__version__
    assert described["host"] == platform.node()
    assert described["n_cpus"] == os.cpu_count()
    assert described["cpu"]
    assert described["platform"] == "host"
    assert described["cuda"] is None
    assert (described["devices"], described["device_states"]) == ([], [])


def test_it_is_plain_json():
    described = describe_environment(HOST)
    assert json.loads(json.dumps(described, allow_nan=False)) == described


def test_the_keys_are_the_same_whatever_was_measured(gpu, no_cupy):
    state = DeviceState(1e9, 2e9, 40.0, ("SwPowerCap",))
    described = describe_environment(gpu, [gpu.device(0)], [(state, None)])
    assert described.keys() == describe_environment(HOST).keys()
    assert described["devices"] == [
        {
            "id": 0,
            "name": "simulated GPU",
            "uuid": "simulated-0",
            "pci_bus_id": "",
            "compute_capability": "",
            "memory_bytes": 0,
            "l2_bytes": 50_000_000,
        }
    ]
    ((before, after),) = described["device_states"]
    assert before["throttle_reasons"] == ["SwPowerCap"]
    assert after is None


def test_the_date_is_now_in_utc():
    date = datetime.datetime.fromisoformat(describe_environment(HOST)["date"])
    assert date.utcoffset() == datetime.timedelta(0)
    now = datetime.datetime.now(datetime.timezone.utc)
    assert abs(now - date) < datetime.timedelta(minutes=1)


def test_variables_that_change_what_is_measured_as_they_are(monkeypatch):
    monkeypatch.setenv("CUPY_ACCELERATORS", "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    variables = describe_environment(HOST)["variables"]
    assert (variables["CUPY_ACCELERATORS"], variables["CUDA_VISIBLE_DEVICES"]) == ("", "1")
    assert "CUDA_LAUNCH_BLOCKING" not in variables


def test_frameworks_are_named_if_they_are_loaded(monkeypatch):
    torch = ModuleType("torch")
    torch.__version__ = "2.9.0+cu128"
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setitem(sys.modules, "warp", ModuleType("warp"))  # one without a version
    frameworks = describe_environment(HOST)["frameworks"]
    assert frameworks["torch"] == "2.9.0+cu128"
    assert "numba" not in frameworks
    assert "warp" not in frameworks


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_without_proc_the_processor_still_has_a_name(monkeypatch, error):
    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr(environment, "open", refuse, raising=False)
    environment._cpu_name.cache_clear()
    try:
        assert describe_environment(HOST)["cpu"] in (platform.processor(), platform.machine())
        assert describe_environment(HOST)["cpu"]
    finally:
        environment._cpu_name.cache_clear()


def test_an_unknown_version_is_null(monkeypatch):
    def missing(name):
        raise environment.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(environment.metadata, "version", missing)
    environment._version.cache_clear()
    try:
        assert describe_environment(HOST)["numpy"] is None
    finally:
        environment._version.cache_clear()


def test_a_result_carries_it(gpu):
    result = gpubench.benchmark(gpu.launch, (1e-6,), n_repeat=1)
    assert result.environment["platform"] == "simulated"
    assert result.to_dict()["environment"]["devices"][0]["name"] == "simulated GPU"


def test_all_of_cupys_variables_and_no_others(monkeypatch):
    for name in [name for name in os.environ if name.startswith("CUPY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CUPY_TF32", "1")
    monkeypatch.setenv("CUPY_CACHE_DIR", "/x")
    monkeypatch.setenv("SECRET_TOKEN", "1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    variables = describe_environment(HOST)["variables"]
    assert variables == {"CUPY_CACHE_DIR": "/x", "CUPY_TF32": "1"}


def test_the_accelerators_in_effect_if_cupy_is_loaded(monkeypatch):
    settings = {
        "get_elementwise_accelerators": list,
        "get_reduction_accelerators": lambda: [1],
        "get_routine_accelerators": lambda: [1, 9],
        "_accelerator": SimpleNamespace(ACCELERATOR_CUB=1),
    }
    cupy = SimpleNamespace(_core=SimpleNamespace(**settings), __version__="14")
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert describe_environment(HOST)["accelerators"] == {
        "elementwise": [],
        "reduction": ["cub"],
        "routine": ["cub", "9"],
    }
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())
    assert describe_environment(HOST)["accelerators"] is None
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert describe_environment(HOST)["accelerators"] is None


class TestCuda:
    NVMLS = "GPU-of-nvml"

    @pytest.fixture
    def nvml(self, monkeypatch):
        nvml = FakeNvml(nvmlDeviceGetUUID=lambda handle: self.NVMLS)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        environment._driver.cache_clear()
        yield nvml
        environment._driver.cache_clear()

    def describe(self, fake_cuda, monkeypatch, **fields):
        runtime = sys.modules["cupy"].cuda.runtime
        known = runtime.getDeviceProperties(0)
        monkeypatch.setattr(runtime, "getDeviceProperties", lambda device: {**known, **fields})
        monkeypatch.setattr(runtime, "deviceGetPCIBusId", lambda device: "1:2:3")
        platform = find_cuda()
        return describe_environment(platform, [platform.device(0)])

    def test_driver_and_uuid(self, fake_cuda, nvml, monkeypatch):
        described = self.describe(fake_cuda, monkeypatch, uuid=bytes(range(16)))
        assert described["driver"] == "570.1"
        uuid = described["devices"][0]["uuid"]
        assert uuid == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"

    def test_nvml_tells_the_uuid_that_cupy_cuts_off(self, fake_cuda, nvml, monkeypatch):
        described = self.describe(fake_cuda, monkeypatch, uuid=b"\x01\x02")
        assert described["devices"][0]["uuid"] == self.NVMLS

    def test_without_nvml_they_are_unknown(self, fake_cuda, monkeypatch):
        monkeypatch.setitem(sys.modules, "pynvml", None)
        environment._driver.cache_clear()
        described = self.describe(fake_cuda, monkeypatch)
        environment._driver.cache_clear()
        assert described["driver"] is None
        assert described["devices"][0]["uuid"] == ""


class TestGit:
    def git(self, folder, *args):
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", folder, *names, *args], check=True, capture_output=True)

    def test_the_commit_and_whether_anything_differs_from_it(self, tmp_path):
        assert git_state(tmp_path) is None
        self.git(tmp_path, "init", "-q")
        assert git_state(tmp_path) is None  # no commit
        (tmp_path / "file").write_text("1")
        self.git(tmp_path, "add", "file")
        self.git(tmp_path, "commit", "-q", "-m", "x")
        state = git_state(tmp_path)
        assert (len(state["commit"]), state["dirty"]) == (40, False)
        (tmp_path / "another").write_text("1")  # which git doesn't track
        assert git_state(tmp_path) == state
        (tmp_path / "file").write_text("2")
        assert git_state(tmp_path) == {**state, "dirty": True}

    def test_without_git_it_is_unknown(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert git_state(".") is None


def test_a_run_has_a_start(tmp_path):
    zone = datetime.timezone(datetime.timedelta(hours=1))
    described = describe_run(datetime.datetime(2026, 1, 1, 1, tzinfo=zone), tmp_path)
    assert described == {"started": "2026-01-01T00:00:00+00:00", "git": None}
