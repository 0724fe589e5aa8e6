"""One call being measured: first call, warm-up, choice of the timer, samples."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from gpubench.call import TimedCall
from gpubench.compilation import Compilation, compile_time, watch_compilations
from gpubench.devices.base import Device, Platform, Work
from gpubench.devices.sharing import Share
from gpubench.notes import Note, gaps_included, waits_inside
from gpubench.timers.base import Samples, Timer
from gpubench.timers.choose import Choice, Subject, choose_timer
from gpubench.timers.cupti import CuptiTimer
from gpubench.timers.events import EventsTimer
from gpubench.timers.floor import clock_step, floor_time
from gpubench.timers.probe import N_PROBES

_SETTLE_SPAN = 0.02
_SETTLE_LIMIT = 0.3
_SETTLED_WITHIN = 0.01
_MAX_EXPIRED_TAKES = 2


class Budget:
    """Seconds of wall time that may be spent, from the moment at which this is made."""

    def __init__(self, duration: float) -> None:
        self._begin = time.perf_counter()
        self._duration = duration

    def is_spent(self, share: float = 1.0) -> bool:
        """Whether that share of the time has passed."""
        return time.perf_counter() - self._begin > share * self._duration

    def left(self) -> float:
        """Seconds that may still be spent; 0 when it is spent."""
        return max(0.0, self._duration - (time.perf_counter() - self._begin))


class Session:
    """Phases of measuring one call, to be gone through in the order of the methods.

    Parameters
    ----------
    call : TimedCall
        What is measured.
    platform : Platform
        Where.
    devices : sequence of Device
        What is timed; empty where there is no GPU.
    go_home : callable
        Makes the caller's device current.
    share : Share, optional
        Activity records, for the method that reads them.

    Attributes
    ----------
    first_call_time : float or None
        Seconds of the very first call until the devices were idle; None if it was a sample.
    first_compilations : tuple of Compilation or None
        What CuPy compiled in it; None if that can't be seen.
    n_warmup : int
        How many calls have been made that are not samples.
    n_expired : int
        How many samples came from a gate that its deadline opened.
    """

    def __init__(
        self,
        call: TimedCall,
        platform: Platform,
        devices: Sequence[Device],
        go_home: Work,
        share: Share | None = None,
    ) -> None:
        self._call = call
        self._platform = platform
        self._devices = devices
        self._go_home = go_home
        self._share = share
        self._choice: Choice
        self._n_expired_takes = 0
        self._is_first = True
        self._n_wanted = 0
        self._warm_up_budget = Budget(0)
        self.first_call_time: float | None = None
        self.first_compilations: tuple[Compilation, ...] | None = ()
        self.n_warmup = 0
        self.n_expired = 0

    def warm_up(self, n_warmup: int, budget: Budget) -> None:
        """Make the first call, then `n_warmup` in all less those that choosing may make.

        At most half of the budget is spent, but for the first call.
        """
        if n_warmup == 0:
            return
        self._n_wanted, self._warm_up_budget = n_warmup, budget
        call = self.next_call()
        with watch_compilations() as log:
            self.first_call_time = self._time(call)
        self.first_compilations = None if log.reason else tuple(log)
        self._repeat_until(n_warmup - N_PROBES if self._devices else n_warmup)

    def _repeat_until(self, n_warmup: int) -> None:
        while self.n_warmup < n_warmup and not self._warm_up_budget.is_spent(0.5):
            self._once()

    def settle(self, budget: Budget) -> None:
        """Go on warming up until a call takes as long as a little before.

        That is, until the mean times of a call in two successive spans of 20 ms agree within
        1 %; for 0.3 s and half of the budget at the most.
        """
        limit = Budget(_SETTLE_LIMIT)
        before = math.inf
        while not (limit.is_spent() or budget.is_spent(0.5)):
            span = Budget(_SETTLE_SPAN)
            times: list[float] = []
            while not (times and span.is_spent()):
                times.append(self._once())
            mean = sum(times) / len(times)
            if abs(mean - before) <= _SETTLED_WITHIN * mean:
                return
            before = mean

    def _once(self) -> float:
        return self._time(self.next_call())

    def _time(self, call: Callable[[], object]) -> float:
        begin = time.perf_counter()
        self._run(call)
        return time.perf_counter() - begin

    def _run(self, call: Callable[[], object]) -> object:
        returned = call()
        self._call.synchronize()
        self.n_warmup += 1
        return returned

    def call(self) -> object:
        """Make the call, untimed, wait until the devices are idle, and return what it returned."""
        return self._run(self.next_call())

    def next_call(self) -> Callable[[], object]:
        """Do what comes before a call, and return the call."""
        call = self._call.first() if self._is_first else self._call.next()
        self._is_first = False
        return call

    def choose(self, method: str, budget: Budget, *, many: bool) -> None:
        """Choose the timer, and make up for the warm-up calls that this didn't need.

        See `choose_timer` for what the arguments mean.
        """
        subject = Subject(self._call.next, self._call.is_fixed, self._why_not_probe(budget), many)
        self._choice = choose_timer(
            method, subject, self._platform, self._devices, self._go_home, self._share
        )
        self.n_warmup += self._choice.n_calls
        self._repeat_until(self._n_wanted)
        self._measure_timer()

    def _why_not_probe(self, budget: Budget) -> str:
        """Say why the call can't be looked at before the samples; nothing if it can."""
        if not self.n_warmup:
            return "n_warmup=0 leaves no call for that"
        if math.isinf(budget.left()) or not self._devices:
            return ""
        if N_PROBES * self._once() > budget.left() / 2:  # the first call may have compiled
            return "max_duration leaves no time for that"
        return ""

    def _measure_timer(self) -> None:
        choice = self._choice
        self.floor = floor_time(choice.timer, choice.streams)
        reads_events = choice.streams and choice.timer.method != "cupti"
        self.clock_step = clock_step(choice.streams[0]) if reads_events else None
        self._go_home()

    @property
    def first_call_compile_time(self) -> float | None:
        """Seconds of the first call that CuPy spent on compiling; None if they aren't known."""
        if self.first_call_time is None or self.first_compilations is None:
            return None
        return compile_time(self.first_compilations, self.first_call_time)

    @property
    def method(self) -> str:
        """How samples are taken."""
        return self._choice.timer.method

    @property
    def samples_per_gate(self) -> int:
        """How many samples share a gate."""
        return self._choice.timer.samples_per_gate

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was learned while choosing."""
        return self._choice.notes

    def take(self, n: int) -> Samples:
        """Take up to `n` samples, as many as one gate holds."""
        n = min(n, self._choice.timer.samples_per_take)
        samples = self._choice.timer.take(self.next_call(), n)
        if not samples.valid:
            self._n_expired_takes += 1
            self.n_expired += samples.cpu.size
        return samples

    @property
    def waits_often(self) -> bool:
        """Whether gates expire again and again."""
        return self._n_expired_takes > _MAX_EXPIRED_TAKES

    def must_restart(self) -> bool:
        """Whether gates expire so often that samples have to be taken anew, by plain events.

        A call may wait for the device only now and then, so that no probe saw it. Each such
        wait costs a gate's deadline; after a few the timer is changed here.
        """
        if not self.waits_often:
            return False
        self.leave_gate()
        return True

    def leave_gate(self) -> None:
        """Take samples by plain events from now on, where they are taken behind a gate."""
        self._n_expired_takes = self.n_expired = 0
        streams = self._choice.call_streams or self._choice.streams
        if not streams or self.method == "events":
            return
        timer: Timer = EventsTimer(streams, self._go_home)
        note = waits_inside()
        if isinstance(self._choice.timer, CuptiTimer):
            timer, note = self._choice.timer.with_calls_by(timer), gaps_included()
        self._choice = Choice(timer, streams, (*self._choice.notes, note))
        self._measure_timer()
