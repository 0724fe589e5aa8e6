import dataclasses
import json

import pytest
from example_results import make_result

from gpubench.comparison.outcome import Comparison
from gpubench.comparison.runs import NotCompared, compare_runs
from gpubench.errors import ArgumentError

SLOW, FAST = range(20, 40), range(10, 20)


def record(name, times=SLOW, **changes):
    return {**make_result(times, [times], name=name).to_dict(), **changes}


def without_times(name, **changes):
    return {"name": name, **changes}


def test_a_subset_is_joined_by_name_and_the_rest_is_listed_apart():
    run = compare_runs([record("a"), record("b"), record("c")], [record("b", FAST), record("d")])
    assert run.names == ("b",)
    (comparison,) = run.comparisons
    assert isinstance(comparison, Comparison)
    assert list(comparison.verdict.values()) == ["faster"]
    assert (run.only_left, run.only_right) == (("a", "c"), ("d",))
    assert run.not_compared == run.notes == ()


def test_the_left_run_gives_the_order_and_is_the_baseline():
    run = compare_runs([record("b"), record("a", FAST)], [record("a"), record("b", FAST)])
    assert run.names == ("b", "a")
    verdicts = [list(comparison.verdict.values()) for comparison in run.comparisons]
    assert verdicts == [["faster"], ["slower"]]


def test_results_and_their_dicts_and_files_are_the_same(tmp_path):
    left, right = make_result(SLOW, [SLOW]), make_result(FAST, [FAST])
    path = tmp_path / "right.json"
    path.write_text(json.dumps([right.to_dict()]), encoding="utf-8")
    one = tmp_path / "left.json"
    one.write_text(left.to_json(), encoding="utf-8")
    expected = str(compare_runs([left], [right]))
    assert str(compare_runs(left, right.to_dict())) == expected
    assert str(compare_runs([left.to_dict()], path)) == expected
    assert str(compare_runs(str(one), path)) == expected


def test_margin_and_seed_reach_each_comparison():
    run = compare_runs([record("a")], [record("a")], margin=0.5, seed=7)
    assert (run.comparisons[0].margin, run.comparisons[0].seed) == (0.5, 7)


def test_records_without_times_are_listed_with_their_status():
    left = [
        record("fine"),
        without_times("skipped", status="skipped"),
        record("fast"),
        record("late", status="failed"),
        without_times("void"),
        record("empty", cpu_times_s=[], gpu_times_s=[[]]),
    ]
    right = [
        record("fine", status="ok"),
        record("skipped"),
        without_times("fast", status="failed"),
        record("late", status=None),
        record("void"),
        record("empty"),
    ]
    run = compare_runs(left, right)
    assert run.names == ("fine",)
    assert run.not_compared == (
        NotCompared("skipped", "skipped", "ok"),
        NotCompared("fast", "ok", "failed"),
        NotCompared("late", "failed", "ok"),
        NotCompared("void", "no times", "ok"),
        NotCompared("empty", "no times", "ok"),
    )


def test_an_older_record_without_newer_fields_is_compared():
    older = {"name": "a", "cpu_times_s": [1e-3] * 10}
    assert compare_runs([older], [record("a")]).names == ("a",)


def test_a_repeated_name_is_paired_in_order_and_said():
    twice = [record("a", FAST), record("a")]
    run = compare_runs([*twice, record("a")], twice[::-1])
    assert run.names == ("a", "a#2")
    assert run.only_left == ("a#3",)
    verdicts = [list(comparison.verdict.values()) for comparison in run.comparisons]
    assert verdicts == [["slower"], ["faster"]]
    assert [note.message for note in run.notes] == [
        "'a' stands 3 times on the left; they were paired in order.",
        "'a' stands 2 times on the right; they were paired in order.",
    ]


def test_a_name_that_looks_like_a_repetition_stays_a_name_of_its_own():
    records = [record("a"), record("a"), record("a#2")]
    run = compare_runs(records, records)
    assert run.names == ("a", "a#2", "a#2")
    assert len(run.comparisons) == 3


def test_text_names_each_comparison_and_what_has_none():
    left = [record("a"), record("two\nlines"), record("gone"), without_times("b", status="skipped")]
    right = [record("a", FAST), record("two\nlines"), record("b"), record("b"), record("new")]
    run = compare_runs(left, right)
    tables, _, end = str(run).rpartition("\n\n")
    one, other = run.comparisons
    assert tables == f"== a ==\n{one}\n\n== two\\nlines ==\n{other}"
    assert end.splitlines() == [
        "compared: 2 of the 3 benchmarks in both",
        "not compared: b (left: skipped, right: ok)",
        "only on the left: gone",
        "only on the right: b#2, new",
        "repeated-name: 'b' stands 2 times on the right; they were paired in order."
        " Give each benchmark a name of its own.",
    ]


def test_text_says_so_if_nothing_was_compared():
    run = compare_runs([without_times("a", status="failed")], [record("a")])
    assert run.comparisons == ()
    assert str(run).splitlines() == [
        "compared: 0 of the 1 benchmarks in both",
        "not compared: a (left: failed, right: ok)",
    ]


def test_a_run_comparison_is_a_frozen_value():
    run = compare_runs([record("a")], [record("a")])
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.names = ()


def test_no_name_in_common_is_an_error_with_both_sides_names():
    with pytest.raises(ArgumentError) as caught:
        compare_runs([record("a"), record("a")], [record("b")])
    assert str(caught.value) == (
        "left and right have no benchmark in common: left has 'a', 'a#2'; right has 'b'"
    )
    with pytest.raises(ArgumentError, match="left has none at all; right has 'b'"):
        compare_runs([], [record("b")])


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (3, "right must be a list of results or a path, got 3"),
        ([record("a"), 3], r"right\[1\]: a result must be a mapping, got 3"),
        ([{"cpu_times_s": [1.0]}], r"right\[0\]: name is missing"),
        ([{"status": "skipped"}], r"right\[0\]: name is missing"),
        ([without_times(3, status="skipped")], r"right\[0\]: name must be a string, got 3"),
        ([record("a", status=3)], r"right\[0\]: status must be a string, got 3"),
    ],
)
def test_what_is_no_run_is_an_error_that_says_where(records, message):
    with pytest.raises(ArgumentError, match=message):
        compare_runs([record("a")], records)


@pytest.mark.parametrize("content", [None, b"{", b"\xff", b'"text"'])
def test_what_is_no_file_of_results_is_an_error_that_names_the_side(content, tmp_path):
    path = tmp_path / "run.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArgumentError, match="right must be"):
        compare_runs([record("a")], path)


@pytest.mark.parametrize("changes", [{"margin": 0}, {"margin": "1"}, {"seed": 1.5}, {"seed": -1}])
def test_margin_and_seed_are_checked(changes):
    with pytest.raises(ArgumentError, match=next(iter(changes))):
        compare_runs([record("a")], [record("a")], **changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cpu_times_s": "1"}, "cpu_times_s must hold real numbers"),
        ({"cpu_times_s": [1.0, float("nan")]}, "finite"),
        ({"floor_s": "1"}, "floor_s must be a number, got '1'"),
    ],
)
def test_a_broken_record_leaves_the_others(changes, reason):
    good = [record("a"), record("b")]
    compared = compare_runs(good, [record("a", **changes), record("b")])
    assert compared.names == ("b",)
    (left_out,) = compared.not_compared
    assert left_out.name == "a"
    assert left_out.right.startswith("unreadable: ")
    assert reason in left_out.right
