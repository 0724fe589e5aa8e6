"""Who runs the tasks of a suite, and where: the seam for schedulers of several machines."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from gpubench.environment import describe_host
from gpubench.storage import Record
from gpubench.suites.agenda import Agenda
from gpubench.suites.case import (
    Began,
    Case,
    Event,
    Finished,
    Order,
    Outcome,
    SuiteFile,
    Task,
    Unloadable,
)
from gpubench.suites.discovery import discover
from gpubench.suites.process import LOAD_TIMEOUT, Child, ChildError


class Scheduler(Protocol):
    """Imports the files of a suite and runs its tasks, here or elsewhere."""

    @property
    def environment(self) -> Mapping[str, object]:
        """What is known ahead of where that is, as plain JSON values."""
        ...

    def discover(self, files: Sequence[SuiteFile]) -> tuple[list[Case], list[Record]]:
        """Return the cases of all files, and records of those that can't be imported."""
        ...

    def run(self, agenda: Agenda) -> Iterator[Outcome]:
        """Run tasks, and yield an outcome for each of their cases, in any order.

        A task is to be taken from the agenda when it is about to run: the later ones depend on
        what became of the earlier ones, which is known once the outcome has been yielded.
        """
        ...


class Here:
    """Runs tasks on this machine, one after the other: the default `Scheduler`."""

    @property
    def environment(self) -> Mapping[str, object]:
        """This machine and its software."""
        return describe_host()

    def discover(self, files: Sequence[SuiteFile]) -> tuple[list[Case], list[Record]]:
        """Import the files here."""
        return discover(files)

    def run(self, agenda: Agenda) -> Iterator[Outcome]:
        """Run the tasks in their order."""
        with tempfile.TemporaryDirectory(prefix="gpubench-") as scratch:
            for task in agenda:
                yield from outcomes(task, scratch)


def outcomes(task: Task, scratch: str) -> Iterator[Outcome]:
    """Run a task, in a further process whenever one has died.

    Parameters
    ----------
    task : Task
        What to run.
    scratch : str
        A folder in which tasks leave what their ``setup_cache`` made for others.

    Yields
    ------
    Outcome
        One for each case.
    """
    waiting = {case.key: case for case in task.cases}
    while waiting:
        n_before = len(waiting)
        began, reason = "", "its process ended without a word of it"
        rest = replace(task, cases=tuple(waiting.values()))
        try:
            for event in _events(Order([task.file], LOAD_TIMEOUT, rest, scratch)):
                if isinstance(event, Began):
                    began = event.key
                elif isinstance(event, Outcome):
                    del waiting[event.key]
                    began = ""
                    yield event
                elif isinstance(event, Unloadable):
                    reason = event.reason
        except ChildError as error:
            reason = str(error)
        failed = [began] if began else []
        if not began and len(waiting) == n_before:  # it comes to no first case, and never will
            failed = list(waiting)
        for key in failed:
            del waiting[key]
            yield Outcome(key=key, round=task.round, status="failed", reason=reason)


def _events(order: Order) -> Iterator[Event]:
    timeouts = {case.key: case.timeout for case in order.task.cases} if order.task else {}
    timeout = order.load_timeout
    with Child(order) as child:
        while not isinstance(event := child.receive(timeout), Finished):
            yield event
            timeout = timeouts[event.key] if isinstance(event, Began) else LOAD_TIMEOUT
