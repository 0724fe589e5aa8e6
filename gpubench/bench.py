"""The bench: the devices that calls are measured on, and what has to be put back afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from gpubench import arguments, notes
from gpubench.activity.kernels import KernelNames, kernel_names
from gpubench.call import TimedCall
from gpubench.compilation import Compilation, watch_compilations
from gpubench.devices import current_platform
from gpubench.devices.base import Device, Platform, Work
from gpubench.devices.host import HostPlatform
from gpubench.devices.nvml import DeviceState, read_state
from gpubench.devices.sharing import Share, shared
from gpubench.environment import describe_environment
from gpubench.errors import ArgumentError, UnsupportedError
from gpubench.result import BenchmarkResult
from gpubench.rules import Evidence, diagnose
from gpubench.sampling import Collected
from gpubench.session import Session
from gpubench.stats import summarize
from gpubench.timers import METHODS
from gpubench.timers.base import Measured
from gpubench.timers.cupti import RECORDED

CACHES = ("warm", "cold")


@dataclass(frozen=True)
class Conditions:
    """What happened beside the calls while samples were taken.

    Attributes
    ----------
    pool_growth_bytes : int
        By how much the frameworks' memory pools grew.
    states : sequence of (DeviceState or None, DeviceState or None)
        Each device's state before and after.
    compilations : sequence of Compilation
        What CuPy compiled.
    """

    pool_growth_bytes: int = 0
    states: Sequence[tuple[DeviceState | None, DeviceState | None]] = ()
    compilations: Sequence[Compilation] = ()


def _merged(seen: Sequence[Conditions]) -> Conditions:
    """Join conditions of successive blocks."""
    if not seen:
        return Conditions()
    ends = zip(seen[0].states, seen[-1].states, strict=True)
    return Conditions(
        pool_growth_bytes=sum(each.pool_growth_bytes for each in seen),
        states=tuple((first[0], last[1]) for first, last in ends),
        compilations=tuple(entry for each in seen for entry in each.compilations),
    )


class Bench:
    """Devices to measure on; inside the ``with`` block they are set up, after it put back.

    Parameters
    ----------
    devices : int, sequence of int or None
        Which to time; None for the current one.
    method : str
        How to time, as `benchmark` takes it.
    cache : {"warm", "cold"}
        Whether caches are flushed before each call.

    Attributes
    ----------
    platform : Platform
        Which machine this is.
    devices : tuple of Device
        Those that are timed; none without a GPU.
    share : Share or None
        Their activity records, if the method reads them.
    go_home : callable
        Makes the caller's device current, inside the block.

    Raises
    ------
    ArgumentError
        If an argument can't be used.
    UnsupportedError
        If a GPU is asked for and there is none.
    """

    def __init__(
        self,
        devices: int | Sequence[int] | None = None,
        method: str = "auto",
        cache: str = "warm",
    ) -> None:
        self.method = arguments.one_of("method", method, METHODS)
        self._cache = arguments.one_of("cache", cache, CACHES)
        self.platform = current_platform()
        self.devices = _find_devices(self.platform, devices, method)
        self.share: Share | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Bench:
        with ExitStack() as stack:
            self.go_home = stack.enter_context(self.platform.preserved())
            cold = self.devices if self._cache == "cold" else ()
            self._flushes = [stack.enter_context(device.cold_cache()) for device in cold]
            if self.method == "cupti":
                self.share = stack.enter_context(shared(self.platform, RECORDED))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def session(
        self,
        func: Callable[..., object],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        setup: Callable[[], object] | None = None,
        meet: Work | None = None,
    ) -> Session:
        """Prepare to measure a call here."""
        call = self.call(func, args, kwargs, setup, meet)
        return Session(call, self.platform, self.devices, self.go_home, self.share)

    def call(
        self,
        func: Callable[..., object],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        setup: Callable[[], object] | None = None,
        meet: Work | None = None,
    ) -> TimedCall:
        """Bind a function to its arguments and to what has to happen here before each call."""
        return TimedCall(func, args, kwargs, setup, self._flushes, self.devices, self.go_home, meet)

    def kernels(self, call: Callable[[], object]) -> KernelNames:
        """Return the kernels that a call runs on the first of the devices."""
        if not self.devices:
            return KernelNames(reason="there is no GPU")
        return kernel_names(call, self.platform, self.devices[0])

    @contextmanager
    def watched(self) -> Iterator[list[Conditions]]:
        """Observe the devices over the block; at its end what happened is in the list."""
        seen: list[Conditions] = []
        pool_before, before = self._reserved_bytes(), self._states()
        self.go_home()
        with watch_compilations() as log:
            yield seen
        growth = self._reserved_bytes() - pool_before
        states = tuple(zip(before, self._states(), strict=True))
        self.go_home()
        seen.append(Conditions(growth, states, tuple(log)))

    def _reserved_bytes(self) -> int:
        return sum(device.reserved_bytes() for device in self.devices)

    def _states(self) -> list[DeviceState | None]:
        return [read_state(device.properties.pci_bus_id) for device in self.devices]

    def result(
        self, name: str, session: Measured, collected: Collected, seen: Sequence[Conditions]
    ) -> BenchmarkResult:
        """Make the result of what was measured here, with what was seen meanwhile."""
        conditions = _merged(seen)
        cpu_times, gpu_times = collected.arrays()
        timed = self.devices if len(gpu_times) else ()
        evidence = Evidence(
            method=session.method,
            asked=self.method,
            cpu=summarize(cpu_times),
            gpu=tuple(summarize(row) for row in gpu_times),
            devices=tuple(device.id for device in timed),
            floor=session.floor,
            clock_step=session.clock_step,
            first_call_time=session.first_call_time,
            first_call_compile_time=session.first_call_compile_time,
            compilations=conditions.compilations,
            n_expired=session.n_expired,
            pool_growth_bytes=conditions.pool_growth_bytes,
            states=conditions.states,
            n_unattributed=collected.n_unattributed,
            n_dropped=collected.n_dropped,
        )
        found = list(session.notes)
        if isinstance(self.platform, HostPlatform) and self.method == "auto":
            found.append(notes.no_gpu(self.platform.reason))
        if self._cache == "cold" and not self.devices:
            found.append(notes.cold_without_gpu())
        if collected.stopped_by == "interrupted":
            found.append(notes.interrupted(evidence.cpu.n))
        return BenchmarkResult(
            name=name,
            cpu_times=cpu_times,
            gpu_times=gpu_times,
            busy_times=collected.busy(),
            kernels=collected.kernels(),
            devices=tuple(evidence.devices),
            method=session.method,
            cache="cold" if self._flushes else "warm",
            samples_per_gate=session.samples_per_gate,
            floor=session.floor,
            clock_step=session.clock_step,
            n_warmup=session.n_warmup,
            first_call_time=session.first_call_time,
            first_call_compile_time=session.first_call_compile_time,
            compilations=(*(session.first_compilations or ()), *conditions.compilations),
            stopped_by=collected.stopped_by,
            notes=(*found, *diagnose(evidence)),
            environment=describe_environment(self.platform, self.devices, conditions.states),
        )


def _find_devices(
    platform: Platform, devices: int | Sequence[int] | None, method: str
) -> tuple[Device, ...]:
    """Return the devices to time; none on a machine without a GPU."""
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
