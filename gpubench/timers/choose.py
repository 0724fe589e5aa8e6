"""Which timer suits a call: what was asked for, where the machine and the call allow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpubench import notes
from gpubench.devices.base import Device, Gate, Platform, Stream, Work
from gpubench.devices.sharing import Share
from gpubench.errors import UnsupportedError
from gpubench.notes import Note
from gpubench.timers.base import Timer
from gpubench.timers.cupti import CuptiTimer
from gpubench.timers.events import EventsTimer
from gpubench.timers.gated import GatedTimer
from gpubench.timers.graph import GraphTimer
from gpubench.timers.host import HostTimer
from gpubench.timers.probe import N_PROBES, ExpiredError, Sighting, probe

SHARING = ((8, 10), (8, 1), (4, 10), (2, 10))
"""How many samples share a gate, and how many gates are closed before the device is waited for,
where many samples are asked for: the first of these that doesn't disturb the call. A gate costs
about as much wall time as two plain samples. But the more there is in the queue, the longer a
call takes: on an H200 half a microsecond longer from about the tenth kernel on; and one of 20 us
and more takes 0.7 us longer if the host is filling the queue while it runs."""

_SHARING_ERROR = 3e-7
_RELATIVE_SHARING_ERROR = 0.001
"""How much longer, in seconds or as a part of it, whichever is more, a call may read behind a
shared gate than behind its own."""

_N_ALONE = 7
_N_GATES = 4
"""How many calls are timed alone, and how many shared gates at most, to see that."""

_LONG_CALL = 1e-3
"""Seconds from which on a call has a gate of its own, whose cost is nothing beside it."""


@dataclass(frozen=True)
class Choice:
    """A timer, and what was learned on the way to it.

    Attributes
    ----------
    timer : Timer
        The timer, ready.
    streams : tuple of Stream
        Where it records, one stream for each device; empty for the host's clock.
    notes : tuple of Note
        What the reader of the result should know about the choice.
    n_calls : int
        How often the call was made in order to choose.
    call_streams : tuple of Stream
        Where the call itself works, if the timer records elsewhere.
    """

    timer: Timer
    streams: tuple[Stream, ...] = ()
    notes: tuple[Note, ...] = ()
    n_calls: int = 0
    call_streams: tuple[Stream, ...] = ()


@dataclass(frozen=True)
class Subject:
    """What the choice depends on.

    Attributes
    ----------
    next_call : callable
        Prepares a call and returns it.
    is_fixed : bool
        Whether one call can follow another with nothing to be prepared between them.
    unprobed : str
        Why the call can't be looked at before the samples are taken; empty if it can.
    many : bool
        Whether so many samples are wanted that gates should be shared.
    """

    next_call: Callable[[], Callable[[], object]]
    is_fixed: bool = True
    unprobed: str = ""
    many: bool = False


def choose_timer(
    method: str,
    subject: Subject,
    platform: Platform,
    devices: Sequence[Device],
    go_home: Work,
    share: Share | None = None,
) -> Choice:
    """Choose the timer for a call.

    Parameters
    ----------
    method : str
        One of `gpubench.timers.METHODS`.
    subject : Subject
        The call.
    platform : Platform
        Makes the gate.
    devices : sequence of Device
        What is timed; empty where there is no GPU.
    go_home : callable
        Makes the caller's device current.
    share : Share, optional
        Activity records; ``"cupti"`` needs them.

    Returns
    -------
    Choice
        What was asked for, or the next best with a note that says why.
    """
    if share is not None:
        choice = choose_timer("gated", subject, platform, devices, go_home)
        return _recorded(choice, subject, platform, devices, go_home, share)
    if method == "host" or not devices:
        return Choice(HostTimer(devices, go_home))
    plain = events_choice(devices, go_home)
    explain = method != "events"
    try:
        gate = platform.gate()
    except UnsupportedError as error:
        return replace(plain, notes=(notes.no_gate(str(error)),) if explain else ())
    contexts, learned = _contexts(devices)
    if subject.unprobed:
        if method == "events":
            return plain
        everywhere = tuple(c or s for c, s in zip(contexts, plain.streams, strict=True))
        learned += (notes.not_probed(subject.unprobed),)
        return Choice(EventsTimer(everywhere, go_home), everywhere, learned)
    n_calls = 0

    def next_call() -> Callable[[], object]:
        nonlocal n_calls
        n_calls += 1
        return subject.next_call()

    try:
        sightings = probe(next_call, devices, contexts, gate, go_home)
    except ExpiredError:
        return replace(plain, notes=(*learned, notes.waits_inside()), n_calls=n_calls)
    streams = tuple(sighting.stream for sighting in sightings)
    learned += _sighting_notes(devices, sightings)
    if method == "events":
        return replace(plain, notes=learned, n_calls=N_PROBES)
    if method == "graph":
        graph = _graph(subject, devices, sightings, gate, go_home)
        if isinstance(graph, Choice):
            return replace(graph, notes=learned, call_streams=streams)
        learned += (graph,)
    shared = subject.many and subject.is_fixed and not any(s.works_elsewhere for s in sightings)
    timer, n_more = _gated(subject.next_call, streams, gate, go_home, shared)
    return Choice(timer, streams, learned, N_PROBES + n_more)


def _recorded(
    choice: Choice,
    subject: Subject,
    platform: Platform,
    devices: Sequence[Device],
    go_home: Work,
    share: Share,
) -> Choice:
    """Let the chosen timer make the calls, and read their times from records.

    Records don't miss a stream; but only what a gate holds runs without waiting for the host.
    """
    timer = CuptiTimer(choice.timer, share, devices)
    if choice.timer.method != "gated":
        return replace(choice, timer=timer, notes=(notes.gaps_included(),))
    samples = timer.take(subject.next_call(), 1)
    found: tuple[Note, ...] = ()
    if timer.n_streams > 1:
        contexts, _ = _contexts(devices)
        everywhere = tuple(context for context in contexts if context is not None)
        if len(everywhere) == len(devices):
            timer = timer.with_calls_by(GatedTimer(everywhere, platform.gate(), go_home))
            choice = replace(choice, streams=everywhere)
        else:
            found = (notes.gaps_included(),)
    if subject.is_fixed:
        timer = timer.for_calls_of(float(samples.cpu[0] + samples.gpu.max()))
    return replace(choice, timer=timer, notes=found, n_calls=choice.n_calls + 1)


def events_choice(devices: Sequence[Device], go_home: Work) -> Choice:
    """Choose plain events on each device's current stream, as CuPy does."""
    streams = tuple(device.current_streams()[0] for device in devices)
    return Choice(EventsTimer(streams, go_home), streams)


def _contexts(devices: Sequence[Device]) -> tuple[list[Stream | None], tuple[Note, ...]]:
    try:
        return [device.every_stream() for device in devices], ()
    except UnsupportedError as error:
        return [None for _ in devices], (notes.no_context_events(str(error)),)


def _sighting_notes(devices: Sequence[Device], sightings: Sequence[Sighting]) -> tuple[Note, ...]:
    found = []
    for device, seen in zip(devices, sightings, strict=True):
        if seen.works_elsewhere:
            found.append(notes.side_stream(device.id, seen.context_time, seen.current_time))
        elif seen.stream is not seen.streams[0]:
            found.append(notes.other_stream(seen.stream.label))
    return tuple(found)


def _graph(
    subject: Subject,
    devices: Sequence[Device],
    sightings: Sequence[Sighting],
    gate: Gate,
    go_home: Work,
) -> Choice | Note:
    if len(devices) > 1:
        return notes.no_graph("a graph is captured on one device, and several are timed")
    if not subject.is_fixed:
        return notes.no_graph(
            "setup=, cache='cold' and comm= act before each call, not inside a graph"
        )
    if sightings[0].works_elsewhere:
        return notes.no_graph("it works on a stream of its own")
    timer = GraphTimer(devices[0], gate, go_home)
    try:
        stream = timer.capture(subject.next_call())
    except UnsupportedError as error:
        return notes.no_graph(str(error))
    if stream is None:
        return notes.no_graph("it queued nothing on the capturing stream")
    return Choice(timer, (stream,), n_calls=N_PROBES + timer.n_calls)


def _gated(
    next_call: Callable[[], Callable[[], object]],
    streams: Sequence[Stream],
    gate: Gate,
    go_home: Work,
    shared: bool,
) -> tuple[GatedTimer, int]:
    """Find how many calls fit behind a gate: it doesn't expire, and they read as they do alone."""
    single = GatedTimer(streams, gate, go_home)
    if not shared:
        return single, 0
    seen = single.take(next_call(), 1)
    if seen.cpu[0] + seen.gpu.max() > _LONG_CALL:
        return single, 1
    alone = np.median([single.take(next_call(), 1).gpu[:, 0] for _ in range(_N_ALONE)], axis=0)
    longest = alone + np.maximum(_SHARING_ERROR, _RELATIVE_SHARING_ERROR * alone)
    n_calls = 1 + _N_ALONE
    for size, n_gates in SHARING:
        timer = GatedTimer(streams, gate, go_home, size, n_gates)
        n_seen = min(n_gates, _N_GATES)
        samples = timer.take(next_call(), n_seen * size)
        n_calls += n_seen * size
        # The host fills the queue behind the first gates only, so each of them has to hold.
        gates = np.median(samples.gpu.reshape(len(alone), n_seen, size), axis=2).max(axis=1)
        if samples.valid and (gates <= longest).all():
            return timer, n_calls
    return single, n_calls
