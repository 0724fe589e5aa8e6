"""One run of a sweep: what is measured, counted and kept."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from types import CodeType
from typing import TYPE_CHECKING, Any

from gpubench import notes
from gpubench.errors import ArgumentError
from gpubench.notes import Note
from gpubench.progress import progress_bar
from gpubench.sweeps.checkpoint import Checkpoint, open_checkpoint
from gpubench.sweeps.collectors import Collector
from gpubench.sweeps.configurations import configurations
from gpubench.sweeps.counters import CounterReport, collect_counters, limited_by
from gpubench.sweeps.engine import Engine, Here, Keep, Site
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.outcome import SweepResult
from gpubench.sweeps.subject import Goal
from gpubench.sweeps.thermal import ThermalPolicy

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a sweep was made with, checked; see `sweep`, whose arguments these are.

    Attributes
    ----------
    bench : mapping of str to object
        The arguments of `Bench`.
    view : mapping of str to object
        Arguments of `SweepResult`.
    counting : mapping of str to object
        Arguments of `collect_counters`.
    """

    configs: Iterable[object] | None
    goal: Goal
    bench: Mapping[str, Any]
    order: str
    seed: int
    view: Mapping[str, Any]
    collectors: tuple[Collector, ...]
    thermal: ThermalPolicy
    discard_throttled: bool
    checkpoint: str | PathLike[str] | None
    counters: tuple[str, ...] | None
    counting: Mapping[str, Any]
    client: Client | None
    progress: bool | None
    name: str | None


def _digest(func: Callable[..., object]) -> str:
    """Return what changes when a function's own code does; empty if it has none in Python."""
    while isinstance(func, functools.partial):
        func = func.func
    code = getattr(func, "__code__", None) or getattr(type(func).__call__, "__code__", None)
    return hashlib.sha256(repr(_instructions(code)).encode()).hexdigest()[:16] if code else ""


def _instructions(code: CodeType) -> tuple[object, ...]:
    constants = [_instructions(c) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.co_code, code.co_names, constants


class Run:
    """One run of a sweep.

    Parameters
    ----------
    options : Options
        What the sweep was made with.
    func : callable
        The function.
    name : str
        What it is called, if the options don't say.
    configs : iterable or None
        Instead of those of the options.
    """

    def __init__(
        self,
        options: Options,
        func: Callable[..., object],
        name: str,
        configs: Iterable[object] | None,
    ) -> None:
        self._options = options
        self._func = func
        self._name = options.name or name
        chosen = options.configs if configs is None else configs
        if chosen is None:
            raise ArgumentError("configs are given neither to sweep() nor to the call")
        self._configs = configurations(func, chosen)
        self._parameters = tuple(dict.fromkeys(key for config in self._configs for key in config))
        self._measured: dict[int, tuple[Measurement, ...]] = {}
        self._environment: dict[str, Any] = {}
        self._peaks = options.view["peaks"]
        self._notes: list[Note] = []
        self._counters = CounterReport()
        self.result()  # refuses what can't be derived, before anything is measured

    def measure(self) -> None:
        """Measure what isn't done yet, and keep what is, whatever happens."""
        options = self._options
        with ExitStack() as stack:
            engine = stack.enter_context(self._engine())
            checkpoint = None
            if options.checkpoint is not None:
                agreed = self._agreed(engine.gpu_names)
                opened = open_checkpoint(options.checkpoint, self._name, self._configs, agreed)
                checkpoint = stack.enter_context(opened)
                self._measured.update(checkpoint.done)
            left = {i: c for i, c in enumerate(self._configs) if i not in self._measured}
            n_samples = options.goal.n_repeat and options.goal.n_repeat * len(left)
            bar = progress_bar(options.progress, n_samples, self._name, "run")
            try:
                engine.measure(left, self._keeper(checkpoint), stack.enter_context(bar))
            except KeyboardInterrupt:
                self._notes.append(notes.sweep_interrupted(len(self._measured), len(self._configs)))
                raise
            finally:
                self._measured.update(engine.interrupted)
                self._describe(engine.site)

    def _engine(self) -> Engine:
        engine: Callable[..., Engine] = Here
        if self._options.client is not None:
            from gpubench.integrations.dask.sweeps import OnDask

            engine = OnDask
        return engine(self._options, self._func, self._name, self._parameters)

    def _agreed(self, gpu_names: Sequence[str]) -> dict[str, object]:
        """Return what two runs must have in common for one to go on where the other ended."""
        goal = self._options.goal
        return {
            **self._options.bench,
            "n_repeat": goal.n_repeat,
            "n_warmup": goal.n_warmup,
            "max_duration": str(goal.max_duration),
            "gpus": list(gpu_names),
            "collect": [collector.name for collector in self._options.collectors],
            "code": _digest(self._func),
        }

    def _keeper(self, checkpoint: Checkpoint | None) -> Keep:
        def keep(index: int, measurements: tuple[Measurement, ...]) -> None:
            self._measured[index] = measurements
            if checkpoint is not None:
                checkpoint.write(index, measurements)

        return keep

    def _describe(self, site: Site) -> None:
        self._environment = dict(site.environment)
        self._peaks = self._peaks or site.peaks
        if site.waits:
            self._notes.append(
                notes.waited_for_heat(
                    len(site.waits),
                    sum(wait.waited_time for wait in site.waits),
                    sum(wait.timed_out for wait in site.waits),
                    site.waits[-1].reason,
                )
            )

    def count(self) -> None:
        """Read the hardware counters, if any are wanted.

        To be called ahead of `measure`: the function travels to another process, and some can't
        any more once they ran (CuPy's fused functions crash there, with kernels in their memory).
        """
        options = self._options
        if options.counters is None:
            return
        self._counters = collect_counters(
            self._func, self._configs, options.counters, **options.counting
        )
        self._notes += self._counters.notes

    def _counted(self, index: int, measurement: Measurement) -> Measurement:
        region = None if measurement.region == self._name else measurement.region
        report = self._counters
        values = report.values.get((index, region), {})
        limit = limited_by(values)
        labels = {**measurement.labels, **({"limited_by": limit} if limit else {})}
        units = {
            **measurement.units,
            **{name: unit for name, unit in report.units.items() if name in values},
        }
        return replace(measurement, counters=values, labels=labels, units=units)

    def result(self) -> SweepResult:
        """Return what was measured."""
        return SweepResult(
            name=self._name,
            parameters=self._parameters,
            measurements=tuple(
                self._counted(index, measurement)
                for index, measurements in sorted(self._measured.items())
                for measurement in measurements
            ),
            environment=self._environment,
            notes=tuple(self._notes),
            **{**self._options.view, "peaks": self._peaks},
        )
