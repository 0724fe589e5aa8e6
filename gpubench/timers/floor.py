"""What a timer reports for a call that does nothing, and the step of the clock it reads."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from gpubench.devices.base import Device, Stream
from gpubench.stats import FloatArray
from gpubench.timers.base import Timer
from gpubench.timers.events import Timeline

_N_FLOOR_SAMPLES = 40
_N_CLOCK_SAMPLES = 200

_floors: WeakKeyDictionary[Device, dict[object, float]] = WeakKeyDictionary()
_clock_steps: WeakKeyDictionary[Device, float] = WeakKeyDictionary()


def _nothing() -> None:
    pass


def floor_time(timer: Timer, streams: tuple[Stream, ...]) -> float:
    """Median time that `timer` reports for an empty call, on its slowest device.

    Measured once for each kind of timer, each stream and process.

    Parameters
    ----------
    timer : Timer
        The timer, ready to be used.
    streams : tuple of Stream
        Where it records, one stream for each device; empty for the host's clock.

    Returns
    -------
    float
        Seconds of GPU time, or of CPU time if the timer gives no GPU times.
    """
    if not streams:
        return _measure_floor(timer)
    known = _floors.setdefault(streams[0].device, {})
    labels = tuple((stream.device.id, stream.label) for stream in streams)
    key = (timer.method, timer.samples_per_take, labels)
    if key not in known:
        known[key] = _measure_floor(timer)
    return known[key]


def _measure_floor(timer: Timer) -> float:
    rows: list[FloatArray] = []
    for _ in range(-(-_N_FLOOR_SAMPLES // timer.samples_per_take)):
        samples = timer.take(_nothing, timer.samples_per_take)
        rows.append(samples.gpu if len(samples.gpu) else samples.cpu[np.newaxis])
    return float(np.median(np.concatenate(rows, axis=1), axis=1).max())


def clock_step(stream: Stream) -> float | None:
    """Smallest difference between the times that events of a stream's device show.

    Event times are multiples of the clock's step, so the intervals between events recorded one
    behind the other differ by whole steps; the smallest such difference is the step.

    Returns
    -------
    float or None
        Seconds; None if the intervals didn't differ, so that no step shows.
    """
    device = stream.device
    if device not in _clock_steps:
        timeline = Timeline((stream,), _nothing, _N_CLOCK_SAMPLES)
        timeline.around(_nothing, _N_CLOCK_SAMPLES)
        timeline.synchronize()
        intervals = timeline.elapsed(_N_CLOCK_SAMPLES).ravel()
        # single precision at these lengths resolves a few picoseconds
        steps = np.diff(np.unique(np.round(intervals, 10)))
        steps = steps[steps > 5e-10]
        if steps.size:
            _clock_steps[device] = float(steps.min())
    return _clock_steps.get(device)
