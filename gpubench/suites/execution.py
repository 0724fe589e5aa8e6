"""One benchmark being run: what happens around its calls, and how many are wanted."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpubench.arguments import finite_number, synchronous, whole_number
from gpubench.result import BenchmarkResult
from gpubench.suites.benchmark import Benchmark
from gpubench.suites.case import Effort


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was measured.

    Attributes
    ----------
    result, value, unit
        As in `Record`.
    """

    result: BenchmarkResult | None = None
    value: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Wanted:
    """How many samples a round is to have.

    Attributes
    ----------
    at_least, at_most : int or None
        So many; the upper one is None if more can't harm.
    duration : float
        Seconds after which `at_least` will do.
    """

    at_least: int
    at_most: int | None
    duration: float


class SkippedError(Exception):
    """A benchmark doesn't want to run; the message says why."""


class Execution:
    """A benchmark with its arguments, as it is measured.

    Parameters
    ----------
    label : str
        What a result is called.
    benchmark : Benchmark
        What is run.
    args : tuple
        The arguments of all its functions.
    effort : Effort
        How much time to take.

    Attributes
    ----------
    call : callable
        Calls the benchmark once.
    get : callable
        Returns one of its attributes, see `Benchmark.get`.
    """

    def __init__(
        self, label: str, benchmark: Benchmark, args: tuple[object, ...], effort: Effort
    ) -> None:
        self.label = label
        self.effort = effort
        self.get = benchmark.get
        self.call = functools.partial(synchronous(label, benchmark.func), *args)
        self._args = args
        self._setups = benchmark.setups
        self._teardowns = benchmark.teardowns
        self._timeout = benchmark.timeout
        self._is_fresh = False

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Set the benchmark up for the block, and tear it down after it.

        Raises
        ------
        SkippedError
            If its setup raises `NotImplementedError`.
        """
        try:
            self._set_up()
        except NotImplementedError as error:
            raise SkippedError(str(error) or "its setup raised NotImplementedError") from error
        try:
            yield
        finally:
            self._tear_down()

    @property
    def has_setup(self) -> bool:
        """Whether anything happens before calls."""
        return bool(self._setups)

    def renew(self) -> None:
        """Set the benchmark up anew, unless no call was made since it was."""
        if not self._is_fresh:
            self._tear_down()
            self._set_up()
        self._is_fresh = False

    def _set_up(self) -> None:
        for setup in self._setups:
            setup(*self._args)
        self._is_fresh = True

    def _tear_down(self) -> None:
        for teardown in self._teardowns:
            teardown(*self._args)

    def wanted(self, at_least: int, at_most: int | None) -> Wanted:
        """Return how many samples to take, by the benchmark's ``repeat``.

        Parameters
        ----------
        at_least, at_most : int or None
            How many if it has none.
        """
        repeat = self.get("repeat", 0)
        duration = self.effort.duration
        if isinstance(repeat, (tuple, list)):
            low, high, duration = repeat
            at_least, at_most = int(low), int(high)
        elif repeat:
            at_least = at_most = whole_number("repeat", repeat, at_least=1)
            duration = self._timeout
        if self.effort.is_quick:
            at_most = min(at_most or self.effort.max_samples, self.effort.max_samples)
            at_least, duration = min(at_least, at_most), min(duration, self.effort.duration)
        return Wanted(at_least, at_most, finite_number("repeat", duration, at_least=0))
