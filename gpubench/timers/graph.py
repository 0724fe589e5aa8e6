"""Timing by CUDA graphs: capture the call, replay it, divide."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpubench.devices.base import Device, Gate, Graph, Stream, Work
from gpubench.timers.base import Samples
from gpubench.timers.gated import GatedTimer

CALLS_PER_GRAPH = 20
"""How many calls one graph holds; the events around a replay are shared by that many."""


class GraphTimer:
    """Capture the call `CALLS_PER_GRAPH` times in one graph; a sample is one replay's share.

    The CPU time of a sample is the host's time to launch the graph, divided likewise.

    Parameters
    ----------
    device : Device
        Where the call works.
    gate : Gate
        Holds the stream while a replay is queued.
    go_home : callable
        Makes the caller's device current.

    Attributes
    ----------
    n_calls : int
        How many calls capturing has made.
    """

    method = "graph"
    samples_per_gate = 1
    samples_per_take = 1

    def __init__(self, device: Device, gate: Gate, go_home: Work) -> None:
        self._device = device
        self._gate = gate
        self._go_home = go_home
        self.n_calls = 0
        self._captured: list[tuple[Callable[[], object], Graph, GatedTimer]] = []

    def capture(self, call: Callable[[], object]) -> Stream | None:
        """Capture the call, to be replayed by the next `take` of it.

        Returns
        -------
        Stream or None
            Where it will be replayed; None if nothing was captured, because the call queues its
            work elsewhere.

        Raises
        ------
        UnsupportedError
            If the call refuses to be captured.
        """

        def work() -> list[object]:
            returned = [call() for _ in range(CALLS_PER_GRAPH)]
            self.n_calls += CALLS_PER_GRAPH
            return returned  # so that what the graph writes to stays allocated

        graph = self._device.capture(work)
        timer = GatedTimer((graph.stream,), self._gate, self._go_home)
        self._captured.append((call, graph, timer))
        return None if graph.is_empty else graph.stream

    def take(self, call: Callable[[], object], n: int) -> Samples:
        """Replay the call `n` times, captured now if it wasn't before."""
        if not any(call is known for known, _, _ in self._captured):
            self.capture(call)
        graph, timer = next((g, t) for known, g, t in self._captured if known is call)
        replays = [timer.take(graph.launch, 1) for _ in range(n)]
        return Samples(
            cpu=np.concatenate([replay.cpu for replay in replays]) / CALLS_PER_GRAPH,
            gpu=np.concatenate([replay.gpu for replay in replays], axis=1) / CALLS_PER_GRAPH,
            valid=all(replay.valid for replay in replays),
        )
