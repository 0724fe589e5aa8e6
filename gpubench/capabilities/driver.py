"""NVIDIA's driver, asked by itself: without CuPy, which may be what is missing or wrong."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.capabilities.capability import Capability, lacking
from gpubench.sweeps.counters.faults import ALLOW_COUNTERS

_LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
_VERSION_FILE = Path("/proc/driver/nvidia/version")
_PARAMETERS_FILE = Path("/proc/driver/nvidia/params")
_STATUS_FILE = Path("/proc/self/status")
_PCI_DEVICES = Path("/sys/bus/pci/devices")
_WSL = Path("/dev/dxg")
_CONTAINER_SIGNS = (Path("/.dockerenv"), Path("/run/.containerenv"))

_CAP_SYS_ADMIN = 21  # bit of linux/capability.h

_GUIDE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"

_REMEDIES = {
    34: "take the folder with the stubs of libcuda.so off LD_LIBRARY_PATH",
    803: "sudo reboot, since the driver was updated while it ran",
    804: "take CUDA's folder compat off LD_LIBRARY_PATH",
    999: "sudo modprobe nvidia_uvm",
}
"""What helps where ``cuInit`` fails, by its status (``CUresult`` of cuda.h)."""

_NO_DEVICE = 100


@dataclass(frozen=True)
class Driver:
    """The driver as its library describes it.

    Attributes
    ----------
    version : str
        Of the kernel module; empty if it doesn't tell.
    cuda : tuple of (int, int)
        The newest CUDA that it supports.
    devices : tuple of str
        The names of the GPUs that it shows to this process.
    problem, remedy : str
        Why it shows none, and what to do; empty if it does.
    """

    version: str
    cuda: tuple[int, int]
    devices: tuple[str, ...]
    problem: str = ""
    remedy: str = ""


def find_driver() -> Driver | None:
    """Return the driver; None if its library can't be loaded."""
    library = _library()
    if library is None:
        return None
    number = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(number))
    known = _kernel_module_version(), (number.value // 1000, number.value % 1000 // 10)
    status = library.cuInit(0)
    devices = () if status else tuple(_device_names(library))
    if devices:
        return Driver(*known, devices)
    if status in (0, _NO_DEVICE):
        return Driver(*known, (), *_no_device())
    problem = f"the driver fails: {_error_text(library, status)}"
    return Driver(*known, (), problem, _REMEDIES.get(status, "nvidia-smi"))


def driver_capability(driver: Driver | None) -> Capability:
    """Return whether there is a driver, and for what."""
    if driver is not None:
        supported = f"for CUDA up to {driver.cuda[0]}.{driver.cuda[1]}"
        return Capability("driver", True, f"{driver.version} {supported}".strip())
    if not _has_nvidia_gpu():
        remedy = "gpubench demo, which shows a simulated GPU"
        return Capability("driver", False, "none, and no NVIDIA GPU is to be seen", remedy)
    if any(sign.exists() for sign in _CONTAINER_SIGNS):
        remedy = "start the container with its GPUs: docker run --gpus all ..."
        return Capability("driver", False, "none in this container", remedy)
    installer = "sudo ubuntu-drivers install"
    remedy = installer if shutil.which("ubuntu-drivers") else f"install it: {_GUIDE}"
    return Capability("driver", False, "none, though there is an NVIDIA GPU", remedy)


def device_capability(driver: Driver | None) -> Capability:
    """Return whether the driver shows GPUs to this process."""
    if driver is None:
        return lacking("GPU", "there is no driver")
    if not driver.devices:
        return lacking("GPU", driver.problem, driver.remedy)
    return Capability("GPU", True, ", ".join(driver.devices))


def counters_capability() -> Capability:
    """Return whether this process may read hardware counters."""
    name = "counters"
    restricted = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", _read(_PARAMETERS_FILE), re.M)
    if restricted is None:
        return Capability(name, None, f"{_PARAMETERS_FILE} doesn't tell who may read them")
    if restricted[1] == "0":
        return Capability(name, True, "everyone may read them")
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", _read(_STATUS_FILE), re.M)
    if effective and int(effective[1], 16) >> _CAP_SYS_ADMIN & 1:
        return Capability(name, True, "this process may read them (CAP_SYS_ADMIN)")
    return lacking(name, "only an administrator may read them", ALLOW_COUNTERS)


def _library() -> Any:
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _device_names(library: Any) -> Iterator[str]:
    count, device = ctypes.c_int(), ctypes.c_int()
    library.cuDeviceGetCount(ctypes.byref(count))
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        library.cuDeviceGet(ctypes.byref(device), number)
        library.cuDeviceGetName(name, len(name), device)
        yield name.value.decode(errors="replace")


def _error_text(library: Any, status: int) -> str:
    text = ctypes.c_char_p()
    library.cuGetErrorString(status, ctypes.byref(text))
    return (text.value or b"unknown error").decode(errors="replace") + f" ({status})"


def _no_device() -> tuple[str, str]:
    """Return why the driver shows no GPU, and what to do."""
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    if variable is None:
        return "the driver sees none", "nvidia-smi, which says what it does see"
    return f"CUDA_VISIBLE_DEVICES={variable!r} hides them all", "unset CUDA_VISIBLE_DEVICES"


def _kernel_module_version() -> str:
    found = re.search(r"Kernel Module\b.*?\s(\d+(?:\.\d+)+)", _read(_VERSION_FILE))
    return found[1] if found else ""


def _has_nvidia_gpu() -> bool:
    """Whether the PCI bus has a display or 3D controller of NVIDIA's, or WSL lends a GPU."""
    folders = _PCI_DEVICES.iterdir() if _PCI_DEVICES.is_dir() else ()
    return _WSL.exists() or any(
        _read(folder / "vendor").strip() == "0x10de" and _read(folder / "class").startswith("0x03")
        for folder in folders
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
