"""Timing regions while a function runs: each entry by its own gate and events.

What belongs to an entry is told by events on the streams between its beginning and its end, or by
the external id that was pushed meanwhile; never by the order of launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns

from gpubench.devices.base import Device, Event, Gate, Platform, Stream
from gpubench.devices.sharing import Share
from gpubench.timers.attribution import next_external_id


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


EVERYWHERE = -1
"""The slot of all streams of a device together; the current ones are numbered from 0."""


@dataclass(frozen=True)
class Span:
    """Two events on one of a device's streams.

    Attributes
    ----------
    device : int
        The device's id.
    slot : int
        Which of its streams, or `EVERYWHERE`.
    stream : Stream
        The stream.
    start, end : Event
        The events.
    """

    device: int
    slot: int
    stream: Stream
    start: Event
    end: Event

    @property
    def time(self) -> float:
        """Seconds between the two, once both have happened."""
        return self.end.seconds_since(self.start)


@dataclass(eq=False)
class Entry:
    """One time that a region was entered.

    Attributes
    ----------
    name : str
        The region's name.
    outer : tuple of Entry
        Those around it in its thread, the innermost last.
    spans : tuple of Span
        Its events; none of them has happened before the devices are idle.
    cpu_time : float
        Seconds of the host.
    external_ids : list of int
        What its calls, and those of the regions inside, are linked to.
    begin, end : int
        When the host was in it, in nanoseconds of its clock.
    """

    name: str
    outer: tuple[Entry, ...]
    spans: tuple[Span, ...] = ()
    cpu_time: float = 0.0
    external_ids: list[int] = field(default_factory=list)
    begin: int = 0
    end: int = 0
    _gate: Gate | None = None
    _closing: int = 0

    @property
    def is_nested_in_itself(self) -> bool:
        """Whether an entry of the same name around it counts its time already."""
        return any(outer.name == self.name for outer in self.outer)

    @property
    def holder(self) -> Entry | None:
        """The entry whose gate holds this one's streams: itself, one around it, or none."""
        return next((entry for entry in (*self.outer, self) if entry._gate is not None), None)

    @property
    def has_expired(self) -> bool:
        """Whether the deadline of the gate passed; to be asked when the devices are idle."""
        holder = self.holder
        return (
            holder is not None
            and holder._gate is not None
            and holder._gate.has_expired(holder._closing)
        )

    def close(self, gate: Gate) -> None:
        """Close a gate for this entry."""
        self._gate, self._closing = gate, gate.close()

    def open(self) -> None:
        """Open the gate that was closed for this entry, if one was."""
        if self._gate is not None:
            self._gate.open()


def crossing_names(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the regions that were open at once with one that isn't nested in them.

    Parameters
    ----------
    entries : sequence of Entry
        Those of one run.

    Returns
    -------
    dict of str to str
        Of each such region, the name of one that crossed it.
    """
    found: dict[str, str] = {}
    in_order = sorted(entries, key=lambda entry: entry.begin)
    for i, first in enumerate(in_order):
        for second in in_order[i + 1 :]:
            if second.begin >= first.end:
                break
            if first not in second.outer or second.end > first.end:
                found.setdefault(first.name, second.name)
                found.setdefault(second.name, first.name)
    return found


def by_name(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return the entries of each region, without those inside of one of the same name."""
    found: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.begin):
        if not entry.is_nested_in_itself:
            found.setdefault(entry.name, []).append(entry)
    return found


def stream_times(entries: Sequence[Entry]) -> dict[tuple[int, int], float]:
    """Return the seconds of several entries together, by device and slot."""
    times: dict[tuple[int, int], float] = {}
    for entry in entries:
        for span in entry.spans:
            place = span.device, span.slot
            times[place] = times.get(place, 0.0) + span.time
    return times


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
        self._unfinished: list[Entry] = []
        self.entries: list[Entry] = []

    def enter(self, name: str, outer: tuple[Entry, ...]) -> Entry:
        """Begin to time a region, in the thread that calls."""
        entry = Entry(name, outer)
        if self._devices:
            with self._platform.preserved():
                self._begin(entry)
        if self._share is not None:
            entry.external_ids.append(next_external_id())
            self._share.source.push(entry.external_ids[0])
        self._unfinished.append(entry)
        entry.begin = perf_counter_ns()
        return entry

    def leave(self, entry: Entry) -> None:
        """End what `enter` began."""
        now = perf_counter_ns()
        self._unfinished.remove(entry)
        entry.cpu_time = (now - entry.begin) * 1e-9
        entry.end = now
        try:
            if self._share is not None:
                self._share.source.pop()
                if entry.outer:
                    entry.outer[-1].external_ids += entry.external_ids
            if entry.spans:
                with self._platform.preserved():
                    for span in reversed(entry.spans):
                        span.stream.record(span.end)
        finally:
            entry.open()
        self.entries.append(entry)

    def close(self) -> None:
        """Open the gates of entries that were never left."""
        for entry in self._unfinished:
            entry.open()

    def _begin(self, entry: Entry) -> None:
        way = self._ways.get(entry.name, self._usual)
        places = [
            (device, slot, stream)
            for device in self._devices
            for slot, stream in _streams(device, way)
        ]
        try:
            if way.is_held and entry.holder is None:
                gate = self._platform.gate()
                entry.close(gate)
                for _, _, stream in places:
                    stream.hold(gate)
            spans = [
                Span(device.id, slot, stream, device.create_event(), device.create_event())
                for device, slot, stream in places
            ]
            for span in spans:
                span.stream.record(span.start)
            entry.spans = tuple(spans)
        except BaseException:
            entry.open()
            raise


def _streams(device: Device, way: Way) -> list[tuple[int, Stream]]:
    """Return where a device is timed, outermost first, with the slots."""
    outer = [(EVERYWHERE, device.every_stream())] if way.everywhere else []
    return [*outer, *enumerate(device.current_streams() if way.on_current else ())]
