"""Starting and stopping the profiler that a program runs under."""

from __future__ import annotations

import sys
import threading
import warnings

from gpubench.devices import current_platform
from gpubench.ranges.covering import Covering, settle

_NOT_THE_USER = ("gpubench.", "contextlib")


class profile(Covering):  # noqa: N801  # CuPy's name
    """Let the profiler that the program runs under record this block, or each call of a function.

    It doesn't profile by itself. Run the program under a profiler that waits for it::

        nsys profile --capture-range=cudaProfilerApi python script.py
        ncu --profile-from-start off python script.py

    Add ``--capture-range-end=repeat`` to the first if the program opens several such blocks.
    Blocks may nest and overlap in several threads: the first to open starts the profiler, the
    last to close stops it, on the device that was current at the start. Without a GPU nothing
    happens but a `RuntimeWarning` that says why. Functions are decorated as by `time_range`.
    """

    def __enter__(self) -> None:
        _blocks.enter()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        settle(_blocks.leave, error)


class _Blocks:
    """How many blocks are open in this process, and the device whose profiler they share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._device_id: int | None = None

    def enter(self) -> None:
        with self._lock:
            if not self._count:
                self._device_id = _current_cuda_device()
                _tell_profiler("profilerStart", self._device_id)
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                _tell_profiler("profilerStop", self._device_id)


_blocks = _Blocks()


def _tell_profiler(what: str, device_id: int | None) -> None:
    if device_id is None:
        return
    from cupy import cuda

    with cuda.Device(device_id):
        getattr(cuda.runtime, what)()


def _current_cuda_device() -> int | None:
    platform = current_platform()
    if platform.name == "cuda":
        return platform.current_device()
    reason = getattr(platform, "reason", f"a {platform.name} GPU has no profiler")
    message = f"profile() records nothing: {reason}"
    warnings.warn(message, RuntimeWarning, stacklevel=_level_of_user())
    return None


def _level_of_user() -> int:
    """Return the `stacklevel` by which a warning of the calling function blames the user's code."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_NOT_THE_USER):
        level, frame = level + 1, frame.f_back
    return level
