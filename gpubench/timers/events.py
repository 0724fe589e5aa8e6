"""Timing by events around each call: on an idle stream, as ``cupyx.profiler.benchmark`` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from time import perf_counter_ns

import numpy as np

from gpubench.devices.base import Stream, Work
from gpubench.stats import FloatArray
from gpubench.timers.base import Samples


class Timeline:
    """Successive calls with an event before the first and after each, on every stream.

    Parameters
    ----------
    streams : sequence of Stream
        Where events are recorded. The first is recorded outermost: first before a call and last
        behind it.
    go_home : callable
        Makes the caller's device current; called before each call, since recording on several
        devices changes it, and so may the timed function.
    n : int
        How many calls there is room for.
    """

    def __init__(self, streams: Sequence[Stream], go_home: Work, n: int) -> None:
        self._streams = streams
        self._go_home = go_home
        self._events = [[s.device.create_event() for s in streams] for _ in range(n + 1)]

    def around(self, call: Callable[[], object], n: int) -> list[int]:
        """Make `n` calls and return the host's nanoseconds of each."""
        nanoseconds = []
        for stream, event in zip(self._streams, self._events[0], strict=True):
            stream.record(event)
        for events in self._events[1 : n + 1]:
            self._go_home()
            begin = perf_counter_ns()
            call()
            nanoseconds.append(perf_counter_ns() - begin)
            for stream, event in zip(reversed(self._streams), reversed(events), strict=True):
                stream.record(event)
        return nanoseconds

    def synchronize(self) -> None:
        """Wait for everything queued on the streams."""
        for stream in self._streams:
            stream.synchronize()

    def elapsed(self, n: int) -> FloatArray:
        """Device seconds of the first `n` calls, shape (n_streams, n)."""
        of_each_stream = zip(*self._events[: n + 1], strict=True)
        return np.array(
            [
                [end.seconds_since(start) for start, end in pairwise(events)]
                for events in of_each_stream
            ]
        )


class EventsTimer:
    """Record, call, record, synchronize: one sample at a time, on an idle stream.

    The start event meets an idle stream, so the time of a short call includes the host's launch
    of it. Kept for comparison with older numbers, and for calls that no gate can hold.
    """

    method = "events"
    samples_per_gate = 1
    samples_per_take = 1

    def __init__(self, streams: Sequence[Stream], go_home: Work) -> None:
        self._go_home = go_home
        self._timeline = Timeline(streams, go_home, 1)

    def take(self, call: Callable[[], object], n: int) -> Samples:
        """Call `call` `n` times and return the times."""
        cpu: list[int] = []
        gpu = []
        for _ in range(n):
            cpu += self._timeline.around(call, 1)
            self._timeline.synchronize()
            gpu.append(self._timeline.elapsed(1))
        self._go_home()
        return Samples(cpu=np.array(cpu) * 1e-9, gpu=np.concatenate(gpu, axis=1))
