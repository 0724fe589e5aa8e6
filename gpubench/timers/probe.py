"""What a call does, seen on every stream at once: does it wait, and where does it work?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpubench.devices.base import Device, Gate, Stream, Work
from gpubench.stats import FloatArray
from gpubench.timers.gated import GatedTimer

_N_CALLS = 3
"""How often a call is timed in each place; the median counts."""

N_PROBES = 2 * _N_CALLS
"""How many calls `probe` makes."""

_SIDE_STREAM_TIME = 3e-6
_SIDE_STREAM_SHARE = 0.05


class ExpiredError(Exception):
    """The gate's deadline passed while a probed call was being queued."""


def works_elsewhere(current_time: float, context_time: float) -> bool:
    """Whether all streams were busy for over 5 % and 3 us longer than the current ones."""
    return context_time > current_time * (1 + _SIDE_STREAM_SHARE) + _SIDE_STREAM_TIME


@dataclass(frozen=True)
class Sighting:
    """Where one device worked on the probed calls.

    Attributes
    ----------
    streams : sequence of Stream
        The candidates: the frameworks' current streams.
    stream_times : ndarray, shape (n_streams,)
        Seconds on each of them.
    context : Stream or None
        All streams of the device; None where they can't be timed together.
    context_time : float
        Seconds on all streams together; 0 without `context`.
    """

    streams: Sequence[Stream]
    stream_times: FloatArray
    context: Stream | None
    context_time: float

    @property
    def current_time(self) -> float:
        """The longest of `stream_times`."""
        return float(self.stream_times.max())

    @property
    def works_elsewhere(self) -> bool:
        """Whether the device was busy for well longer than any candidate."""
        return works_elsewhere(self.current_time, self.context_time)

    @property
    def stream(self) -> Stream:
        """Where to time: the first candidate, unless another or the context was busier."""
        if self.works_elsewhere and self.context is not None:
            return self.context
        best = int(np.argmax(self.stream_times))
        if self.stream_times[best] - self.stream_times[0] > _SIDE_STREAM_TIME:
            return self.streams[best]
        return self.streams[0]


def probe(
    call: Callable[[], Callable[[], object]],
    devices: Sequence[Device],
    contexts: Sequence[Stream | None],
    gate: Gate,
    go_home: Work,
) -> list[Sighting]:
    """Time a few calls behind a gate, on all streams together and on each candidate.

    Events of a context lengthen each kernel between them (by 0.9 us on an H200). So that this
    isn't taken for work on a side stream, the candidates are timed inside the events of the
    context; but the context is timed without theirs, which disturb it by up to 5 us.

    Parameters
    ----------
    call : callable
        Prepares a call and returns it.
    devices : sequence of Device
        Where to look.
    contexts : sequence of (Stream or None)
        Each device's `every_stream`, where it has one.
    gate : Gate
        Holds all streams.
    go_home : callable
        Makes the caller's device current.

    Returns
    -------
    list of Sighting
        One for each device.

    Raises
    ------
    ExpiredError
        If a call waits for a device, or fills its queue.
    """
    outer = [context for context in contexts if context is not None]
    candidates = [tuple(device.current_streams()) for device in devices]
    inner = [stream for current in candidates for stream in current]
    stream_times = iter(_times([*outer, *inner], call, gate, go_home)[len(outer) :])
    context_times = iter(_times(outer, call, gate, go_home) if outer else ())
    return [
        Sighting(
            streams=current,
            stream_times=np.array([next(stream_times) for _ in current]),
            context=context,
            context_time=float(next(context_times)) if context is not None else 0.0,
        )
        for context, current in zip(contexts, candidates, strict=True)
    ]


def _times(
    streams: Sequence[Stream],
    call: Callable[[], Callable[[], object]],
    gate: Gate,
    go_home: Work,
) -> FloatArray:
    timer = GatedTimer(streams, gate, go_home)
    rows = []
    for _ in range(_N_CALLS):
        samples = timer.take(call(), 1)
        if not samples.valid:
            raise ExpiredError
        rows.append(samples.gpu[:, 0])
    medians: FloatArray = np.median(rows, axis=0)
    return medians
