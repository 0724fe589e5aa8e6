"""What a suite holds: its files are imported in a process that may die of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from gpubench.storage import Record, SavedResults
from gpubench.suites.case import Case, Found, Order, SuiteFile, Unloadable
from gpubench.suites.files import is_program, names_benchmarks
from gpubench.suites.process import LOAD_TIMEOUT, Child, ChildError


def discover(files: Sequence[SuiteFile]) -> tuple[list[Case], list[Record]]:
    """Return the cases of all files.

    Parameters
    ----------
    files : sequence of SuiteFile
        Those to look at.

    Returns
    -------
    cases : list of Case
        In the files' order.
    failed : list of Record
        A record for each file that holds benchmarks and can't be imported.
    """
    files = [file for file in files if not is_program(file)]
    answers: list[Found | Unloadable] = []
    while rest := files[len(answers) :]:  # in a further process whenever one has died
        try:
            with Child(Order(rest, LOAD_TIMEOUT)) as child:
                for _ in rest:
                    answers.append(cast("Found | Unloadable", child.receive(LOAD_TIMEOUT)))
        except ChildError as error:
            answers.append(Unloadable(str(error)))
    cases: list[Case] = []
    failed = []
    for file, answer in zip(files, answers, strict=True):
        if isinstance(answer, Found):
            cases += answer.cases
        elif names_benchmarks(file):
            name = file.module or "__init__"
            failed.append(Record(name=name, status="failed", reason=answer.reason))
    keys = SavedResults(records=tuple(case.record() for case in cases)).keys
    return [replace(case, key=key) for case, key in zip(cases, keys, strict=True)], failed
