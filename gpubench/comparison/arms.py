"""The arms of a comparison: what is measured by turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from gpubench.activity.kernels import KernelNames
from gpubench.bench import Bench, Conditions
from gpubench.comparison.agreement import on_host
from gpubench.errors import GpubenchError
from gpubench.result import BenchmarkResult
from gpubench.sampling import Collected, collection_off
from gpubench.session import Budget, Session

_N_TRIALS = 10


class ArmError(GpubenchError):
    """An arm can't go on, and the others may; the message says why."""


Switch = Callable[[], AbstractContextManager[object]]
"""Makes the context in which an arm's calls are made."""


@dataclass(frozen=True)
class Unsent:
    """Stands for what a call returned in another process and could not be brought here.

    Attributes
    ----------
    reason : str
        Why not.
    """

    reason: str


class Arm(Protocol):
    """One of the things that are compared."""

    @property
    def name(self) -> str:
        """What the arm is called."""
        ...

    def prepare(self, n_warmup: int, budget: Budget) -> float:
        """Warm up and choose the timer; return the wall seconds that a sample takes."""
        ...

    def returned(self) -> object:
        """Make the call and return, on the host, what it returned."""
        ...

    def take_block(self, n: int) -> None:
        """Take `n` samples after one call that isn't timed."""
        ...

    def kernels(self) -> KernelNames:
        """Return the kernels that a call runs."""
        ...

    def finish(self) -> BenchmarkResult:
        """Return what was measured."""
        ...


class LocalArm:
    """An arm that runs in this process.

    Parameters
    ----------
    name : str
        What it is called.
    bench : Bench
        Where it is measured; its ``with`` block is entered.
    session : Session
        Measures the call.
    switch : callable, optional
        Makes the context in which the calls are made.
    """

    def __init__(
        self, name: str, bench: Bench, session: Session, switch: Switch = nullcontext
    ) -> None:
        self.name = name
        self._bench = bench
        self._session = session
        self._switch = switch
        self._collected = Collected()
        self._seen: list[Conditions] = []

    def prepare(self, n_warmup: int, budget: Budget) -> float:
        """Warm up and choose the timer; return the wall seconds that a sample takes."""
        with self._switch():
            self._session.warm_up(n_warmup, budget)
            self._session.settle(budget)
            self._session.choose(self._bench.method, budget, many=False)
            return self._try_out(budget)

    def _try_out(self, budget: Budget) -> float:
        """Take samples, not kept, to see how long one takes and that the timer suits the call."""
        begin, n = time.perf_counter(), 0
        while n < _N_TRIALS and not (n and budget.is_spent(0.5)):
            n += self._session.take(1).cpu.size
            if self._session.must_restart():
                begin, n = time.perf_counter(), 0
        return (time.perf_counter() - begin) / n

    def returned(self) -> object:
        """Make the call and return, on the host, what it returned."""
        with self._switch():
            return on_host(self._session.call())

    def take_block(self, n: int) -> None:
        """Take `n` samples after one call that isn't timed."""
        with self._switch(), self._bench.watched() as seen, collection_off():
            self._session.call()
            taken = 0
            while taken < n:
                samples = self._session.take(n - taken)
                self._collected.add(samples)
                taken += samples.cpu.size
                if self._session.waits_often:
                    raise ArmError("it waits for the GPU now and then; use method='events'")
        self._seen += seen

    def kernels(self) -> KernelNames:
        """Return the kernels that a call runs."""
        with self._switch():
            return self._bench.kernels(self._session.next_call())

    def finish(self) -> BenchmarkResult:
        """Return what was measured."""
        return self._bench.result(self.name, self._session, self._collected, self._seen)
