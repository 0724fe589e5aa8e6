"""`benchmark`: checks arguments, measures a call until a rule says enough, makes the result."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from gpubench import arguments, notes
from gpubench.call import TimedCall
from gpubench.devices import current_platform
from gpubench.devices.base import Device, Platform
from gpubench.devices.host import HostPlatform
from gpubench.devices.nvml import read_state
from gpubench.environment import describe_environment
from gpubench.errors import ArgumentError, UnsupportedError
from gpubench.notes import Evidence, diagnose
from gpubench.progress import progress_bar
from gpubench.result import BenchmarkResult, StoppedBy
from gpubench.session import Budget, Session
from gpubench.stats import FloatArray, median_interval, summarize
from gpubench.timers.base import Samples
from gpubench.timers.choose import METHODS

CACHES = ("warm", "cold")

MANY_SAMPLES = 1000
"""From how many samples on gates are shared, so that a sample costs less wall time."""

ADAPTIVE_DURATION = 1.0
"""Seconds for the samples of an adaptive run whose duration the caller left open."""

ADAPTIVE_PRECISION = 0.005
"""An adaptive run ends when the median's interval lies this near to it, relatively."""

MIN_ADAPTIVE_SAMPLES = 10


def benchmark(
    func: Callable[..., object],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    n_repeat: int | None = None,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = math.inf,
    devices: int | Sequence[int] | None = None,
    method: str = "auto",
    setup: Callable[[], object] | None = None,
    cache: str = "warm",
    progress: bool | None = None,
) -> BenchmarkResult:
    """Measure what a call costs the host and each GPU.

    Accepts what ``cupyx.profiler.benchmark`` accepts. GPU time is taken on the stream on which
    the call works, whichever framework it is written in, while a gate holds the stream until the
    call is queued; so it is the time that the GPU worked, not the time that the host launched.

    Parameters
    ----------
    func : callable
        What to time. It should not wait for the GPU; the result's notes say if it does.
    args : tuple or list
        Positional arguments of each call.
    kwargs : mapping, optional
        Keyword arguments of each call.
    n_repeat : int, optional
        How many samples to take. Left out, at least 10 are taken, until the 95 % interval of the
        median is within 0.5 % of it or the time is up.
    name : str, optional
        What the result is called; by default the function's name.
    n_warmup : int, optional
        How many calls go ahead of the samples, untimed. The call is looked at during the last
        of them, which may take a few more; the result says how many were made. With 0 the first
        call is itself a sample, and GPU times are taken by plain events.
    max_duration : float, optional
        Seconds of wall time for the whole run, warm-up and waiting for the GPU included; at
        least one sample is taken. An adaptive run without it takes samples for at most 1 s.
    devices : int or sequence of int, optional
        Which GPUs to time; by default the current one.
    method : {"auto", "host", "events", "gated", "graph"}, optional
        How to time: ``"gated"`` (which ``"auto"`` takes where there is a GPU) by events behind a
        gate; ``"graph"`` by replays of a CUDA graph of 20 calls; ``"events"`` by events around
        each call on an idle stream, as CuPy does; ``"host"`` by the host's clock alone.
    setup : callable, optional
        Called before each call, untimed. If it returns a tuple, that becomes the call's args.
    cache : {"warm", "cold"}, optional
        Whether to flush the GPU's L2 cache before each call, untimed.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal, if the run takes over 2 s.

    Returns
    -------
    BenchmarkResult
        All samples in run order, their statistics, and notes on what makes them hard to trust.
        Ctrl-C ends a run early with the samples taken so far.

    Raises
    ------
    ArgumentError
        If an argument can't be used; it is a `ValueError` and a `TypeError`.
    UnsupportedError
        If a GPU is asked for, by `devices` or `method`, and there is none.
    Exception
        Whatever `func` or `setup` raises.

    Examples
    --------
    >>> import gpubench
    >>> result = gpubench.benchmark(sorted, ([3, 1, 2],), n_repeat=100)
    >>> result.cpu_times.shape
    (100,)
    """
    arguments.synchronous("func", func)
    args = arguments.positional(args)
    kwargs = arguments.keywords(kwargs)
    if n_repeat is not None:
        n_repeat = arguments.whole_number("n_repeat", n_repeat, at_least=1)
    n_warmup = arguments.whole_number("n_warmup", n_warmup, at_least=0)
    max_duration = arguments.real_number("max_duration", max_duration, at_least=0)
    name = arguments.text("name", name) if name is not None else arguments.callable_name(func)
    arguments.one_of("method", method, METHODS)
    arguments.one_of("cache", cache, CACHES)
    if setup is not None:
        arguments.synchronous("setup", setup)
    platform = current_platform()
    targets = find_devices(platform, devices, method)
    adaptive = n_repeat is None
    whole = Budget(max_duration)

    with ExitStack() as stack:
        go_home = stack.enter_context(platform.preserved())
        advance = stack.enter_context(progress_bar(progress, n_repeat, name))
        cold = targets if cache == "cold" else ()
        flushes = [stack.enter_context(device.cold_cache()) for device in cold]
        call = TimedCall(func, args, kwargs, setup, flushes, targets, go_home)
        session = Session(call, platform, targets, go_home)
        session.warm_up(n_warmup, whole)
        if adaptive and n_warmup:
            session.settle(whole)
        many = n_repeat is not None and n_repeat >= MANY_SAMPLES
        session.choose(method, may_probe=n_warmup > 0, many=many)
        limit = whole if not adaptive or math.isfinite(max_duration) else Budget(ADAPTIVE_DURATION)

        pool_before = sum(device.reserved_bytes() for device in targets)
        before = [read_state(device.properties.pci_bus_id) for device in targets]
        go_home()
        with collection_off():
            collected, stopped_by = _collect(session, n_repeat, limit, advance)
        pool_growth = sum(device.reserved_bytes() for device in targets) - pool_before
        after = [read_state(device.properties.pci_bus_id) for device in targets]

    states = tuple(zip(before, after, strict=True))
    cpu_times, gpu_times = collected.arrays()
    timed = targets if len(gpu_times) else ()
    evidence = Evidence(
        method=session.method,
        cpu=summarize(cpu_times),
        gpu=tuple(summarize(row) for row in gpu_times),
        devices=tuple(device.id for device in timed),
        floor=session.floor,
        clock_step=session.clock_step,
        first_call_time=session.first_call_time,
        n_expired=session.n_expired,
        pool_growth_bytes=pool_growth,
        states=states,
    )
    found = list(session.notes)
    if isinstance(platform, HostPlatform) and method == "auto":
        found.append(notes.no_gpu(platform.reason))
    if cache == "cold" and not targets:
        found.append(notes.cold_without_gpu())
    if stopped_by == "interrupted":
        found.append(notes.interrupted(evidence.cpu.n))
    return BenchmarkResult(
        name=name,
        cpu_times=cpu_times,
        gpu_times=gpu_times,
        devices=tuple(evidence.devices),
        method=session.method,
        samples_per_gate=session.samples_per_gate,
        floor=session.floor,
        clock_step=session.clock_step,
        n_warmup=session.n_warmup,
        first_call_time=session.first_call_time,
        stopped_by=stopped_by,
        notes=(*found, *diagnose(evidence)),
        environment=describe_environment(platform, targets, states),
    )


def find_devices(
    platform: Platform, devices: int | Sequence[int] | None, method: str
) -> tuple[Device, ...]:
    """Return the devices to time; none on a machine without a GPU.

    Raises
    ------
    ArgumentError
        If an id is not an integer, repeated, or not that of a device.
    UnsupportedError
        If `devices` or `method` asks for a GPU and there is none.
    """
    ids = arguments.device_ids(devices)
    count = platform.device_count()
    if isinstance(platform, HostPlatform):
        if ids is not None or method not in ("auto", "host"):
            asked = f"method={method!r}" if ids is None else f"devices={devices!r}"
            raise UnsupportedError(f"{asked} needs a GPU, and none was found: {platform.reason}")
        return ()
    if ids is None:
        ids = (platform.current_device(),)
    for device_id in ids:
        if device_id >= count:
            raise ArgumentError(
                f"devices={devices!r}: there is no GPU {device_id}; this process sees {count}, "
                f"numbered from 0"
            )
    return tuple(platform.device(device_id) for device_id in ids)


@contextmanager
def collection_off() -> Iterator[None]:
    """Keep the garbage collector from running inside the block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Collected:
    """The samples of a run, in order."""

    def __init__(self) -> None:
        self._parts: list[Samples] = []
        self.n = 0

    def add(self, samples: Samples) -> None:
        self._parts.append(samples)
        self.n += samples.cpu.size

    def arrays(self) -> tuple[FloatArray, FloatArray]:
        """All CPU times, shape (n,), and all GPU times, shape (n_devices, n)."""
        cpu = np.concatenate([part.cpu for part in self._parts])
        return cpu, np.concatenate([part.gpu for part in self._parts], axis=1)

    def is_precise(self, clock_step: float | None) -> bool:
        """Whether every median is known to `ADAPTIVE_PRECISION`, or to the clock's step."""
        cpu, gpu = self.arrays()
        for row in gpu if len(gpu) else cpu[np.newaxis]:
            interval = median_interval(row)
            if interval is None:
                return False
            median = float(np.median(row))
            tolerance = max(ADAPTIVE_PRECISION * median, clock_step or 0.0)
            if max(interval[1] - median, median - interval[0]) > tolerance:
                return False
        return True


def _collect(
    session: Session, n_repeat: int | None, limit: Budget, advance: Callable[[int], object]
) -> tuple[_Collected, StoppedBy]:
    """Take samples until there are enough, the time is up, or Ctrl-C."""
    collected = _Collected()
    next_check = MIN_ADAPTIVE_SAMPLES
    try:
        while True:
            wanted = n_repeat - collected.n if n_repeat is not None else 1
            samples = session.take(wanted)
            if session.must_restart():
                collected, next_check = _Collected(), MIN_ADAPTIVE_SAMPLES
                continue
            collected.add(samples)
            advance(samples.cpu.size)
            if collected.n == n_repeat:
                return collected, "n_repeat"
            if n_repeat is None and collected.n >= next_check:
                if collected.is_precise(session.clock_step):
                    return collected, "converged"
                next_check = math.ceil(1.1 * collected.n)
            if limit.is_spent() and (n_repeat is not None or collected.n >= MIN_ADAPTIVE_SAMPLES):
                return collected, "max_duration"
    except KeyboardInterrupt:
        if not collected.n:
            raise
        return collected, "interrupted"
