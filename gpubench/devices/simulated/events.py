"""Events of a simulated GPU, and the requests that its streams execute."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gpubench.devices.base import Event, Work
from gpubench.errors import UnsupportedError

EVENT_TIME = 1.25e-6
"""Seconds between two events recorded one behind the other, as on an H200."""

GRAPH_GAP = 0.5e-6
"""Seconds between two kernels of a graph."""


@dataclass(frozen=True)
class Operation:
    """One thing that a simulated stream did; times in seconds of `time.perf_counter`.

    Attributes
    ----------
    name : str
        The kernel's name, or ``"event"``, ``"gate"``, ``"wait"``, ``"flush"``.
    device, stream : int
        Where it ran; stream 0 is the device's default stream.
    queued_time, start_time, end_time : float
        When the host queued it, when the device began with it, and when it was done.
    kernels : tuple of str
        The names of the kernels that ran; more than one in a graph, none in an event.
    durations : tuple of float
        What each of them took, in seconds.
    correlation_id : int
        Of the call that queued it, if activities were recorded then; else 0.
    """

    name: str
    device: int
    stream: int
    queued_time: float
    start_time: float
    end_time: float
    kernels: tuple[str, ...] = ()
    durations: tuple[float, ...] = ()
    correlation_id: int = 0


@dataclass(frozen=True)
class Kernel:
    """A kernel; `seconds`, called when it begins, returns how long it takes at the full clock."""

    name: str
    seconds: Callable[[], float]


@dataclass
class Request:
    """A queued operation: `run` takes the time at which it can begin and returns its end.

    Only kernels, and graphs of them, have `kernels` and, once they have run, a `duration` and
    the `durations` of each.
    """

    name: str
    run: Callable[[float], float]
    finish: Work = lambda: None
    kernels: Sequence[Kernel] = ()
    duration: float | None = None
    durations: tuple[float, ...] = ()
    correlation_id: int = 0
    queued_time: float = field(default_factory=time.perf_counter)


class Recording:
    """One recording of an event on one stream: what waits for it keeps to this one."""

    def __init__(self, *, captured: bool) -> None:
        self._captured = captured
        self._pending = threading.Lock()
        self._pending.acquire()
        self._moment = math.nan

    def run(self, start: float) -> float:
        """Be reached by the stream at `start`."""
        self._moment = start
        return start + EVENT_TIME

    def happen(self) -> None:
        """Let go whoever waits."""
        self._pending.release()

    def wait(self) -> float:
        """Block until the stream has been here, and return when that was."""
        if self._captured:
            raise UnsupportedError("an event recorded while capturing has no time of its own")
        with self._pending:
            return self._moment


class SimulatedEvent:
    """An event: the device time at which its stream reached it, cut to the clock's step.

    Attributes
    ----------
    recordings : sequence of Recording
        The last one, on each stream that it was made on; the event is the latest of them.
    """

    def __init__(self, clock_step: float) -> None:
        self._clock_step = clock_step
        self.recordings: Sequence[Recording] = ()

    def seconds_since(self, earlier: Event) -> float:
        """Device time since `earlier`, in seconds."""
        if not isinstance(earlier, SimulatedEvent):
            raise TypeError(f"a simulated event can't be compared with {earlier!r}")
        return (self._step() - earlier._step()) * self._clock_step

    def _step(self) -> int:
        if not self.recordings:
            raise UnsupportedError("an event has no time before it is recorded")
        moment = max(recording.wait() for recording in self.recordings)
        return math.floor(moment / self._clock_step)
