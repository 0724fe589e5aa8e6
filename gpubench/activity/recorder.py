"""`record_activity`: what the GPUs do while a block runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from gpubench.activity.assembly import assemble
from gpubench.activity.recording import KINDS, Recording
from gpubench.activity.trace import Trace
from gpubench.arguments import one_of
from gpubench.compilation import watch_compilations
from gpubench.devices import current_platform
from gpubench.devices.base import Platform
from gpubench.devices.sharing import is_recording, shared
from gpubench.errors import ArgumentError
from gpubench.ranges.covering import settle
from gpubench.ranges.recording import RangeLog, logged

_N_LAUNCHES = 200


@contextmanager
def record_activity(
    kinds: Collection[str] | None = None, *, synchronize: bool = True
) -> Iterator[Trace]:
    """Record what the GPUs do, and what the host asks of them, while the block runs.

    Records are those of CUPTI (extra ``activity``), so they show every framework's work. Blocks
    may nest and run in several threads; each then sees the work of all threads.

    Parameters
    ----------
    kinds : collection of str, optional
        What to record; everything by default: ``"kernel"``, ``"memcpy"``, ``"memset"``;
        ``"runtime"`` and ``"driver"``, the calls of CUDA's two APIs; ``"range"``, the ranges and
        marks of gpubench (those of all libraries, if NVTX_INJECTION64_PATH named CUPTI's library
        when the process began); ``"compilation"``, what CuPy compiles. The fewer, the less the
        host is slowed down.
    synchronize : bool
        Whether to wait for the devices before the block begins and before it ends. Without that,
        work from before the block may be in the trace, and work that isn't done at its end is not.

    Yields
    ------
    Trace
        It holds something once the block has ended, by an exception too.

    Raises
    ------
    ArgumentError
        If `kinds` names something else.
    UnsupportedError
        If nothing can be recorded: no GPU, no cupti-python, another profiler at work. The
        message says which, and what to do.

    Examples
    --------
    >>> import gpubench
    >>> with gpubench.simulated_gpu() as gpu, gpubench.record_activity() as trace:
    ...     gpu.launch(20e-6, "sqrt")
    >>> [trace.recording.names[row["name"]] for row in trace.recording.activities]
    ['sqrt']
    """
    wanted = _checked(kinds)
    platform = current_platform()
    wait = partial(_drain, platform) if synchronize else _nothing
    trace = Trace()
    error: BaseException | None = None
    # Launches that are made to be timed must not be in a trace of somebody else's.
    may_launch = synchronize and not is_recording(platform)
    launch_time = _launch_time(platform) if may_launch else None
    with shared(platform, wanted) as share:
        source = share.source
        slowed_launch_time = _launch_time(platform, wanted) if may_launch else None
        log = RangeLog(source.now)
        listens = "range" in wanted and not source.sees_nvtx
        with logged(log) if listens else nullcontext(), watch_compilations() as compilations:
            wait()
            delivery_time = source.delivery_time
            clock_offset = source.now() - time.perf_counter_ns()
            begin = source.now()
            try:
                yield trace
            except BaseException as body_error:
                error = body_error
                raise
            finally:
                settle(wait, error)
                span = begin, source.now()

                def complete() -> None:
                    recording = assemble(
                        share.collect(), log, compilations, span, wanted, clock_offset
                    )
                    trace.complete(
                        replace(
                            recording,
                            devices=_device_names(platform, recording),
                            launch_time=launch_time,
                            recorded_launch_time=slowed_launch_time,
                            delivery_time=source.delivery_time - delivery_time,
                        )
                    )

                settle(complete, error)


def _device_names(platform: Platform, recording: Recording) -> dict[int, str]:
    numbers = np.unique(recording.activities["device"]).tolist()
    return {number: platform.device(number).properties.name for number in numbers}


def _checked(kinds: Collection[str] | None) -> tuple[str, ...]:
    if kinds is None:
        return KINDS
    if isinstance(kinds, str):
        raise ArgumentError(f"kinds must be a list, got {kinds!r}: did you mean [{kinds!r}]?")
    if not isinstance(kinds, Iterable):
        raise ArgumentError(f"kinds must be a list of kinds, got {kinds!r}")
    return tuple(dict.fromkeys(one_of("kinds", kind, KINDS) for kind in kinds))


def _nothing() -> None:
    pass


def _drain(platform: Platform) -> None:
    if sys.is_finalizing():  # a block that was left open: nobody works any more
        return
    with platform.preserved():
        platform.drain()


_launch_times: WeakKeyDictionary[Platform, dict[tuple[str, ...], float]] = WeakKeyDictionary()


def _launch_time(platform: Platform, kinds: tuple[str, ...] = ()) -> float:
    """Return the seconds that the host takes for a launch while these kinds are recorded.

    Measured once for each set of kinds and process.
    """
    known = _launch_times.setdefault(platform, {})
    if kinds not in known:
        device = platform.device(platform.current_device())
        device.launch_empty()  # which may compile and load it
        device.synchronize()
        begin = time.perf_counter()
        for _ in range(_N_LAUNCHES):
            device.launch_empty()
        known[kinds] = (time.perf_counter() - begin) / _N_LAUNCHES
        device.synchronize()
    return known[kinds]
