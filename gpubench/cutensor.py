"""Whether CuPy can use cuTENSOR, and the loading of its libraries that makes it so.

CuPy decides once, while it is imported. Releases from 14 on look for ``libcutensor`` then, but
leave ``libcutensorMg``, which they also link to, to the system's loader, and that doesn't search
Python's packages. A library that is loaded already is found, so cuda.pathfinder loads both first.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from gpubench.errors import first_line

_LIBRARIES = ("cutensor", "cutensorMg")
_TOO_LATE = "CuPy was imported before gpubench could load cuTENSOR"


@functools.cache
def preload_cutensor() -> str:
    """Load cuTENSOR's libraries, so that a CuPy that is imported afterwards finds them.

    Only the first call of a process does anything. Whether CuPy then *has* cuTENSOR is for
    `accelerators` to say: some releases and installations find it without help.

    Returns
    -------
    str
        Why cuTENSOR was not loaded; empty if it was.
    """
    if "cupy" in sys.modules:
        return _TOO_LATE
    return _load(_LIBRARIES)


def cutensor_is_installed() -> bool:
    """Whether a fresh process could load cuTENSOR, though this one may have come too late."""
    return not _load(("cutensor",))


def _load(libraries: Sequence[str]) -> str:
    """Load libraries and return why that failed; nothing if it didn't."""
    try:
        from cuda import pathfinder
    except ImportError as error:
        return f"the package cuda-pathfinder can't be imported ({error})"
    try:
        for library in libraries:
            pathfinder.load_nvidia_dynamic_lib(library)
    except Exception as error:  # noqa: BLE001  # whatever it is, CuPy has to do without
        return first_line(error)
    return ""


def cutensor_problem(cupy: ModuleType) -> str:
    """Return why this CuPy can't use cuTENSOR and what to do about it; empty if it can."""
    if cupy.cuda.runtime.is_hip:
        return "cuTENSOR is a library for CUDA, and this CuPy is built for HIP"
    # What the reductions and the elementwise functions hold; None if it wasn't found on import.
    held = getattr(importlib.import_module("cupy._core._routines_math"), "cuda_cutensor", cupy)
    if held not in (None, cupy):
        return ""
    try:
        importlib.import_module("cupy_backends.cuda.libs.cutensor")
    except ImportError as error:
        problem = first_line(error)
    else:
        if held is cupy:
            return ""
        problem = "it could be loaded only after CuPy was imported, which is too late"
    major = cupy.cuda.driver.get_build_version() // 1000
    remedy = f'pip install "gpubench[cuda{major},cutensor{major}]"'
    if preload_cutensor() == _TOO_LATE:
        remedy += " if it is missing, and call gpubench.preload_cutensor() before CuPy is imported"
    return f"{problem}; {remedy}"
