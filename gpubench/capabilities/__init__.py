"""What this machine can do, found out by trying, and what to do about the rest.

The driver is asked first and by itself, then what builds upon it. A check that fails in a way that
nobody foresaw is a row, too: who asks what is wrong must get an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gpubench.capabilities.capability import Capability, lacking
from gpubench.capabilities.driver import (
    Driver,
    counters_capability,
    device_capability,
    driver_capability,
    find_driver,
)
from gpubench.capabilities.framework import (
    accelerator_capabilities,
    compiler_capability,
    cupy_capability,
    headers_capability,
    side_stream_capability,
)
from gpubench.capabilities.tools import (
    cupti_capability,
    extra_capabilities,
    ncu_capability,
    nvml_capability,
    nvtx_capability,
)
from gpubench.errors import first_line

__all__ = ["Capability", "capabilities"]

_Check = Callable[[Driver | None], Capability | Iterable[Capability]]

_CHECKS: tuple[tuple[str, tuple[str, ...], _Check], ...] = (
    ("driver", (), driver_capability),
    ("GPU", ("driver",), device_capability),
    ("CuPy", (), cupy_capability),
    ("NVRTC", ("CuPy",), compiler_capability),
    ("CUDA headers", ("GPU", "CuPy", "NVRTC"), headers_capability),
    ("accelerators", ("GPU", "CuPy"), lambda _: accelerator_capabilities()),
    ("side streams", ("GPU", "CuPy"), lambda _: side_stream_capability()),
    ("CUPTI", (), cupti_capability),
    ("NVML", (), nvml_capability),
    ("ncu", (), lambda _: ncu_capability()),
    ("counters", ("driver",), lambda _: counters_capability()),
    ("NVTX", (), lambda _: nvtx_capability()),
    ("extras", (), lambda _: extra_capabilities()),
)
"""What is looked for, what has to be there before it is, and how."""


def capabilities() -> Iterator[Capability]:
    """Yield what gpubench can use on this machine and what it lacks.

    Yields
    ------
    Capability
        The driver, the GPUs, CuPy with its compiler and back ends, the tools, the extras.
    """
    driver = find_driver()
    there = set()
    for name, needs, check in _CHECKS:
        if missing := [need for need in needs if need not in there]:
            yield Capability(name, None, f"not tried; it needs: {', '.join(missing)}")
            continue
        for capability in _guarded(name, check, driver):
            if capability.available:
                there.add(capability.name)
            yield capability


def _guarded(name: str, check: _Check, driver: Driver | None) -> Iterator[Capability]:
    try:
        found = check(driver)
        yield from (found,) if isinstance(found, Capability) else found
    except Exception as error:  # noqa: BLE001  # whatever it is, the other rows are of use
        yield lacking(name, f"the check failed: {type(error).__name__}: {first_line(error)}")
