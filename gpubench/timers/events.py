"""Timing by events around each call: on an idle stream, as ``cupyx.profiler.benchmark`` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np

from gpubench.devices.base import Event, Stream, Work
from gpubench.stats import FloatArray
from gpubench.timers.base import Samples


class EventPairs:
    """Events before and after each call, on one stream of each device.

    Parameters
    ----------
    streams : sequence of Stream
        One for each device.
    go_home : callable
        Makes the caller's device current; called before each call, since recording on several
        devices changes it, and so may the timed function.
    n : int
        How many calls can be bracketed before the times are read.
    """

    def __init__(self, streams: Sequence[Stream], go_home: Work, n: int) -> None:
        self._streams = streams
        self._go_home = go_home
        self._pairs = [[_pair(stream) for stream in streams] for _ in range(n)]

    def around(self, call: Callable[[], object], first: int, n: int) -> list[int]:
        """Make the calls `first` to `first` + `n` - 1 and return the host's nanoseconds."""
        nanoseconds = []
        for pairs in self._pairs[first : first + n]:
            for stream, (start, _) in zip(self._streams, pairs, strict=True):
                stream.record(start)
            self._go_home()
            begin = perf_counter_ns()
            call()
            nanoseconds.append(perf_counter_ns() - begin)
            for stream, (_, end) in zip(self._streams, pairs, strict=True):
                stream.record(end)
        return nanoseconds

    def synchronize(self) -> None:
        """Wait for everything queued on the streams."""
        for stream in self._streams:
            stream.synchronize()

    def elapsed(self, n: int) -> FloatArray:
        """Device seconds of the first `n` calls, shape (n_devices, n)."""
        rows = [[end.seconds_since(start) for start, end in pairs] for pairs in self._pairs[:n]]
        return np.array(rows).reshape(n, len(self._streams)).T


def _pair(stream: Stream) -> tuple[Event, Event]:
    return stream.device.create_event(), stream.device.create_event()


class EventsTimer:
    """Record, call, record, synchronize: one sample at a time, on an idle stream.

    The start event meets an idle stream, so the time of a short call includes the host's launch
    of it. Kept for comparison with older numbers, and for calls that no gate can hold.
    """

    method = "events"
    samples_per_gate = 1
    samples_per_take = 1

    def __init__(self, streams: Sequence[Stream], go_home: Work) -> None:
        self._pairs = EventPairs(streams, go_home, 1)

    def take(self, call: Callable[[], object], n: int) -> Samples:
        """Call `call` `n` times and return the times."""
        cpu: list[int] = []
        gpu = []
        for _ in range(n):
            cpu += self._pairs.around(call, 0, 1)
            self._pairs.synchronize()
            gpu.append(self._pairs.elapsed(1))
        return Samples(cpu=np.array(cpu) * 1e-9, gpu=np.concatenate(gpu, axis=1))
