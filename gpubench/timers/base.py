"""The protocols of a timer, which takes samples of one call, and of what made it do so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from gpubench.compilation import Compilation
from gpubench.notes import Note
from gpubench.stats import FloatArray


@dataclass(frozen=True)
class Samples:
    """Times of `n` successive calls, in the order in which they ran.

    Attributes
    ----------
    cpu : ndarray, shape (n,)
        Seconds that the host spent in each call.
    gpu : ndarray, shape (n_devices, n)
        Seconds that each device spent on each call.
    valid : bool
        False if the timer's precondition failed while these were taken, so that they say
        something else than the timer promises (an expired gate: launch time is included).
    busy : ndarray, shape (n_devices, n) or (0, 0)
        Seconds that each device was busy with each call; none if the timer can't tell.
    kernels : mapping of str to ndarray, shape (n_runs,)
        Seconds of each run of each kernel, by its name; empty if the timer can't tell.
    n_unattributed : int
        How many things the devices did meanwhile for threads that made none of the calls.
    n_dropped : int
        How many records of what the devices did were lost.
    """

    cpu: FloatArray
    gpu: FloatArray
    valid: bool = True
    busy: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    kernels: Mapping[str, FloatArray] = field(default_factory=dict)
    n_unattributed: int = 0
    n_dropped: int = 0


class Timer(Protocol):
    """One way to time a call.

    Attributes
    ----------
    method : str
        The name by which `benchmark` knows it.
    samples_per_gate : int
        How many samples share one closing of a gate; 1 if each has its own, or there is none.
    samples_per_take : int
        How many samples `take` can be asked for at a time.
    """

    @property
    def method(self) -> str: ...

    @property
    def samples_per_gate(self) -> int: ...

    @property
    def samples_per_take(self) -> int: ...

    def take(self, call: Callable[[], object], n: int) -> Samples:
        """Call `call` `n` times and return the times; the devices are idle afterwards.

        Whatever `call` raises is passed on, with no stream left blocked.
        """
        ...


class Measured(Protocol):
    """What a session says of its measuring; all as in `BenchmarkResult`."""

    @property
    def method(self) -> str: ...

    @property
    def samples_per_gate(self) -> int: ...

    @property
    def floor(self) -> float | None: ...

    @property
    def clock_step(self) -> float | None: ...

    @property
    def n_warmup(self) -> int: ...

    @property
    def n_expired(self) -> int: ...

    @property
    def notes(self) -> tuple[Note, ...]: ...

    @property
    def first_call_time(self) -> float | None: ...

    @property
    def first_call_compile_time(self) -> float | None: ...

    @property
    def first_compilations(self) -> tuple[Compilation, ...] | None: ...
