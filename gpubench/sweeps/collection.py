"""What collectors gave in the course of a sweep."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter
from typing import Any

import numpy as np

from gpubench.arguments import finished
from gpubench.errors import ArgumentError, UnsupportedError
from gpubench.stats import FloatArray
from gpubench.sweeps.collectors import Collector, Scope
from gpubench.sweeps.configurations import call_arguments


class CollectorWarning(UserWarning):
    """A collector gave no value."""


@dataclass(frozen=True)
class Entry:
    """What one collector gave at one moment.

    Attributes
    ----------
    name : str
        The collector's name.
    region : str or None
        The region that it was asked about; None if its scope is another.
    value : float or str
        NaN if it is missing.
    """

    name: str
    region: str | None
    value: float | str


class Collectors:
    """The collectors of one sweep.

    Parameters
    ----------
    collectors : iterable of Collector
        With names of their own.
    parameters : iterable of str
        The names of the function's arguments.
    device : int
        The id of the GPU under test.

    Attributes
    ----------
    units : dict of str to str
        Each one's unit, by its name.

    Raises
    ------
    ArgumentError
        If one has the name of a parameter, or wants an argument that it can't be given.
    """

    def __init__(
        self, collectors: Iterable[Collector], parameters: Iterable[str] = (), device: int = 0
    ) -> None:
        self._collectors = tuple(collectors)
        self._device = device
        self._warned: set[str] = set()
        self.units = {collector.name: collector.unit for collector in self._collectors}
        known = tuple(parameters)
        for collector in self._collectors:
            _check(collector, known)

    def of(self, config: Mapping[str, object]) -> Collection:
        """Return what is to hold the values of one configuration.

        The first time, collectors of the scope ``"once"`` are asked.
        """
        return Collection(self, config, self._once)

    @cached_property
    def _once(self) -> tuple[Entry, ...]:
        with self.asked("once", {}) as entries:
            pass
        return tuple(entries)

    @contextmanager
    def asked(
        self, scope: Scope, config: Mapping[str, object], region: str | None = None
    ) -> Iterator[list[Entry]]:
        """Ask the collectors of a scope about the block; what they give is in the list after it.

        Nothing is if the block raises. A collector that raises itself gives a missing value.
        """
        entries: list[Entry] = []
        with ExitStack() as stack:
            for collector in self._collectors:
                if collector.scope == scope:
                    stack.enter_context(self._asked(collector, config, region, entries))
            yield entries

    @contextmanager
    def _asked(
        self,
        collector: Collector,
        config: Mapping[str, object],
        region: str | None,
        entries: list[Entry],
    ) -> Iterator[None]:
        work = _work(collector, config, self._device)
        with self._excused(collector):
            _begin(work)
        yield
        value: float | str = math.nan
        with self._excused(collector):
            value = _value(collector.name, _end(work))
        entries.append(Entry(collector.name, region, value))

    @contextmanager
    def _excused(self, collector: Collector) -> Iterator[None]:
        """Warn of an exception, once for each collector or, of NVML's silence, for each cause."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # a collector must not stop the sweep
            if isinstance(error, UnsupportedError):
                key = str(error)
                message = f"{collector.name} and what needs the same can't be collected: {error}"
            else:
                key = collector.name
                message = (
                    f"the collector {key!r} gave no value: {type(error).__name__}: {error}; "
                    "wherever it fails, its value is missing"
                )
            if key not in self._warned:
                self._warned.add(key)
                warnings.warn(message, CollectorWarning, stacklevel=2)


class Collection:
    """The values of one configuration, from its begin on; `Collectors.of` makes it."""

    def __init__(
        self, collectors: Collectors, config: Mapping[str, object], once: Iterable[Entry]
    ) -> None:
        self._collectors = collectors
        self._config = config
        self._lasting = list(once)
        self._runs: list[list[Entry]] = []
        self._run: list[Entry] | None = None

    @contextmanager
    def config(self) -> Iterator[None]:
        """Ask the collectors of the scope ``"config"`` about the block."""
        with self._collectors.asked("config", self._config) as entries:
            yield
        self._lasting += entries

    @contextmanager
    def run(self) -> Iterator[None]:
        """Ask those of the scope ``"run"``; if the block raises, nothing of the run is kept.

        The block should end with the GPU's work.
        """
        self._run = []
        try:
            with self._collectors.asked("run", self._config) as entries:
                yield
            self._runs.append(self._run + entries)
        finally:
            self._run = None

    @contextmanager
    def region(self, name: str) -> Iterator[None]:
        """Ask those of the scope ``"region"``, within a run; elsewhere they are not asked.

        Other threads may do so at the same time.
        """
        run = self._run
        if run is None:
            yield
            return
        with self._collectors.asked("region", self._config, name) as entries:
            yield
        run += entries

    def keep_runs(self, n: int) -> None:
        """Forget all runs but the first `n`, as those after them don't count."""
        del self._runs[n:]

    def columns(self, region: str) -> tuple[dict[str, FloatArray], dict[str, str]]:
        """Return the values for a region.

        Parameters
        ----------
        region : str
            Values of the scope ``"region"`` are this one's; all others are every region's.

        Returns
        -------
        numbers : dict of str to ndarray
            The numbers of each collector that gave any, or nothing but missing values; NaN where
            one is missing.
        labels : dict of str to str
            The last text of each collector that gave any.
        """
        values: dict[str, list[float | str]] = {}
        for entry in (*self._lasting, *(entry for run in self._runs for entry in run)):
            if entry.region in (None, region):
                values.setdefault(entry.name, []).append(entry.value)
        labels = {
            name: [value for value in series if isinstance(value, str)]
            for name, series in values.items()
        }
        numbers = {
            name: np.array([math.nan if isinstance(v, str) else v for v in series], np.float64)
            for name, series in values.items()
        }
        return (
            {n: x for n, x in numbers.items() if not labels[n] or not np.isnan(x).all()},
            {name: texts[-1] for name, texts in labels.items() if texts},
        )


def _check(collector: Collector, parameters: Iterable[str]) -> None:
    """Refuse a collector that can't be a column beside the parameters, or can't be called."""
    if collector.name in parameters:
        raise ArgumentError(
            f"the collector {collector.name!r} has the name of a parameter of the function; give "
            "it another one by name="
        )
    given = {"device"} if collector.scope == "once" else {"device", *parameters}
    for name, parameter in _parameters(collector).items():
        is_required = parameter.default is Parameter.empty and parameter.kind not in (
            Parameter.VAR_POSITIONAL,
            Parameter.VAR_KEYWORD,
        )
        if is_required and name not in given:
            raise ArgumentError(
                f"the collector {collector.name!r} of the scope {collector.scope!r} wants an "
                f"argument {name!r}, and can have: {', '.join(sorted(given))}"
            )


def _parameters(collector: Collector) -> Mapping[str, Parameter]:
    try:
        return inspect.signature(collector.function).parameters
    except (TypeError, ValueError):  # it is written in C, and called without arguments
        return {}


def _work(
    collector: Collector, config: Mapping[str, object], device: int
) -> Generator[Any, Any, Any]:
    """Call a collector: what it does before a block, then, after it, the rest and its value."""
    parameters = _parameters(collector)
    takes_all = any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())
    given = {name: value for name, value in config.items() if takes_all or name in parameters}
    if "device" in parameters:
        given["device"] = device
    args, kwargs = call_arguments(collector.function, given)
    if collector.covers:
        return (yield from collector.function(*args, **kwargs))
    yield
    return collector.function(*args, **kwargs)


_ENDED = object()


def _begin(work: Generator[Any, Any, Any]) -> None:
    if next(work, _ENDED) is _ENDED:
        raise TypeError("a generator has to yield once")


def _end(work: Generator[Any, Any, Any]) -> Any:
    try:
        next(work)
    except StopIteration as end:
        return end.value
    raise TypeError("a generator has to yield once")


def _value(name: str, returned: Any) -> float | str:
    finished(f"the collector {name!r}", returned)
    if returned is None:
        return math.nan
    if isinstance(returned, str):
        return str(returned)
    is_number = hasattr(returned, "__float__") or hasattr(returned, "__index__")
    if not is_number or getattr(returned, "ndim", False):
        raise TypeError(f"it returned {returned!r}, which is neither a number nor text")
    return float(returned)
