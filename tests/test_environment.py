"""What a result says of the machine and the software it was taken on."""

import datetime
import json
import os
import platform
import sys
from types import ModuleType

import numpy as np
import pytest

import gpubench
from gpubench import environment
from gpubench.devices.host import HostPlatform
from gpubench.devices.nvml import DeviceState
from gpubench.environment import describe_environment

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
