"""Timing regions while a function runs: each entry by its own gate and events.

What belongs to an entry is told by events on the streams between its beginning and its end, or by
the external id that was pushed meanwhile; never by the order of launches.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter_ns

from gpubench.devices.base import Device, Event, Gate, Platform, Stream
from gpubench.devices.sharing import Share
from gpubench.errors import UnsupportedError
from gpubench.sweeps.regions import annotate
from gpubench.timers.cupti import next_external_id


@dataclass(frozen=True)
class Way:
    """How a region is timed.

    Attributes
    ----------
    is_held : bool
        Whether a gate holds the streams until the region has queued its work.
    on_current : bool
        Whether events are recorded on the frameworks' current streams.
    everywhere : bool
        Whether they are recorded on all streams of a device together, where it can be done.
    """

    is_held: bool = True
    on_current: bool = True
    everywhere: bool = False


@dataclass(eq=False)
class Span:
    """Two events on one stream."""

    stream: Stream
    start: Event
    end: Event


@dataclass(eq=False)
class Entry:
    """One time that a region was entered.

    Attributes
    ----------
    name : str
        The region's.
    outer_names : tuple of str
        Of the regions around it in its thread.
    cpu_time : float
        Seconds of the host.
    spans : list of Span
        Events on its streams.
    external_ids : list of int
        What its calls and those of regions inside are linked to.
    has_expired : callable
        Whether its gate's deadline passed; to be asked when the devices are idle.
    """

    region: annotate
    name: str
    outer_names: tuple[str, ...]
    cpu_time: float = 0.0
    spans: list[Span] = field(default_factory=list)
    external_ids: list[int] = field(default_factory=list)
    gate: Gate | None = None
    closing: int = 0
    begin: int = 0

    @property
    def is_nested_in_itself(self) -> bool:
        """Whether an entry of the same name around it counts its time already."""
        return self.name in self.outer_names

    @property
    def has_expired(self) -> bool:
        """Whether its gate's deadline passed; to be asked when the devices are idle."""
        return self.gate is not None and self.gate.has_expired(self.closing)


class EventClock:
    """Times the regions of one run.

    Parameters
    ----------
    platform : Platform
        Makes gates, one for each thread.
    devices : sequence of Device
        Which to time; empty for the host's clock alone.
    ways : mapping of str to Way
        How, by the region's name.
    usual : Way
        How other regions are timed.
    share : Share, optional
        Activity records, for attribution by external id.

    Attributes
    ----------
    entries : list of Entry
        Those that have been left, in that order.
    """

    def __init__(
        self,
        platform: Platform,
        devices: Sequence[Device],
        ways: Mapping[str, Way],
        usual: Way,
        share: Share | None = None,
    ) -> None:
        self._platform = platform
        self._devices = devices
        self._ways = ways
        self._usual = usual
        self._share = share
        self._local = threading.local()
        self._gates: list[Gate] = []
        self.entries: list[Entry] = []

    def _stack(self) -> list[Entry]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        stack: list[Entry] = self._local.stack
        return stack

    def enter(self, region: annotate, name: str) -> None:
        """Begin to time a region, in the thread that calls."""
        stack = self._stack()
        entry = Entry(region, name, tuple(outer.name for outer in stack))
        if self._devices:
            with self._platform.preserved():
                self._begin_spans(entry, is_held=any(outer.gate for outer in stack))
        if self._share is not None:
            entry.external_ids.append(next_external_id())
            self._share.source.push(entry.external_ids[0])
        stack.append(entry)
        entry.begin = perf_counter_ns()

    def leave(self, region: annotate) -> None:
        """End the innermost entry of this region in the thread that calls, if there is one."""
        now = perf_counter_ns()
        stack = self._stack()
        # Blocks of coroutines may end in another order than they began.
        entry = next((entry for entry in reversed(stack) if entry.region is region), None)
        if entry is None:
            return
        stack.remove(entry)
        entry.cpu_time = (now - entry.begin) * 1e-9
        if self._share is not None:
            self._share.source.pop()
            if stack:
                stack[-1].external_ids += entry.external_ids
        try:
            with self._platform.preserved():
                for span in reversed(entry.spans):
                    span.stream.record(span.end)
        finally:
            if entry.gate is not None:
                entry.gate.open()
        self.entries.append(entry)

    def close(self) -> None:
        """Open the gates of entries that were never left."""
        for gate in self._gates:
            with suppress(UnsupportedError):
                gate.open()

    def _begin_spans(self, entry: Entry, is_held: bool) -> None:
        way = self._ways.get(entry.name, self._usual)
        streams = [stream for device in self._devices for stream in _streams(device, way)]
        if way.is_held and not is_held:
            entry.gate = self._platform.gate()
            self._gates.append(entry.gate)
            entry.closing = entry.gate.close()
        try:
            for stream in streams:
                if entry.gate is not None:
                    stream.hold(entry.gate)
            for stream in streams:
                create = stream.device.create_event
                span = Span(stream, create(), create())
                stream.record(span.start)
                entry.spans.append(span)
        except BaseException:
            if entry.gate is not None:
                entry.gate.open()
            raise


def _streams(device: Device, way: Way) -> list[Stream]:
    """Return where a device is timed, outermost first."""
    outer = [device.every_stream()] if way.everywhere else []
    return [*outer, *(device.current_streams() if way.on_current else ())]
