"""One configuration of a sweep: prepared, sampled in blocks, and turned into measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpubench.bench import Bench, Conditions
from gpubench.measure import ADAPTIVE_DURATION
from gpubench.sampling import MIN_ADAPTIVE_SAMPLES, Collected, collection_off
from gpubench.session import Budget, Session
from gpubench.sweeps.collection import Collection, Collectors
from gpubench.sweeps.configurations import call_arguments
from gpubench.sweeps.measurement import Measurement, Status
from gpubench.sweeps.region_session import RegionSession
from gpubench.sweeps.regions import RegionClock
from gpubench.sweeps.thermal import (
    StateReader,
    ThermalWait,
    ThermalWatch,
    may_discard,
    was_throttled,
)
from gpubench.timers.base import Measured, Samples


@dataclass(frozen=True)
class Goal:
    """How much is to be measured of each configuration.

    Attributes
    ----------
    n_repeat : int or None
        So many runs; None: until every region's median is known well enough.
    n_warmup : int
        Runs that go ahead.
    max_duration : float
        Seconds for one configuration; at least one sample is taken.
    """

    n_repeat: int | None
    n_warmup: int
    max_duration: float

    @property
    def duration(self) -> float:
        """Seconds for the samples; where nobody limits an adaptive run, as in `benchmark`."""
        is_open = self.n_repeat is None and math.isinf(self.max_duration)
        return ADAPTIVE_DURATION if is_open else self.max_duration


@dataclass
class Watch:
    """What a sweep looks at while it measures.

    Attributes
    ----------
    collectors : Collectors
        The user's.
    thermal : ThermalWatch
        Waits for a hot GPU.
    read : callable
        Returns the GPU's state.
    discards : bool
        Whether samples that the GPU was slowed down in are taken anew.
    waits : list of ThermalWait
        The waits so far, but for those that weren't any.
    """

    collectors: Collectors
    thermal: ThermalWatch
    read: StateReader
    discards: bool = False
    waits: list[ThermalWait] = field(default_factory=list)

    def cool_down(self) -> None:
        """Wait for the GPU, if it is hot."""
        wait = self.thermal.wait()
        if wait.reason:
            self.waits.append(wait)


@dataclass(frozen=True, eq=False)
class Asked:
    """A region that collectors are asked about, and what the clock made of it."""

    asking: AbstractContextManager[None]
    entry: object


class CollectingClock:
    """A clock that asks collectors about each region too, outside of what is timed."""

    def __init__(self, clock: RegionClock, collection: Collection) -> None:
        self._clock = clock
        self._collection = collection

    def enter(self, name: str, outer: tuple[Asked, ...]) -> Asked:
        """Begin to ask, then to time."""
        asking = self._collection.region(name)
        asking.__enter__()
        return Asked(asking, self._clock.enter(name, tuple(each.entry for each in outer)))

    def leave(self, entry: Asked) -> None:
        """End to time, then to ask."""
        self._clock.leave(entry.entry)
        entry.asking.__exit__(None, None, None)


class WholeFunction:
    """A function without regions, measured as `benchmark` does, in a region session's terms."""

    def __init__(self, name: str, session: Session, collection: Collection) -> None:
        self.name = name
        self._session = session
        self._collection = collection
        self.regions: dict[str, Measured] = {name: session}
        self.must_restart = session.must_restart

    def take(self) -> dict[str, Samples]:
        """Take one sample."""
        with self._collection.region(self.name):
            return {self.name: self._session.take(1)}

    def entries(self, _: str) -> float:
        """Return 1: a run is one entry."""
        return 1.0


@dataclass
class Part:
    """The samples of one region."""

    collected: Collected = field(default_factory=Collected)
    throttled: list[bool] = field(default_factory=list)


class Subject:
    """One configuration, in the phases of the methods' order.

    Parameters
    ----------
    bench : Bench
        Where it is measured; its ``with`` block is entered.
    func : callable
        The function.
    name : str
        What it is called.
    config : mapping
        Its arguments, by their parameters' names.
    goal : Goal
        When there are enough samples.
    watch : Watch
        What is looked at meanwhile.

    Attributes
    ----------
    is_done : bool
        Whether there are enough samples.
    """

    def __init__(
        self,
        bench: Bench,
        func: Callable[..., object],
        name: str,
        config: Mapping[str, object],
        goal: Goal,
        watch: Watch,
    ) -> None:
        self.config = config
        self.is_done = False
        self._bench = bench
        self._func = func
        self._name = name
        self._goal = goal
        self._watch = watch
        self._collection = watch.collectors.of(config)
        self._collecting = ExitStack()
        self._parts: dict[str, Part] = {}
        self._seen: list[Conditions] = []
        self._budget = 0.0
        self._n_runs = self._n_discarded = 0
        self._session: RegionSession | WholeFunction

    def prepare(self) -> None:
        """Warm up, find the regions, and choose how to time them."""
        self._collecting.enter_context(self._collection.config())
        args, kwargs = call_arguments(self._func, self.config)
        regions = RegionSession(
            self._bench.call(self._func, args, kwargs),
            self._bench.platform,
            self._bench.devices,
            self._bench.go_home,
            self._bench.method,
            self._bench.share,
            lambda clock: CollectingClock(clock, self._collection),
        )
        budget = Budget(self._goal.max_duration)
        regions.warm_up(max(1, self._goal.n_warmup), budget)
        if regions.regions:
            regions.choose()
            self._session = regions
        else:
            self._session = self._whole_function(regions, args, kwargs, budget)
        self._budget = min(self._goal.duration, budget.left())

    def _whole_function(
        self,
        regions: RegionSession,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        budget: Budget,
    ) -> WholeFunction:
        whole = self._bench.session(self._func, args, kwargs)
        whole.warm_up(1, budget)
        whole.first_call_time = regions.first_call_time
        whole.first_compilations = regions.first_compilations
        whole.n_warmup += regions.n_runs
        whole.choose(self._bench.method, budget, many=False)
        return WholeFunction(self._name, whole, self._collection)

    def take_block(self, n: int, advance: Callable[[int], object]) -> None:
        """Take up to `n` more samples; fewer if there are enough before."""
        budget = Budget(self._budget)
        with self._bench.watched() as seen, collection_off():
            for _ in range(n):
                self._take(advance)
                self.is_done = self._is_enough(budget)
                if self.is_done:
                    break
        self._budget = budget.left()
        self._seen += seen

    def _take(self, advance: Callable[[int], object]) -> None:
        self._watch.cool_down()
        before = self._watch.read()
        with self._collection.run():
            samples = self._session.take()
        throttled = was_throttled(before, self._watch.read())
        if self._session.must_restart():
            self._parts, self._n_runs = {}, 0
        elif throttled and self._watch.discards and may_discard(self._n_discarded, self._n_runs):
            self._n_discarded += 1
        else:
            self._n_runs += 1
            for name, sample in samples.items():
                part = self._parts.setdefault(name, Part())
                part.collected.add(sample)
                part.throttled.append(throttled)
            advance(1)
        self._collection.keep_runs(self._n_runs)

    def _is_enough(self, budget: Budget) -> bool:
        if not self._n_runs:
            return False
        if budget.is_spent():
            return self._stop("max_duration")
        if self._goal.n_repeat is not None:
            return self._n_runs == self._goal.n_repeat
        if self._n_runs < MIN_ADAPTIVE_SAMPLES or self._n_runs % 5:
            return False
        parts = self._parts.values()
        return all(p.collected.is_precise() for p in parts) and self._stop("converged")

    def _stop(self, reason: Any) -> bool:
        for part in self._parts.values():
            part.collected.stopped_by = reason
        return True

    def close(self) -> None:
        """Ask what is asked when a configuration has ended."""
        self._collecting.close()

    def measurements(self, status: Status = "ok", error: str = "") -> tuple[Measurement, ...]:
        """Return what was measured so far; a failed configuration is one measurement."""
        if status == "interrupted":
            self._stop("interrupted")
        if status == "failed" or not self._parts:
            return (Measurement(config=self.config, region=self._name, status=status, error=error),)
        return tuple(self._measurement(name, part, status) for name, part in self._parts.items())

    def _measurement(self, name: str, part: Part, status: Status) -> Measurement:
        region = self._session.regions[name]
        collected, labels = self._collection.columns(name)
        return Measurement(
            config=self.config,
            region=name,
            status=status,
            result=self._bench.result(name, region, part.collected, self._seen),
            entries=self._session.entries(name),
            throttled=np.array(part.throttled, bool),
            n_discarded=self._n_discarded,
            collected=collected,
            labels=labels,
            units={name: unit for name, unit in self._watch.collectors.units.items() if unit},
        )
