"""Who measures the configurations of a sweep: the machine that it runs on, or others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from gpubench.bench import Bench
from gpubench.devices.nvml import DeviceState, read_state
from gpubench.environment import describe_environment
from gpubench.sweeps.collection import Collectors
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.roofline import Peaks, device_peaks
from gpubench.sweeps.runner import Runner
from gpubench.sweeps.subject import Watch
from gpubench.sweeps.thermal import ThermalWait, ThermalWatch

if TYPE_CHECKING:
    from gpubench.sweeps.execution import Options

Keep = Callable[[int, tuple[Measurement, ...]], object]
"""Told the index of a configuration that has ended, and what was measured in it."""


@dataclass(frozen=True)
class Site:
    """Where configurations were measured, and under what conditions.

    Attributes
    ----------
    environment : mapping of str to object
        The machine and the software, as plain JSON values.
    peaks : Peaks
        What its devices can do at most.
    waits : sequence of ThermalWait
        The waits for hot GPUs.
    """

    environment: Mapping[str, Any]
    peaks: Peaks
    waits: Sequence[ThermalWait]


class Engine(Protocol):
    """Measures configurations, inside its ``with`` block."""

    @property
    def gpu_names(self) -> Sequence[str]:
        """Names of the GPUs that are measured on; known from the block's begin on."""
        ...

    @property
    def interrupted(self) -> Mapping[int, tuple[Measurement, ...]]:
        """What was measured in configurations that Ctrl-C came in between, by their index."""
        ...

    @property
    def site(self) -> Site:
        """Where they were measured."""
        ...

    def __enter__(self) -> Engine: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def measure(
        self,
        configs: Mapping[int, Mapping[str, object]],
        keep: Keep,
        advance: Callable[[int], object],
    ) -> None:
        """Measure configurations.

        Parameters
        ----------
        configs : mapping of int to mapping
            Configurations by their index.
        keep : callable
            Told of each that has ended.
        advance : callable
            Told how many samples have been added.

        Raises
        ------
        KeyboardInterrupt
            When Ctrl-C is pressed.
        """
        ...


class Here:
    """Measures on this machine.

    Parameters
    ----------
    options : Options
        What the sweep was made with.
    func : callable
        The function.
    name : str
        What it is called.
    parameters : sequence of str
        Names of its parameters.
    """

    def __init__(
        self, options: Options, func: Callable[..., object], name: str, parameters: Sequence[str]
    ) -> None:
        self._options = options
        self._func = func
        self._name = name
        self._bench = Bench(**options.bench)
        self._watch = self._make_watch(parameters)
        self.interrupted: Mapping[int, tuple[Measurement, ...]] = {}

    def _make_watch(self, parameters: Sequence[str]) -> Watch:
        first = self._bench.devices[0] if self._bench.devices else None

        def read() -> DeviceState | None:
            return read_state(first.properties.pci_bus_id) if first else None

        return Watch(
            Collectors(self._options.collectors, parameters, first.id if first else 0),
            ThermalWatch(self._options.thermal, read),
            read,
            self._options.discard_throttled,
        )

    def __enter__(self) -> Here:
        self._bench.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bench.__exit__(exc_type, exc, traceback)

    @property
    def gpu_names(self) -> Sequence[str]:
        """The name of each GPU that is timed."""
        return [device.properties.name for device in self._bench.devices]

    @property
    def site(self) -> Site:
        """This machine, with the devices that are timed."""
        platform, devices = self._bench.platform, self._bench.devices
        return Site(
            describe_environment(platform, devices),
            device_peaks(platform, devices),
            self._watch.waits,
        )

    def measure(
        self,
        configs: Mapping[int, Mapping[str, object]],
        keep: Keep,
        advance: Callable[[int], object],
    ) -> None:
        """Measure configurations in the order that the options ask for."""
        options = self._options
        runner = Runner(
            self._bench, self._func, self._name, options.goal, self._watch, keep, advance
        )
        try:
            runner.run(configs, options.order, options.seed)
        finally:
            self.interrupted = runner.interrupted
