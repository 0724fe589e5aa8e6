"""Timing by events behind a gate: the time that the GPU worked, without the host's launches.

A gate is closed and every stream is held by it; then events and calls are queued, as many as
are taken at a time; then the host opens the gate. By then everything is queued, so the device
runs through it without waiting for the host. Whatever a call does, the gate is opened and the
streams are drained before `take` returns or raises; a gate that its deadline opened is reported,
since the launches were not hidden then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from gpubench.devices.base import Gate, Stream, Work
from gpubench.timers.base import Samples
from gpubench.timers.events import EventPairs

_GATES_PER_TAKE = 5


class GatedTimer:
    """Hold the streams, queue the calls between events, open the gate, read the events.

    Where several gates are closed in one `take`, each batch of calls runs while the next is
    being queued, so that neither the host nor the device waits for long.

    Parameters
    ----------
    streams : sequence of Stream
        One for each device.
    gate : Gate
        Holds them all.
    go_home : callable
        Makes the caller's device current.
    samples_per_gate : int
        How many calls are queued behind one closing of the gate.
    """

    method = "gated"

    def __init__(
        self, streams: Sequence[Stream], gate: Gate, go_home: Work, samples_per_gate: int = 1
    ) -> None:
        self.samples_per_gate = samples_per_gate
        self.samples_per_take = 1 if samples_per_gate == 1 else samples_per_gate * _GATES_PER_TAKE
        self._streams = streams
        self._gate = gate
        self._go_home = go_home
        self._pairs = EventPairs(streams, go_home, self.samples_per_take)

    def take(self, call: Callable[[], object], n: int) -> Samples:
        """Call `call` `n` times, at most `samples_per_take`, behind gates."""
        first_closing = self._gate.close()
        try:
            cpu = self._queue(call, n)
        except BaseException:
            with suppress(Exception):  # the call's own exception matters more
                self._pairs.synchronize()
            raise
        self._pairs.synchronize()
        self._go_home()
        return Samples(
            cpu=np.array(cpu) * 1e-9,
            gpu=self._pairs.elapsed(n),
            valid=not self._gate.has_expired(first_closing),
        )

    def _queue(self, call: Callable[[], object], n: int) -> list[int]:
        cpu: list[int] = []
        try:
            while len(cpu) < n:
                self._gate.open()  # for the batch before
                self._gate.close()
                for stream in self._streams:
                    stream.hold(self._gate)
                batch = min(self.samples_per_gate, n - len(cpu))
                cpu += self._pairs.around(call, len(cpu), batch)
        finally:
            self._gate.open()
        return cpu
