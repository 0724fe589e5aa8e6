"""The order of a sweep's runs, and what becomes of configurations that fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from gpubench.bench import Bench
from gpubench.render.content import visible
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.subject import Goal, Subject, Watch

ORDERS = ("given", "random")

_N_ROUNDS = 10
"""How many blocks an interleaved configuration's samples are taken in."""

_ADAPTIVE_BLOCK = 10


class Runner:
    """Measures configurations, one after the other or by turns.

    Parameters
    ----------
    bench : Bench
        Where; its ``with`` block is entered.
    func : callable
        The function.
    name : str
        What it is called.
    goal : Goal
        When there are enough samples of a configuration.
    watch : Watch
        What is looked at meanwhile.
    keep : callable
        Told the index of a configuration that has ended, and what was measured in it.
    advance : callable
        Told how many samples have been added.

    Attributes
    ----------
    interrupted : dict of int to tuple of Measurement
        What was measured in the configurations that Ctrl-C came in between, by their index.
    """

    def __init__(
        self,
        bench: Bench,
        func: Callable[..., object],
        name: str,
        goal: Goal,
        watch: Watch,
        keep: Callable[[int, tuple[Measurement, ...]], object],
        advance: Callable[[int], object],
    ) -> None:
        self._bench = bench
        self._func = func
        self._name = name
        self._goal = goal
        self._watch = watch
        self._keep = keep
        self._advance = advance
        self.interrupted: dict[int, tuple[Measurement, ...]] = {}

    def run(self, configs: Mapping[int, Mapping[str, object]], order: str, seed: int) -> None:
        """Measure the configurations.

        Parameters
        ----------
        configs : mapping of int to mapping
            Configurations by their index.
        order : {"given", "random"}
            One after the other; or all prepared first and then sampled by turns, in rounds of
            random order, so that what drifts with time doesn't look like a configuration's doing.
        seed : int
            Of the random order.

        Raises
        ------
        KeyboardInterrupt
            When Ctrl-C is pressed.
        """
        if order == "given":
            for index, config in configs.items():
                self._together({index: config}, random.Random(seed))
        else:
            self._together(configs, random.Random(seed))

    def _together(self, configs: Mapping[int, Mapping[str, object]], rng: random.Random) -> None:
        subjects: dict[int, Subject] = {}
        try:
            for index, config in configs.items():
                subject = Subject(
                    self._bench, self._func, self._name, config, self._goal, self._watch
                )
                subjects[index] = subject
                if not self._guarded(index, subject, subject.prepare):
                    del subjects[index]
            n = self._block_size(len(subjects))
            while subjects:
                for index in rng.sample(sorted(subjects), len(subjects)):
                    self._sample(index, subjects, n)
        except KeyboardInterrupt:
            for index, subject in subjects.items():
                self.interrupted[index] = subject.measurements("interrupted")
            raise

    def _sample(self, index: int, subjects: dict[int, Subject], n: int) -> None:
        subject = subjects[index]
        is_fine = self._guarded(index, subject, lambda: subject.take_block(n, self._advance))
        if is_fine and subject.is_done:
            subject.close()
            self._keep(index, subject.measurements())
        if not is_fine or subject.is_done:
            del subjects[index]

    def _block_size(self, n_subjects: int) -> int:
        if self._goal.n_repeat is None:
            return _ADAPTIVE_BLOCK
        if n_subjects == 1:
            return self._goal.n_repeat
        return -(-self._goal.n_repeat // _N_ROUNDS)

    def _guarded(self, index: int, subject: Subject, action: Callable[[], object]) -> bool:
        """Do something with a configuration; if that raises, the configuration has failed."""
        try:
            action()
        except Exception as error:  # noqa: BLE001  # whatever the function raises
            text = visible(f"{type(error).__name__}: {error}".rstrip(": "))
            self._keep(index, subject.measurements("failed", text))
            return False
        return True
