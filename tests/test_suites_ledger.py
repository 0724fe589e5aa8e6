"""Rounds become records: what is merged, and what can't be."""

import pytest
from example_results import make_result

from gpubench.notes import Note
from gpubench.storage import SavedResults
from gpubench.suites.case import FULL, QUICK, Case, Outcome, SuiteFile
from gpubench.suites.ledger import Ledger

FILE = SuiteFile("/suite", "bench", "/suite/bench.py")


def make_case(name="time_it", rounds=2):
    return Case(
        file=FILE, name=name, index=0, params={}, label=name, rounds=rounds, timeout=60, key=name
    )


def outcome(round_number, **values):
    return Outcome(key="time_it", round=round_number, **values)


class TestRounds:
    def test_a_record_is_ok_once_it_has_all(self):
        ledger = Ledger([make_case()], FULL)
        assert ledger.n_lacking == 2
        first = ledger.add(outcome(1, result=make_result()))
        assert (first.status, first.reason) == ("interrupted", "1 of 2 rounds were done")
        assert not ledger.lacks(make_case(), 1)
        assert ledger.lacks(make_case(), 0)
        second = ledger.add(outcome(0, result=make_result(cpu_us=[1, 2, 3])))
        assert (second.status, second.reason, second.blocks) == ("ok", "", (1, 1, 1, 0, 0, 0))
        assert second.result.cpu_times == pytest.approx([5e-6, 6e-6, 7e-6, 1e-6, 2e-6, 3e-6])
        assert second.result.gpu_times.shape == (1, 6)
        assert second.result.n_warmup == 20
        assert ledger.n_lacking == 0

    def test_default_rounds_bear_an_interval_and_quick_is_one(self):
        assert Ledger([make_case(rounds=None)], FULL).n_rounds == 6
        assert Ledger([make_case(rounds=9)], QUICK).n_rounds == 1

    def test_notes_are_said_once_and_methods_may_differ(self):
        ledger = Ledger([make_case()], FULL)
        ledger.add(outcome(0, result=make_result(notes=(Note("a", "first"),))))
        later = make_result(
            notes=(Note("a", "second"), Note("b", "other")),
            method="events",
            busy_times=[[1e-6, 1e-6, 1e-6]],
        )
        record = ledger.add(outcome(1, result=later))
        assert record.result.busy_times.shape == (0, 6)
        messages = {note.code: note.message for note in record.result.notes}
        assert "(gated, events)" in messages.pop("rounds-differ")
        assert messages == {"a": "first", "b": "other"}

    def test_rounds_of_different_machines_are_not_mixed(self):
        ledger = Ledger([make_case()], FULL)
        ledger.add(outcome(0, result=make_result(environment={"host": "a"})))
        record = ledger.add(outcome(1, result=make_result(environment={"host": "b"})))
        assert (record.status, record.blocks) == ("failed", (0, 0, 0))
        assert record.reason == "its rounds ran on different devices"

    def test_a_later_failure_keeps_what_there_is(self):
        ledger = Ledger([make_case()], FULL)
        ledger.add(outcome(0, result=make_result()))
        record = ledger.add(outcome(1, status="failed", reason="crash"))
        assert (record.status, record.reason, record.blocks) == ("failed", "crash", (0, 0, 0))
        assert ledger.n_lacking == 0

    def test_a_value_needs_no_samples(self):
        record = Ledger([make_case(rounds=1)], FULL).add(outcome(0, value=3.0, unit="kg"))
        assert (record.status, record.value, record.unit) == ("ok", 3.0, "kg")


class TestAdoption:
    def test_what_is_done_and_what_is_not(self):
        cases = [make_case(name) for name in ("done", "half", "failed", "new")]
        ok = cases[0].record(result=make_result())
        half = cases[1].record(status="interrupted", result=make_result(), blocks=(0, 0, 0))
        failed = cases[2].record(status="failed", reason="crash")
        other = make_case("other").record(value=1.0)
        gone = make_case("bench_gone").record(status="failed", reason="not importable")
        ledger = Ledger(cases, FULL)
        ledger.adopt(SavedResults(records=(ok, half, failed, other, gone)))
        lacking = [[case.name for case in cases if ledger.lacks(case, n)] for n in (0, 1)]
        assert lacking == [["failed", "new"], ["half", "failed", "new"]]
        assert [record.name for record in ledger.records] == [
            "done",
            "half",
            "failed",
            "new",
            "other",
        ]
