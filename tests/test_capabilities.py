"""What a machine can do, and the next command for each common mistake in setting one up."""

import ctypes
import os
import sys
from types import ModuleType, SimpleNamespace

import pytest

from gpubench.accelerator import Accelerators
from gpubench.capabilities import capabilities, driver, framework, tools
from gpubench.capabilities.capability import Capability, first_line, lacking


class Library:
    """NVIDIA's driver library; `status` is what its initialization returns."""

    def __init__(self, cuda=12080, names=(b"Some GPU",), status=0):
        self.cuda, self.names, self.status = cuda, names, status

    def cuDriverGetVersion(self, number):  # noqa: N802
        number._obj.value = self.cuda
        return 0

    def cuInit(self, flags):  # noqa: N802
        return self.status

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = len(self.names)
        return 0

    def cuDeviceGet(self, device, number):  # noqa: N802
        device._obj.value = number
        return 0

    def cuDeviceGetName(self, buffer, size, device):  # noqa: N802
        buffer.value = self.names[device.value]
        return 0

    def cuGetErrorString(self, status, text):  # noqa: N802
        text._obj.value = b"a fault of some kind"
        return 0


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Set up a machine: its driver's library, NVIDIA's files, its PCI bus, its CuPy packages."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    names = ("_VERSION_FILE", "_PARAMETERS_FILE", "_STATUS_FILE", "_PCI_DEVICES", "_WSL")
    files = {name: tmp_path / name for name in names}
    for name, path in files.items():
        monkeypatch.setattr(driver, name, path)
    monkeypatch.setattr(driver, "_CONTAINER_SIGNS", (tmp_path / "container",))
    monkeypatch.setattr(driver.shutil, "which", lambda name: None)
    files["_PCI_DEVICES"].mkdir()

    def set_up(library=None, packages=(), pci=(), **texts):
        def load(name):
            if library is None or name != "libcuda.so.1":
                raise OSError(f"{name}: cannot open shared object file")
            return library

        monkeypatch.setattr(ctypes, "CDLL", load)
        distributions = [SimpleNamespace(name=name) for name in packages]
        monkeypatch.setattr(framework.metadata, "distributions", lambda: distributions)
        for number, (vendor, kind) in enumerate(pci):
            folder = files["_PCI_DEVICES"] / str(number)
            folder.mkdir()
            (folder / "vendor").write_text(f"{vendor}\n")
            (folder / "class").write_text(f"{kind}\n")
        for name, text in texts.items():
            files[f"_{name.upper()}_FILE"].write_text(text)
        return driver.find_driver()

    set_up.container = tmp_path / "container"
    return set_up


GPU = ("0x10de", "0x030200")
NETWORK = ("0x10de", "0x020000")


class TestDriver:
    def test_found(self, machine):
        text = (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build\n"
            "GCC version:  gcc version 12.3.0\n"
        )
        found = machine(Library(names=(b"NVIDIA H200", b"NVIDIA L4")), version=text)
        assert driver.driver_capability(found) == Capability(
            "driver", True, "570.86.10 for CUDA up to 12.8"
        )
        assert driver.device_capability(found) == Capability("GPU", True, "NVIDIA H200, NVIDIA L4")

    def test_none_and_no_gpu(self, machine):
        found = driver.driver_capability(machine(pci=[NETWORK, ("0x8086", "0x030000")]))
        assert (found.available, found.detail) == (False, "none, and no NVIDIA GPU is to be seen")
        assert found.remedy.startswith("gpubench demo")

    def test_none_though_there_is_a_gpu(self, machine, monkeypatch):
        assert machine(pci=[NETWORK, GPU]) is None
        found = driver.driver_capability(None)
        assert found.detail == "none, though there is an NVIDIA GPU"
        assert found.remedy.startswith("install it: https://docs.nvidia.com/")
        monkeypatch.setattr(driver.shutil, "which", lambda name: f"/usr/bin/{name}")
        assert driver.driver_capability(None).remedy == "sudo ubuntu-drivers install"

    def test_none_in_a_container(self, machine):
        machine(pci=[GPU])
        machine.container.touch()
        found = driver.driver_capability(None)
        assert found.detail == "none in this container"
        assert found.remedy.endswith("docker run --gpus all ...")

    @pytest.mark.parametrize("status", [0, 100])
    def test_no_device(self, status, machine, monkeypatch):
        found = driver.device_capability(machine(Library(names=(), status=status)))
        assert (found.available, found.detail) == (False, "the driver sees none")
        assert found.remedy.startswith("nvidia-smi")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        found = driver.device_capability(driver.find_driver())
        assert found.detail == "CUDA_VISIBLE_DEVICES='' hides them all"
        assert found.remedy == "unset CUDA_VISIBLE_DEVICES"

    @pytest.mark.parametrize(
        ("status", "remedy"), [(803, "sudo reboot"), (999, "sudo modprobe"), (46, "nvidia-smi")]
    )
    def test_a_driver_that_fails(self, status, remedy, machine):
        found = driver.device_capability(machine(Library(status=status)))
        assert found.detail == f"the driver fails: a fault of some kind ({status})"
        assert found.remedy.startswith(remedy)


class TestCounters:
    def test_for_everyone(self, machine):
        machine(parameters="EnableMSI: 1\nRmProfilingAdminOnly: 0\n")
        assert driver.counters_capability().available is True

    def test_for_an_administrator(self, machine):
        admin, nobody = f"{1 << 21:016x}", f"{(1 << 40) - 1 & ~(1 << 21):016x}"
        machine(parameters="RmProfilingAdminOnly: 1\n", status=f"Uid: 0\nCapEff:\t{admin}\n")
        assert driver.counters_capability().available is True
        machine(status=f"CapEff:\t{nobody}\n")
        found = driver.counters_capability()
        assert (found.available, found.detail) == (False, "only an administrator may read them")
        assert "NVreg_RestrictProfilingToAdminUsers=0" in found.remedy

    def test_unknown(self, machine):
        machine()
        assert driver.counters_capability().available is None


class TestCupy:
    def test_missing(self, machine, no_cupy):
        for cuda, extra in ((11040, 12), (12080, 12), (13000, 13), (14000, 13)):
            found = framework.cupy_capability(machine(Library(cuda)))
            assert (found.available, found.detail) == (False, "not installed")
            assert found.remedy == f'pip install "gpubench[cuda{extra}]"'
        assert framework.cupy_capability(None).remedy == 'pip install "gpubench[cuda12]"'

    def test_of_the_wrong_cuda(self, machine, fake_cuda):
        found = framework.cupy_capability(machine(Library(12080), ["numpy", "CuPy_CUDA13x"]))
        assert (found.available, found.detail) == (False, "cupy-cuda13x needs a driver for CUDA 13")
        assert found.remedy == ('pip uninstall -y cupy-cuda13x && pip install "gpubench[cuda12]"')

    def test_several_at_once(self, machine, fake_cuda):
        packages = ["cupy-cuda13x", "cupy-cuda12x", "cupyx-something"]
        found = framework.cupy_capability(machine(Library(13000), packages))
        assert found.detail.startswith("cupy-cuda12x and cupy-cuda13x are installed")
        assert found.remedy == (
            'pip uninstall -y cupy-cuda12x cupy-cuda13x && pip install "gpubench[cuda13]"'
        )

    def test_what_is_installed_is_mended_rather_than_another_put_beside_it(self, machine):
        for cuda, package, extra in (
            (13000, "cupy-cuda12x", 12),
            (13000, "cupy-cuda13x", 13),
            (13000, "cupy", 13),
            (12080, "cupy-cuda13x", 12),
        ):
            found = machine(Library(cuda), [package])
            assert framework.install_command(found) == f'pip install "gpubench[cuda{extra}]"'
        machine(None, ["cupy-cuda13x"])
        assert framework.install_command(None) == 'pip install "gpubench[cuda13]"'

    @pytest.mark.parametrize("cuda", [12080, 13000])
    def test_one_for_this_driver_or_an_older_one(self, cuda, machine, fake_cuda):
        found = framework.cupy_capability(machine(Library(cuda), ["cupy-cuda12x"]))
        assert found == Capability("CuPy", True, "14.0.0 for CUDA 12.9")

    def test_that_can_not_be_imported(self, machine, monkeypatch, tmp_path):
        monkeypatch.delitem(sys.modules, "cupy", raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        file = tmp_path / "cupy.py"
        file.write_text("raise RuntimeError('broken\\nin many ways')")
        found = framework.cupy_capability(machine(Library(13000)))
        assert found.detail == "can't be imported: broken"
        assert found.remedy == 'pip install --force-reinstall "gpubench[cuda13]"'
        file.write_text("import a_module_that_is_not_there")
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        found = framework.cupy_capability(None)
        assert found.detail == "can't be imported: No module named 'a_module_that_is_not_there'"


class TestCompiler:
    @pytest.fixture
    def cupy(self, fake_cuda):
        return sys.modules["cupy"]

    def test_its_library(self, cupy, machine):
        machine()
        cupy.cuda.nvrtc = SimpleNamespace(getVersion=lambda: (12, 9))
        assert framework.compiler_capability(None) == Capability("NVRTC", True, "12.9")

        def fail():
            raise RuntimeError("CuPy failed to load libnvrtc.so.12: OSError: no such file\nHints")

        cupy.cuda.nvrtc.getVersion = fail
        found = framework.compiler_capability(None)
        assert found.detail == "CuPy failed to load libnvrtc.so.12: OSError: no such file"
        assert found.remedy == 'pip install "gpubench[cuda12]"'

    @pytest.mark.parametrize("before", [None, "0"])
    def test_its_headers(self, before, cupy, machine, monkeypatch):
        machine()
        if before is None:
            monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
        else:
            monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", before)
        seen = []

        class Module:
            problem = ""

            def __init__(self, code):
                seen.append((code.splitlines()[0], os.environ["CUPY_CACHE_IN_MEMORY"]))

            def compile(self):
                if Module.problem:
                    raise RuntimeError(Module.problem)

        cupy.RawModule = Module
        assert framework.headers_capability(None).available is True
        Module.problem = "x.cu(1): catastrophic error: cannot open source file\n\n1 error"
        found = framework.headers_capability(None)
        assert found.detail == "x.cu(1): catastrophic error: cannot open source file"
        assert found.remedy == 'pip install "gpubench[cuda12]"'
        assert set(seen) == {("#include <cuda_fp16.h>", "1")}
        assert os.environ.get("CUPY_CACHE_IN_MEMORY") == before


def test_accelerators(monkeypatch):
    state = Accelerators(
        elementwise=(),
        reduction=("cub",),
        routine=("cub",),
        variable=None,
        from_variable=("cub",),
        available=("cub", "other"),
        unavailable={"cutensor": 'not found; pip install "gpubench[cuda12,cutensor12]"'},
    )
    monkeypatch.setattr("gpubench.accelerator.accelerators", lambda: state)
    assert list(framework.accelerator_capabilities()) == [
        Capability("cub", True, "in use for: reduction, routine"),
        Capability("other", True, "not in use"),
        Capability("cutensor", False, "not found", 'pip install "gpubench[cuda12,cutensor12]"'),
    ]


def test_side_streams(fake_cuda):
    assert framework.side_stream_capability().available is True
    fake_cuda.driver_version = 12040
    sys.modules["cupy"].cuda.runtime.driverGetVersion = lambda: 12040
    from gpubench.devices import cuda

    cuda._platform.cache_clear()
    found = framework.side_stream_capability()
    assert found.available is False
    assert "context events need 12.5" in found.detail


class TestTools:
    def test_cupti_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupti", None)
        found = tools.cupti_capability(None)
        assert (found.available, found.remedy) == (False, 'pip install "gpubench[activity]"')

    def test_cupti_without_a_gpu(self, monkeypatch):
        package = ModuleType("cupti")
        package.cupti = ModuleType("cupti.cupti")
        monkeypatch.setitem(sys.modules, "cupti", package)
        assert tools.cupti_capability(None).available is None

    def test_nvml(self, fake_cuda, machine, monkeypatch):
        from fake_nvml import FakeNvml

        nvml = FakeNvml()
        nvml.nvmlDeviceGetHandleByPciBusId = lambda address: "handle"
        nvml.__spec__ = object()
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        found = machine(Library())
        assert tools.nvml_capability(found).detail == "the GPU is at 1980 MHz and 41 °C"
        nvml.nvmlInit = lambda: (_ for _ in ()).throw(nvml.NVMLError("no library"))
        assert tools.nvml_capability(found).detail == "nvmlInit failed: no library"
        assert tools.nvml_capability(None).available is None
        monkeypatch.setattr(tools.importlib.util, "find_spec", lambda name: None)
        assert tools.nvml_capability(None).remedy == "pip install nvidia-ml-py"

    def test_ncu(self, monkeypatch, tmp_path):
        from gpubench.sweeps.counters import tool

        monkeypatch.setattr(tool, "_PLACES", ())
        monkeypatch.setenv("PATH", str(tmp_path))
        found = tools.ncu_capability()
        assert found.available is False
        assert found.remedy
        program = tmp_path / "ncu"
        program.write_text("#!/bin/sh\necho Version 2025.1.0.0\n")
        program.chmod(0o755)
        assert tools.ncu_capability() == Capability("ncu", True, str(program))

    def test_nvtx(self, monkeypatch):
        from gpubench.ranges.backends import Backend

        for name, reason, available, remedy in (
            ("nvtx", "it is there", True, ""),
            ("none", "the variable NVTX_DISABLE is set", False, "unset NVTX_DISABLE"),
            ("none", "no nvtx", False, "pip install nvtx"),
        ):
            made = Backend(name, reason)
            monkeypatch.setattr("gpubench.ranges.backends.backend", lambda made=made: made)
            assert tools.nvtx_capability() == Capability("NVTX", available, reason, remedy)

    def test_extras(self, monkeypatch):
        requirements = [
            "numpy>=1.24",
            'pytest>=7.4; extra == "test"',
            'there[more]>=1; extra == "first"',
            "also-there<3; sys_platform == 'linux' and extra == 'second'",
            'absent; extra == "second"',
        ]

        def version(name):
            if name == "absent":
                raise tools.metadata.PackageNotFoundError(name)
            return "1"

        monkeypatch.setattr(tools.metadata, "requires", lambda name: requirements)
        monkeypatch.setattr(tools.metadata, "version", version)
        assert list(tools.extra_capabilities()) == [
            Capability("extra first", True, "there"),
            Capability(
                "extra second", False, "absent not installed", 'pip install "gpubench[second]"'
            ),
        ]


class TestAll:
    def test_what_needs_something_is_not_tried_without_it(self, machine, no_cupy):
        machine()
        found = {each.name: each for each in capabilities()}
        assert [found[name].available for name in ("driver", "CuPy")] == [False, False]
        for name, needs in (
            ("GPU", "driver"),
            ("NVRTC", "CuPy"),
            ("CUDA headers", "GPU, CuPy, NVRTC"),
            ("accelerators", "GPU, CuPy"),
            ("counters", "driver"),
        ):
            assert found[name] == Capability(name, None, f"not tried; it needs: {needs}")

    def test_a_check_that_fails_is_a_row(self, machine, no_cupy, monkeypatch):
        def fail(*args):
            raise ZeroDivisionError

        monkeypatch.setattr("gpubench.sweeps.counters.tool.find_ncu", fail)
        machine()
        found = {each.name: each for each in capabilities()}
        assert found["ncu"].detail == "the check failed: ZeroDivisionError: ZeroDivisionError"
        assert "NVTX" in found


@pytest.mark.parametrize(
    ("problem", "remedy", "expected"),
    [
        ("no such thing", "", ("no such thing", "")),
        ("no thing; pip install thing", "", ("no thing", "pip install thing")),
        ("a: b: pip install x", "", ("a: b", "pip install x")),
        ("no thing; pip install thing", "do it", ("no thing; pip install thing", "do it")),
        ("pip install failed", "", ("pip install failed", "")),
    ],
)
def test_a_command_at_the_end_is_the_remedy(problem, remedy, expected):
    found = lacking("thing", problem, remedy)
    assert (found.available, found.detail, found.remedy) == (False, *expected)


def test_first_line():
    assert first_line("\n  one \ntwo") == "one"
    assert first_line(ValueError()) == "ValueError"
