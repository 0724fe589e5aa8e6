"""What became of each case so far, as records that grow with each round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from gpubench.notes import rounds_differ
from gpubench.result import BenchmarkResult
from gpubench.storage import Record, SavedResults
from gpubench.suites.case import Case, Effort, Outcome

_NOT_RUN = "not run"


class Ledger:
    """The records of a run.

    Parameters
    ----------
    cases : sequence of Case
        What is to run.
    effort : Effort
        Says in how many rounds, unless a case does.
    others : iterable of Record
        Records that stay as they are, after those of the cases.
    """

    def __init__(
        self, cases: Sequence[Case], effort: Effort, others: Iterable[Record] = ()
    ) -> None:
        self._cases = {case.key: case for case in cases}
        self._effort = effort
        self._records = {case.key: _blank(case) for case in cases}
        self._others = list(others)

    @property
    def records(self) -> list[Record]:
        """All records, those of the cases in their order."""
        return [*self._records.values(), *self._others]

    def adopt(self, saved: SavedResults) -> None:
        """Go on from an earlier run: what is ok is done, what was interrupted lacks some rounds.

        What was measured of other benchmarks is kept.
        """
        for key, record in zip(saved.keys, saved.records, strict=True):
            if key not in self._cases:
                if record.result is not None or record.value is not None:
                    self._others.append(record)
            elif record.status == "ok" or (record.status == "interrupted" and record.blocks):
                self._records[key] = record

    @property
    def cases(self) -> list[Case]:
        """What is to run, or has."""
        return list(self._cases.values())

    @property
    def n_rounds(self) -> int:
        """How many rounds there are."""
        return max(map(self._rounds_of, self.cases), default=0)

    @property
    def n_lacking(self) -> int:
        """How often a case is still to run."""
        return sum(self.lacks(case, n) for case in self.cases for n in range(self.n_rounds))

    def lacks(self, case: Case, round_number: int) -> bool:
        """Whether a case is still to run in that round."""
        record = self._records[case.key]
        return (
            record.status == "interrupted"
            and round_number < self._rounds_of(case)
            and round_number not in record.blocks
        )

    def _rounds_of(self, case: Case) -> int:
        if self._effort.is_quick or case.rounds is None:
            return self._effort.rounds
        return case.rounds

    def record(self, case: Case) -> Record:
        """Return what became of a case so far."""
        return self._records[case.key]

    def restart(self, case: Case) -> None:
        """Forget what was measured of a case, which is to be measured elsewhere."""
        self._records[case.key] = _blank(case)

    def add(self, outcome: Outcome) -> Record:
        """Enter what became of a case in a round, and return its record."""
        before = self._records[outcome.key]
        record = replace(before, status=outcome.status, reason=outcome.reason)
        if outcome.status == "ok":
            record = replace(record, value=outcome.value, unit=outcome.unit)
        if outcome.status == "ok" and outcome.result is not None:
            n_rounds = self._rounds_of(self._cases[outcome.key])
            record = _extended(record, outcome.result, outcome.round, n_rounds)
        self._records[outcome.key] = record
        return record


def _blank(case: Case) -> Record:
    return case.record(status="interrupted", reason=_NOT_RUN)


def _extended(record: Record, result: BenchmarkResult, round_number: int, n_rounds: int) -> Record:
    """Add the samples of a round to a record."""
    blocks = (*record.blocks, *(round_number,) * result.cpu_times.size)
    if record.result is not None:
        if _place(record.result) != _place(result):
            return replace(record, status="failed", reason="its rounds ran on different devices")
        result = _joined(record.result, result)
    n_done = len(set(blocks))
    if n_done == n_rounds:
        return replace(record, result=result, blocks=blocks)
    reason = f"{n_done} of {n_rounds} rounds were done"
    return replace(record, status="interrupted", reason=reason, result=result, blocks=blocks)


def _place(result: BenchmarkResult) -> tuple[object, ...]:
    """Return what tells where a result was measured."""
    devices = result.environment.get("devices")
    return result.devices, result.environment.get("host"), devices


def _joined(first: BenchmarkResult, second: BenchmarkResult) -> BenchmarkResult:
    """Return one result with the samples of two."""
    busy_times = np.empty((0, first.cpu.n + second.cpu.n))
    if len(first.busy_times) == len(second.busy_times):  # not all methods can tell
        busy_times = np.concatenate([first.busy_times, second.busy_times], axis=1)
    notes = {note.code: note for note in (*second.notes, *first.notes)}
    if first.method != second.method:
        note = rounds_differ([first.method, second.method])
        notes[note.code] = note
    return replace(
        first,
        cpu_times=np.concatenate([first.cpu_times, second.cpu_times]),
        gpu_times=np.concatenate([first.gpu_times, second.gpu_times], axis=1),
        busy_times=busy_times,
        n_warmup=first.n_warmup + second.n_warmup,
        compilations=(*first.compilations, *second.compilations),
        stopped_by=second.stopped_by,
        notes=tuple(notes.values()),
    )
