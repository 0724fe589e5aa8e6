"""What is still to be done in a run, round by round."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from gpubench.suites.case import Case, Effort, SuiteFile, Task
from gpubench.suites.ledger import Ledger


class Agenda:
    """The tasks of a run, in an order that is the same in each run and another in each round.

    Iterated over, it yields a task for each file. Whatever has become of cases by then counts when
    a task is asked for.

    Parameters
    ----------
    ledger : Ledger
        Says what a case lacks; its `restart` makes a case lack all.
    effort : Effort
        How much time to take.
    """

    def __init__(self, ledger: Ledger, effort: Effort) -> None:
        self.ledger = ledger
        self._effort = effort

    def __iter__(self) -> Iterator[Task]:
        yield from self._tasks(lambda case: case.key if case.runs_alone else "", lambda _: True)

    def next_benchmark(self, wanted: Callable[[Case], bool]) -> Task | None:
        """Return what one benchmark lacks in a round, of the cases that are wanted.

        Parameters
        ----------
        wanted : callable
            Whether a case may run now.

        Returns
        -------
        Task or None
            None if nothing that is wanted is lacking.
        """
        return next(
            self._tasks(lambda case: case.key if case.runs_alone else case.name, wanted), None
        )

    def _tasks(
        self, group_of: Callable[[Case], str], wanted: Callable[[Case], bool]
    ) -> Iterator[Task]:
        for round_number in range(self.ledger.n_rounds):
            rng = random.Random(round_number)
            groups: dict[tuple[SuiteFile, str], list[Case]] = {}
            for case in self.ledger.cases:
                groups.setdefault((case.file, group_of(case)), []).append(case)
            shuffled = list(groups.items())
            rng.shuffle(shuffled)
            for (file, _), cases in shuffled:
                rng.shuffle(cases)
                lacking = [
                    case for case in cases if self.ledger.lacks(case, round_number) and wanted(case)
                ]
                if lacking:
                    yield Task(file, lacking, round_number, self._effort)
