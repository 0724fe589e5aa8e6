"""CuPy, its compiler and its back ends."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from gpubench.capabilities.capability import Capability, lacking
from gpubench.capabilities.driver import Driver
from gpubench.devices.cuda import why_not_imported

_CUPY = re.compile(r"cupy(-cuda(?P<major>\d\d)x|-cuda\d+|-rocm-.*)?")
_IN_MEMORY = "CUPY_CACHE_IN_MEMORY"

_EXTRAS = (12, 13)
"""The majors of CUDA for which there is an extra."""

_HEADER_TEST = '#include <cuda_fp16.h>\nextern "C" __global__ void check(__half* x) { *x = 1; }'


def cupy_capability(driver: Driver | None) -> Capability:
    """Return whether CuPy can be imported, and is the one for this driver."""
    name = "CuPy"
    install = install_command(driver)
    packages = _cupy_packages()
    if len(packages) > 1:
        problem = f"{' and '.join(packages)} are installed, and each overwrites the others"
        return lacking(name, problem, f"pip uninstall -y {' '.join(packages)} && {install}")
    for package, major in packages.items():
        if driver is not None and major is not None and major > driver.cuda[0]:
            problem = f"{package} needs a driver for CUDA {major}"
            return lacking(name, problem, f"pip uninstall -y {package} && {install}")
    try:
        cupy = _import_cupy()
    except ModuleNotFoundError as error:
        problem = "not installed" if error.name == "cupy" else f"can't be imported: {error}"
        return lacking(name, problem, install)
    except Exception as error:  # noqa: BLE001  # importing CuPy fails in many ways
        remedy = install.replace("install", "install --force-reinstall", 1)
        return lacking(name, f"can't be imported: {why_not_imported(error)}", remedy)
    return Capability(name, True, f"{cupy.__version__} for {_built_for(cupy)}")


def compiler_capability(driver: Driver | None) -> Capability:
    """Return whether CuPy finds its compiler; that takes no GPU."""
    import cupy

    try:
        major, minor = cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # noqa: BLE001  # a library that is missing, or the wrong one
        return lacking("NVRTC", error, install_command(driver))
    return Capability("NVRTC", True, f"{major}.{minor}")


def headers_capability(driver: Driver | None) -> Capability:
    """Return whether that compiler finds CUDA's headers, by compiling something that needs one."""
    import cupy

    name = "CUDA headers"
    try:
        with _no_cache():
            cupy.RawModule(code=_HEADER_TEST).compile()
    except Exception as error:  # noqa: BLE001  # what CuPy raises depends on its release
        return lacking(name, error, install_command(driver))
    return Capability(name, True, "the compiler finds them")


def accelerator_capabilities() -> Iterator[Capability]:
    """Yield CuPy's back ends."""
    from gpubench.accelerator import accelerators

    found = accelerators()
    for name in found.available:
        kinds = ("elementwise", "reduction", "routine")
        used = [kind for kind in kinds if name in getattr(found, kind)]
        yield Capability(name, True, f"in use for: {', '.join(used)}" if used else "not in use")
    for name, problem in found.unavailable.items():
        yield lacking(name, problem)


def side_stream_capability() -> Capability:
    """Return whether work on any stream can be timed, by context-wide events."""
    from gpubench.devices import current_platform
    from gpubench.errors import UnsupportedError

    name = "side streams"
    platform = current_platform()
    try:
        platform.device(platform.current_device()).every_stream()
    except UnsupportedError as error:
        return lacking(name, error)
    return Capability(name, True, "work on them can be seen and timed")


def install_command(driver: Driver | None) -> str:
    """Return the command that installs CuPy for this driver, or mends the one that is there."""
    usable = [each for each in _EXTRAS if driver is None or each <= driver.cuda[0]] or [_EXTRAS[0]]
    major = usable[0] if driver is None else usable[-1]
    installed = [each for each in usable if each in set(_cupy_packages().values())]
    if len(installed) == 1:  # a CuPy for another major would come beside it
        (major,) = installed
    return f'pip install "gpubench[cuda{major}]"'


def _cupy_packages() -> dict[str, int | None]:
    """Return the installed packages that are a CuPy, with the major of each one's CUDA."""
    found = {}
    for distribution in metadata.distributions():
        name = (distribution.name or "").lower().replace("_", "-")
        if match := _CUPY.fullmatch(name):
            found[name] = int(match["major"]) if match["major"] else None
    return dict(sorted(found.items()))


def _import_cupy() -> Any:
    from gpubench.cutensor import preload_cutensor

    preload_cutensor()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is looked into here anyway
        import cupy
    return cupy


def _built_for(cupy: Any) -> str:
    if cupy.cuda.runtime.is_hip:
        return "HIP"
    version = cupy.cuda.runtime.runtimeGetVersion()
    return f"CUDA {version // 1000}.{version % 1000 // 10}"


@contextmanager
def _no_cache() -> Iterator[None]:
    """Let CuPy compile anew, and keep nothing of it on disk."""
    before = os.environ.get(_IN_MEMORY)
    os.environ[_IN_MEMORY] = "1"
    try:
        yield
    finally:
        del os.environ[_IN_MEMORY]
        if before is not None:
            os.environ[_IN_MEMORY] = before
