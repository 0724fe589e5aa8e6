"""Timing by events behind a gate: the time that the GPU worked, without the host's launches.

A gate is closed and every stream is held by it; then events and calls are queued, as many as
share a gate; then the host opens the gate. By then everything is queued, so the device runs
through it without waiting for the host. Whatever a call does, the gate is opened and the streams
are drained before `take` returns or raises; a gate that its deadline opened is reported, since
the launches were not hidden then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from gpubench.devices.base import Gate, Stream, Work
from gpubench.timers.base import Samples
from gpubench.timers.events import Timeline


class GatedTimer:
    """Hold the streams, queue the calls between events, open the gate, read the events.

    Several gates can be closed in one `take`: the calls behind one run while those behind the next
    are being queued, so that neither the host nor the device waits for long.

    Parameters
    ----------
    streams : sequence of Stream
        Where to time, outermost first as in `Timeline`.
    gate : Gate
        Holds them all.
    go_home : callable
        Makes the caller's device current.
    samples_per_gate : int
        How many calls are queued behind one closing of the gate.
    gates_per_take : int
        How many times it is closed before the device is waited for.
    """

    method = "gated"

    def __init__(
        self,
        streams: Sequence[Stream],
        gate: Gate,
        go_home: Work,
        samples_per_gate: int = 1,
        gates_per_take: int = 1,
    ) -> None:
        self.samples_per_gate = samples_per_gate
        self.samples_per_take = samples_per_gate * gates_per_take
        self._streams = streams
        self._gate = gate
        self._go_home = go_home
        self._timelines = [
            Timeline(streams, go_home, samples_per_gate) for _ in range(gates_per_take)
        ]

    def take(self, call: Callable[[], object], n: int) -> Samples:
        """Call `call` `n` times, at most `samples_per_take`, behind gates."""
        size = self.samples_per_gate
        batches = [
            (timeline, min(size, n - begin))
            for timeline, begin in zip(self._timelines, range(0, n, size), strict=False)
        ]
        first_closing = self._gate.close()
        try:
            cpu = self._queue(call, batches)
        except BaseException:
            with suppress(Exception):  # the call's own exception matters more
                self._timelines[0].synchronize()
            raise
        self._timelines[0].synchronize()
        self._go_home()
        return Samples(
            cpu=np.array(cpu) * 1e-9,
            gpu=np.concatenate([timeline.elapsed(m) for timeline, m in batches], axis=1),
            valid=not self._gate.has_expired(first_closing),
        )

    def _queue(self, call: Callable[[], object], batches: list[tuple[Timeline, int]]) -> list[int]:
        cpu: list[int] = []
        try:
            for timeline, n in batches:
                self._gate.open()  # for the batch before
                self._gate.close()
                for stream in self._streams:
                    stream.hold(self._gate)
                cpu += timeline.around(call, n)
        finally:
            self._gate.open()
        return cpu
