"""Which kernels a call runs, and whose they are."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from gpubench.activity.demangling import demangled
from gpubench.devices.base import Device, Platform
from gpubench.devices.records import KERNEL
from gpubench.devices.sharing import shared
from gpubench.errors import UnsupportedError


@dataclass(frozen=True)
class KernelNames:
    """The kernels that a call ran, as far as could be found out.

    Attributes
    ----------
    names : tuple of str
        In the order of their first launch, without repeats; C++ names as in the source where
        the system's C++ library could turn them back.
    source : str
        How they were found: ``"cupti"``, the device's activity records; ``"graph"``, by
        capturing the call; empty if they are unknown.
    reason : str
        Why they are unknown; empty if they aren't.
    """

    names: tuple[str, ...] = ()
    source: str = ""
    reason: str = ""


def kernel_names(call: Callable[[], object], platform: Platform, device: Device) -> KernelNames:
    """Find out which kernels a call runs on a device.

    Where activity can be recorded, the call is made once, and kernels that other threads launch
    meanwhile count as well. Where it can't, the call is made twice, the second time to be
    captured, which shows what it queues on the current stream.

    Parameters
    ----------
    call : callable
        Called without arguments.
    platform : Platform
        Whose activity is recorded.
    device : Device
        One of its devices, where the call works; on CUDA, current while it is called.

    Returns
    -------
    KernelNames
        Without names and with a reason if neither way is open.
    """
    reasons = []
    own_errors = []

    def made() -> object:
        try:
            return call()
        except UnsupportedError as error:
            own_errors.append(error)
            raise

    sources: dict[str, Callable[[Callable[[], object]], tuple[str, ...]]] = {
        "cupti": functools.partial(_recorded, platform, device),
        "graph": functools.partial(_captured, device),
    }
    for source, find in sources.items():
        try:
            names = find(made)
        except UnsupportedError as error:
            if error in own_errors:
                raise
            reasons.append(f"{source}: {error}")
        else:
            return KernelNames(tuple(dict.fromkeys(map(demangled, names))), source)
    return KernelNames(reason="; ".join(reasons))


def _recorded(platform: Platform, device: Device, call: Callable[[], object]) -> tuple[str, ...]:
    """Return the names in the order of their first launch, by the device's activity records."""
    with platform.preserved():
        device.synchronize()  # what ends before the share begins isn't in it
        with shared(platform, ("kernel",)) as share:
            call()
            device.synchronize()
            records = share.collect()
    if records.n_dropped:
        raise UnsupportedError(f"{records.n_dropped} activity records were lost")
    activities = records.activities
    kernels = activities[(activities["kind"] == KERNEL) & (activities["device"] == device.id)]
    # Records come as kernels end. The correlation id counts launches; the kernels of a graph
    # share one.
    order = np.lexsort((kernels["start"], kernels["correlation_id"]))
    return tuple(records.names[index] for index in dict.fromkeys(kernels["name"][order].tolist()))


def _captured(device: Device, call: Callable[[], object]) -> tuple[str, ...]:
    names = device.capture(call).kernel_names
    if not names:  # which isn't to say that it runs none
        raise UnsupportedError("the call queues no kernel on the current stream")
    return names


# Signs in a kernel's name, mangled or not; the first that fits counts. A kernel of CUB's own is
# told by the first "Device..." in it: arguments of templates come later. CuPy calls reductions that
# it builds from CUB's parts cupy_cub_..., and those that a user defines ..._pass1 and ..._pass2.
_SIGNS = {
    "cutensor": re.compile(r"cutensor"),
    "cub": re.compile(
        r"^cupyx?_cub_|_pass[12]$|^((?!Device).)*(\bcub::|(?<!\d)3cub)((?!Device).)*"
        r"Device(?![A-Za-z]*Sort)[A-Za-z]*(Reduce|Scan|Histogram|Spmv)[A-Za-z]*Kernel"
    ),
    "cuBLAS": re.compile(r"cublas|^nvjet_|cutlass_\d|xmma_gemm|_[hsdcz]gemm_"),
}


def back_end_of(names: Iterable[str]) -> str:
    """Tell whose kernels these are.

    Parameters
    ----------
    names : iterable of str
        Kernels' names, mangled or not.

    Returns
    -------
    str
        ``"cub"`` (its reductions, scans and histograms; not its sorts, which CuPy uses
        whatever is set), ``"cutensor"``, ``"cuBLAS"``, or ``"CuPy"`` for all others; several
        joined by ``"+"`` in the order of `names`; empty if there are none.

    Examples
    --------
    >>> back_end_of(["cupy_multiply__float32_float32_float32", "cupy_cub_sum_pass1"])
    'CuPy+cub'
    """
    return "+".join(dict.fromkeys(map(_back_end, names)))


def _back_end(name: str) -> str:
    return next((owner for owner, sign in _SIGNS.items() if sign.search(name)), "CuPy")
