"""One function being measured region by region: warm-up, looking at each region, samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpubench import notes
from gpubench.call import TimedCall
from gpubench.compilation import Compilation, watch_compilations
from gpubench.devices.base import Device, Platform, Stream, Work
from gpubench.devices.records import Records
from gpubench.devices.sharing import Share
from gpubench.errors import UnsupportedError
from gpubench.notes import Note
from gpubench.ranges.backends import backend
from gpubench.session import Budget
from gpubench.stats import FloatArray
from gpubench.sweeps.region import Region
from gpubench.sweeps.region_clock import (
    EVERYWHERE,
    Entry,
    EventClock,
    Way,
    by_name,
    crossing_names,
    stream_times,
)
from gpubench.sweeps.regions import RegionClock, timing
from gpubench.timers.attribution import attribute, next_external_id
from gpubench.timers.base import Samples, Timer
from gpubench.timers.events import EventsTimer
from gpubench.timers.floor import clock_step, floor_time
from gpubench.timers.gated import GatedTimer
from gpubench.timers.host import HostTimer
from gpubench.timers.probe import works_elsewhere

_N_PROBES = 3
"""How many runs look at each region in each place; the median counts."""

_MAX_EXPIRED = 2
"""After so many expired gates, a region that seemed not to wait is timed without one."""

_UNHELD = Way(is_held=False)


class RegionSession:
    """Phases of measuring a function with regions, to be gone through in the methods' order.

    Parameters
    ----------
    call : TimedCall
        The function.
    platform : Platform
        Where.
    devices : sequence of Device
        What is timed; empty where there is no GPU.
    go_home : callable
        Makes the caller's device current.
    method : str
        As in `benchmark`; ``"graph"`` is taken for ``"gated"``, with a note.
    share : Share, optional
        Activity records, for ``"cupti"``.
    around : callable, optional
        Returns what is to be told of regions, in place of the clock that it is given.

    Attributes
    ----------
    regions : dict of str to Region
        Those that were entered so far, in that order.
    """

    def __init__(
        self,
        call: TimedCall,
        platform: Platform,
        devices: Sequence[Device],
        go_home: Work,
        method: str,
        share: Share | None = None,
        around: Callable[[RegionClock], RegionClock] = lambda clock: clock,
    ) -> None:
        self._call = call
        self._platform = platform
        self._devices = devices if method != "host" else ()
        self._every_device = devices
        self._go_home = go_home
        self._asked = method
        self._share = share
        self._around = around
        self._is_first = True
        self._n_calls = 0
        self._first_call_time: float | None = None
        self._first_compilations: tuple[Compilation, ...] | None = ()
        self._usual = Way(is_held=method != "events")
        self._usual_notes: tuple[Note, ...] = ()
        self._must_restart = False
        self.regions: dict[str, Region] = {}

    @property
    def first_call_time(self) -> float | None:
        """Seconds of the first run until the devices were idle; None if there was none."""
        return self._first_call_time

    @property
    def first_compilations(self) -> tuple[Compilation, ...] | None:
        """What CuPy compiled in it; None if that can't be seen."""
        return self._first_compilations

    @property
    def n_runs(self) -> int:
        """How often the function has been run."""
        return self._n_calls

    def entries(self, name: str) -> float:
        """Return how often a run entered a region, on average."""
        return self.regions[name].entries

    def warm_up(self, n_warmup: int, budget: Budget) -> None:
        """Run the function that often, with no region timed; for half the budget at the most."""
        backend()  # which the first region would otherwise import, in the first call's time
        for _ in range(n_warmup):
            if self._n_calls == 0:
                with watch_compilations() as log:
                    begin = time.perf_counter()
                    self._run(self._blind())
                    self._first_call_time = time.perf_counter() - begin
                self._first_compilations = None if log.reason else tuple(log)
            elif not budget.is_spent(0.5):
                self._run(self._blind())

    def _blind(self) -> EventClock:
        return EventClock(self._platform, (), {}, _UNHELD)

    def _run(self, clock: EventClock) -> None:
        self._n_calls += 1
        call = self._call.first() if self._is_first else self._call.next()
        self._is_first = False
        try:
            with timing(self._around(clock)):
                call()
        finally:
            clock.close()
            self._call.synchronize()
        for entry in clock.entries:
            if entry.name not in self.regions:
                self.regions[entry.name] = Region(entry.name, self._usual)

    def choose(self) -> None:
        """Find out how each region can be timed, in a few runs, and what that timing costs."""
        if self._devices:
            self._find_gate()
            if self._usual.is_held:
                self._look()
        self._must_restart = False  # there are no samples yet
        for region in self.regions.values():
            self._describe(region)

    def _find_gate(self) -> None:
        if self._asked == "graph":
            self._usual_notes += (notes.no_graph("its regions are timed one by one"),)
        try:
            self._platform.gate()
        except UnsupportedError as error:
            self._usual = _UNHELD
            for region in self.regions.values():
                region.way = self._usual
            if self._asked != "events":
                self._usual_notes += (notes.no_gate(str(error)),)

    def _look(self) -> None:
        """See in which places each region works, and which regions wait for the GPU."""
        try:
            for device in self._devices:
                device.every_stream()
        except UnsupportedError as error:
            self._usual_notes += (notes.no_context_events(str(error)),)
            self._probe(Way())
            return
        # Events of a context would lengthen what those of a stream show; see `timers.probe`.
        inside = self._probe(Way(everywhere=True))
        alone = self._probe(Way(on_current=False, everywhere=True))
        for name, region in self.regions.items():
            if not region.way.is_held:
                continue  # its times include the host's, and tell nothing
            for device in self._devices:
                current = [
                    time
                    for (number, slot), time in inside.get(name, {}).items()
                    if number == device.id and slot != EVERYWHERE
                ]
                context_time = alone.get(name, {}).get((device.id, EVERYWHERE), 0.0)
                if current and works_elsewhere(max(current), context_time):
                    region.way = replace(region.way, on_current=False, everywhere=True)
                    if self._share is None:  # records don't miss a stream
                        note = notes.side_stream(device.id, context_time, max(current))
                        region.own_notes += (note,)

    def _probe(self, way: Way) -> dict[str, dict[tuple[int, int], float]]:
        """Return the median seconds of each region by device and slot."""
        seen: dict[str, dict[tuple[int, int], list[float]]] = {}
        for _ in range(_N_PROBES):
            ways = {
                name: way if region.way.is_held else replace(way, is_held=False)
                for name, region in self.regions.items()
            }
            clock = EventClock(self._platform, self._devices, ways, way)
            self._run(clock)
            for name, entries in by_name(clock.entries).items():
                places = seen.setdefault(name, {})
                for place, seconds in stream_times(entries).items():
                    places.setdefault(place, []).append(seconds)
                self._count_expired(entries, allowed=0)
        return {
            name: {place: float(np.median(times)) for place, times in places.items()}
            for name, places in seen.items()
        }

    def _count_expired(self, entries: Sequence[Entry], allowed: int) -> bool:
        """Note which gates expired; a region that had too many of them is held no more."""
        expired = [entry for entry in entries if entry.has_expired]
        for holder in {entry.holder.name for entry in expired if entry.holder}:
            region = self.regions[holder]
            region.n_expired += 1
            if region.n_expired > allowed and region.way.is_held:
                region.way = replace(region.way, is_held=False)
                region.own_notes += (_waits(self._share),)
                self._must_restart = True
        return bool(expired)

    def _describe(self, region: Region) -> None:
        """Say how the region is timed from now on, and measure what that timing costs."""
        region.n_expired = 0
        region.usual_notes = self._usual_notes
        region.n_warmup = self._n_calls
        region.first_compilations = self._first_compilations
        timer, streams = self._counterpart(region.way)
        region.method = "cupti" if self._share else timer.method
        if self._share is None:
            region.entry_floor = floor_time(timer, streams)
            region.clock_step = clock_step(streams[0]) if streams else None
        self._go_home()

    def _counterpart(self, way: Way) -> tuple[Timer, tuple[Stream, ...]]:
        """Return the timer that does with a call what is done with the region."""
        if not self._devices:
            return HostTimer(self._every_device, self._go_home), ()
        streams = tuple(
            device.every_stream() if way.everywhere else device.current_streams()[0]
            for device in self._devices
        )
        if way.is_held:
            return GatedTimer(streams, self._platform.gate(), self._go_home), streams
        return EventsTimer(streams, self._go_home), streams

    def must_restart(self) -> bool:
        """Whether a region is timed in another way from now on, so that its samples must be too."""
        must, self._must_restart = self._must_restart, False
        if must:
            for region in self.regions.values():
                region.n_entries = region.n_inner = region.n_runs = 0
                self._describe(region)
        return must

    def take(self) -> dict[str, Samples]:
        """Run the function once and return a sample of each region that was entered.

        A region's times are the sums over its entries; those inside an entry of the same name
        are part of that one.
        """
        ways = {name: region.way for name, region in self.regions.items()}
        clock = EventClock(self._platform, self._devices, ways, self._usual, self._share)
        records = self._recorded_run(clock)
        crossing = crossing_names(clock.entries)
        samples = {}
        for name, entries in by_name(clock.entries).items():
            region = self.regions[name]
            if not region.method:  # it was entered for the first time
                self._describe(region)
            region.n_runs += 1
            region.n_entries += len(entries)
            region.n_inner += sum(
                entry in inner.outer for entry in entries for inner in clock.entries
            )
            if name in crossing and not region.is_crossed:
                region.is_crossed = True
                region.own_notes += (notes.overlapping_regions(name, crossing[name]),)
            has_expired = self._count_expired(entries, _MAX_EXPIRED)
            cpu = np.array([sum(entry.cpu_time for entry in entries)])
            if records is not None:
                samples[name] = self._recorded(entries, records, cpu)
            else:
                samples[name] = Samples(cpu, self._gpu_times(entries), not has_expired)
        return samples

    def _recorded_run(self, clock: EventClock) -> Records | None:
        """Run the function once, and return the records of what it did, if there are any."""
        share = self._share
        if share is None:
            self._run(clock)
            return None
        share.collect()
        share.source.push(next_external_id())  # for what is launched outside of regions
        try:
            self._run(clock)
        finally:
            share.source.pop()
        return share.collect()

    def _gpu_times(self, entries: Sequence[Entry]) -> FloatArray:
        """Return the seconds of each device, on whichever of its streams they are longest."""
        times = stream_times(entries)
        return np.array(
            [
                [max(time for (number, _), time in times.items() if number == device.id)]
                for device in self._devices
            ]
        ).reshape(len(self._devices), 1)

    def _recorded(self, entries: Sequence[Entry], records: Records, cpu: FloatArray) -> Samples:
        calls = {
            external_id: number
            for number, entry in enumerate(entries)
            for external_id in entry.external_ids
        }
        caused = attribute(records, calls, self._devices)
        return Samples(
            cpu=cpu,
            gpu=caused.span.sum(axis=1, keepdims=True),
            busy=caused.busy.sum(axis=1, keepdims=True),
            kernels=caused.kernels,
            n_unattributed=caused.n_unattributed,
            n_dropped=records.n_dropped,
        )


def _waits(share: Share | None) -> Note:
    return notes.waits_inside() if share is None else notes.gaps_included()
