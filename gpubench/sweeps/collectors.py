"""Collectors: functions whose values, asked for while a sweep runs, become columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from gpubench.arguments import callable_name, one_of, shown, synchronous, text
from gpubench.devices import current_platform
from gpubench.devices.nvml import Sensors, find_sensors
from gpubench.errors import ArgumentError

Scope = Literal["once", "config", "run", "region"]


@dataclass(frozen=True)
class Collector:
    """A function whose values become a column; `collect` makes it. It can be called as before.

    Attributes
    ----------
    function : callable
        Returns a number, or text, or None for a missing value. Of its parameters, ``device`` is
        given the id of the GPU under test, and the others the configuration's arguments by the
        same names. If it is a generator function, it is begun before what it covers, and finished
        after; it has to yield once, and to return its value.
    scope : {"once", "config", "run", "region"}
        When it is asked: at the sweep's begin, or each time that a configuration, a run of the
        function, or an entry of a region has ended.
    name : str
        The column's name.
    unit : str
        What the numbers are in.
    """

    function: Callable[..., Any]
    scope: Scope
    name: str
    unit: str = ""

    def __post_init__(self) -> None:
        _checked_scope(self.scope)
        text("unit", self.unit)
        if not text("name", self.name):
            raise ArgumentError("name must be the name of a column, got ''")
        if not self.covers:
            synchronous("the collector", self.function)
        elif self.scope == "once":
            raise ArgumentError(
                f"the collector {self.name!r} is a generator, which covers something from its "
                "begin to its end: its scope must be 'config', 'run' or 'region', got 'once'"
            )

    @property
    def covers(self) -> bool:
        """Whether the function is a generator function, which covers something."""
        return inspect.isgeneratorfunction(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)


def collect(
    scope: Scope, *, name: str | None = None, unit: str = ""
) -> Callable[[Callable[..., Any]], Collector]:
    """Make a function a collector of a sweep.

    Parameters
    ----------
    scope : {"once", "config", "run", "region"}
        When it is asked, see `Collector`. What a collector of the scope ``"region"`` does is part
        of the time of the regions around that one, not of its own.
    name : str, optional
        The column's name; by default the function's.
    unit : str, optional
        What the numbers are in.

    Returns
    -------
    callable
        A decorator that returns a `Collector`.

    Raises
    ------
    ArgumentError
        If an argument can't be used, or the function can't be a collector.

    Examples
    --------
    >>> import os, time
    >>> from gpubench.sweeps.collectors import collect
    >>> @collect("config")
    ... def load():
    ...     return os.getloadavg()[0]
    >>> @collect("run", unit="s")
    ... def process_time():
    ...     before = time.process_time()
    ...     yield  # the run
    ...     return time.process_time() - before
    >>> process_time.name, process_time.unit
    ('process_time', 's')
    """
    _checked_scope(scope)

    def decorate(function: Callable[..., Any]) -> Collector:
        return Collector(function, scope, callable_name(function) if name is None else name, unit)

    return decorate


def _checked_scope(scope: str) -> None:
    if callable(scope):
        raise ArgumentError(
            f"collect() needs a scope: decorate {callable_name(scope)} with @collect('run'), "
            "for example"
        )
    one_of("scope", scope, get_args(Scope))


def chosen_collectors(chosen: str | Collector | Iterable[str | Collector]) -> tuple[Collector, ...]:
    """Return collectors, where ready ones are chosen by their names in `READY`.

    Raises
    ------
    ArgumentError
        If one is neither, or two have the same name.
    """
    several = chosen if isinstance(chosen, Iterable) and not isinstance(chosen, str) else [chosen]
    found = tuple(map(_collector, several))
    names = [collector.name for collector in found]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"collect must have one collector of a name, got two of {name!r}")
    return found


def _collector(chosen: object) -> Collector:
    if isinstance(chosen, Collector):
        return chosen
    if isinstance(chosen, str) and chosen in READY:
        return READY[chosen]
    wanted = f"must be collectors, or names of these: {', '.join(READY)}"
    if callable(chosen):
        raise ArgumentError(
            f"collect {wanted}; to make {callable_name(chosen)} one, decorate it with "
            "@collect('run'), for example"
        )
    raise ArgumentError(f"collect {wanted}; got {shown(chosen)}")


def _sensors(device: int) -> Sensors:
    return find_sensors(current_platform().device(device).properties.pci_bus_id)


@collect("once")
def driver(device: int) -> str:
    """Version of the GPU's driver."""
    return _sensors(device).driver()


@collect("run", unit="Hz")
def sm_clock(device: int) -> float:
    """Clock of the multiprocessors after a run."""
    return _sensors(device).sm_clock()


@collect("run", unit="Hz")
def memory_clock(device: int) -> float:
    """Clock of the memory after a run."""
    return _sensors(device).memory_clock()


@collect("run", unit="°C")
def temperature(device: int) -> float:
    """The GPU's temperature after a run."""
    return _sensors(device).temperature()


@collect("run", unit="W")
def power(device: int) -> float:
    """Power that the board draws; on most GPUs the mean of the second before a run's end."""
    return _sensors(device).power()


@collect("run", unit="J")
def energy(device: int) -> Generator[None, None, float]:
    """Energy that the board draws from a run's begin to its end.

    The GPU counts in steps of some ten milliseconds. So in runs that are shorter only the mean
    of many means something, and in it the time between the runs has a part.
    """
    sensors = _sensors(device)
    before = sensors.energy()
    yield
    return sensors.energy() - before


@collect("run")
def throttle_reasons(device: int) -> str:
    """What slows the GPU down after a run, by NVML's names; "none" if nothing does."""
    return ", ".join(_sensors(device).throttle_reasons()) or "none"


@collect("run", unit="bytes")
def memory_used(device: int) -> int:
    """Memory of the GPU that is in use after a run, by any process or by the driver."""
    return _sensors(device).memory_used_bytes()


READY = MappingProxyType(
    {
        collector.name: collector
        for collector in (
            driver,
            sm_clock,
            memory_clock,
            temperature,
            power,
            energy,
            throttle_reasons,
            memory_used,
        )
    }
)
"""Collectors of the state of the GPU under test, by name. Nothing is ever set."""
