import dataclasses
import json

import numpy as np
import pytest
from example_results import make_result

from gpubench.comparison.outcome import Comparison
from gpubench.comparison.run_comparison import NotCompared, ValueChange
from gpubench.comparison.runs import compare_runs
from gpubench.errors import ArgumentError
from gpubench.storage import Record, SavedResults

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


def test_text_is_a_table_to_paste_and_what_is_not_in_it():
    left = [
        record("same"),
        record("two\nlines|<b>", FAST, gpu_times_s=[[1e-3] * 10], cpu_times_s=[1e-3] * 10),
        record("slow", [10] * 12),
        record("gone"),
        without_times("b", status="skipped", reason="too large"),
        {"name": "size", "value": 2048, "unit": "bytes"},
    ]
    right = [
        record("same"),
        record("two\nlines|<b>", FAST, gpu_times_s=[[5e-4] * 10], cpu_times_s=[1e-3] * 10),
        record("slow", [20] * 12),
        record("b"),
        record("b"),
        record("new"),
        {"name": "size", "value": 3072, "unit": "bytes"},
    ]
    run = compare_runs(left, right)
    table, values, end = str(run).split("\n\n")
    low, high = run.changes[0].interval
    assert table.splitlines() == [
        "| benchmark          |       A |       B | B / A                | verdict   |",
        "|--------------------|---------|---------|----------------------|-----------|",
        "| slow               | 10.0 us | 20.0 us | 2.000 [2.000, 2.000] | slower    |",
        r"| two\\nlines\|\<b\> | 1000 us |  500 us | 0.500 [0.500, 0.500] | faster    |",
        f"| same               | 29.5 us | 29.5 us | 1.000 [{low:.3f}, {high:.3f}] | unclear   |",
    ]
    assert values.splitlines()[2:] == ["| size        | 2.0 KiB | 3.0 KiB | 1.500   |"]
    assert end.splitlines() == [
        "compared: 4 of the 5 benchmarks in both",
        "verdicts: 1 slower, 1 faster, 1 unclear, 0 same",
        "(medians of GPU times; the ratios' intervals hold for all together with 95 %; "
        "up to 1 % is the same)",
        "not compared (A skipped: too large, B ok): b",
        "only in A: gone",
        "only in B: b#2, new",
        "repeated-name: 'b' stands 2 times on the right; they were paired in order."
        " Give each benchmark a name of its own.",
        str(run.comparisons[0].notes[0]),
    ]


def test_text_says_so_if_nothing_was_compared():
    run = compare_runs([without_times("a", status="failed")], [record("a")])
    assert run.comparisons == ()
    assert str(run).splitlines() == [
        "compared: 0 of the 1 benchmarks in both",
        "not compared (A failed, B ok): a",
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
        ([record("a"), 3], r"right\[1\]: a record must be a mapping, got 3"),
        ([{"cpu_times_s": [1.0]}], r"right\[0\]: name is missing"),
        ([{"status": "skipped"}], r"right\[0\]: name is missing"),
        ([without_times(3, status="skipped")], r"right\[0\]: name must be a string, got 3"),
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
        ({"status": 3}, "status must be a string, got 3"),
        ({"blocks": [0]}, "blocks must hold one for each of 20 samples, got 1"),
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


def test_parameters_join_too():
    one, other = (
        [Record(name="f", params={"n": n}, result=make_result(t, [t])) for n, t in pairs]
        for pairs in ([(1, SLOW), (2, FAST)], [(2, FAST), (3, FAST)])
    )
    run = compare_runs(one, SavedResults(records=tuple(other)))
    assert run.names == ("f(n=2)",)
    assert (run.only_left, run.only_right) == (("f(n=1)",), ("f(n=3)",))


def test_blocks_may_have_any_ids():
    levels = np.linspace(1, 1.001, 120)
    blocks = np.arange(120) % 6
    one = Record(name="f", result=make_result(levels, [levels]), blocks=blocks)
    other = Record(
        name="f", result=make_result(levels, [levels]), blocks=[int(n) + 2**70 for n in blocks]
    )
    (change,) = compare_runs([one], [other]).changes
    assert (change.verdict, change.n_blocks) == ("same", 6)


def test_what_is_not_compared_is_told_in_brief():
    failed = Record(name="g", status="failed", reason="it died; its last words:\n  a\n  b")
    other = Record(name="g", status="failed", reason="x" * 1000)
    good = Record(name="f", result=make_result(np.ones(3), [np.ones(3)]))
    run = compare_runs([good, failed], [good, other])
    (item,) = run.not_compared
    assert item.left == "failed: it died; its last words:\n  a\n  b"
    assert item.why == f"A failed: it died; its last words: …, B failed: {'x' * 192} …"


def test_blocks_are_what_is_resampled_not_samples():
    # Each block has its own level, so that a thousand samples say no more than two of them.
    levels = np.repeat([10.0, 20.0], 500)
    blocks = np.repeat([0, 1], 500)
    one = Record(name="f", result=make_result(levels, [levels]), blocks=blocks)
    other = Record(name="f", result=make_result(3 * levels, [3 * levels]), blocks=blocks)
    (change,) = compare_runs([one], [other]).changes
    assert (change.verdict, change.interval, change.ratio) == ("unclear", None, 3.0)
    assert (change.left, change.right) == pytest.approx((15e-6, 45e-6))
    six = Record(name="f", result=one.result, blocks=np.arange(1000) % 6)
    (change,) = compare_runs([six], [six]).changes
    assert change.n_blocks == 6


def test_neighbours_that_resemble_each_other_are_no_evidence_of_their_own():
    """Two runs of the same thing, whose samples drift to and fro, hardly ever seem to differ."""
    rng = np.random.default_rng(7)

    def run():
        records = []
        for number in range(40):
            level = np.repeat(100 + rng.normal(0, 5, 20), 10)  # a hundred us, ten samples alike
            times = level * rng.normal(1, 0.002, 200)
            records.append(Record(name=str(number), result=make_result(times, [times])))
        return records

    verdicts = compare_runs(run(), run()).counts
    assert (verdicts["slower"], verdicts["faster"]) == (0, 0)


def test_the_more_benchmarks_the_wider_the_intervals():
    rng = np.random.default_rng(3)

    def noisy(name):
        times = rng.normal(100, 3, 200)
        return Record(name=name, result=make_result(times, [times]))

    one, other = noisy("f"), noisy("f")
    (alone,) = compare_runs([one], [other]).changes
    among = [[each, *map(noisy, "abcdefghij")] for each in (one, other)]
    together = compare_runs(*among).changes[0]
    assert alone.confidence == 0.95 < together.confidence
    assert together.interval[0] < alone.interval[0] < alone.interval[1] < together.interval[1]


DEVICES = {"devices": [{"id": 0, "name": "H100"}], "cpu": "x"}
OTHER = {"devices": [{"id": 0, "name": "H200"}], "cpu": "y"}


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ({"environment": DEVICES}, {"environment": OTHER}, "different devices: H100 and H200"),
        (
            {"devices": (), "gpu_us": [], "method": "host", "environment": DEVICES},
            {"devices": (), "gpu_us": [], "method": "host", "environment": OTHER},
            "different devices: x and y",
        ),
        ({}, {"method": "events"}, "different methods: gated and events"),
        ({}, {"cache": "cold"}, "different methods: gated and gated with a cold cache"),
    ],
)
def test_unlike_devices_and_methods_are_compared_only_if_asked_for(left, right, reason):
    one, other = (
        make_result(**{"cpu_us": SLOW, "gpu_us": [SLOW], **each}) for each in (left, right)
    )
    run = compare_runs([one], [other])
    assert run.names == ()
    assert run.not_compared == (NotCompared("f", "ok", "ok", reason),)
    mixed = compare_runs([one], [other], mixed=True)
    assert mixed.names == ("f",)
    assert reason in mixed.notes[0].message


def on(host, *gpus, kind="A", timed=True):
    """A result of a cluster's host, and of the GPUs there that have these UUIDs."""
    devices = [{"id": n, "name": kind, "uuid": uuid} for n, uuid in enumerate(gpus)]
    return make_result(
        SLOW,
        [SLOW for _ in gpus] if timed else [],
        environment={"host": host, "cpu": "C", "devices": devices},
    )


def test_times_of_the_host_are_those_with_a_gpu_too():
    run = compare_runs([on("a", "1", kind="A", timed=False)], [on("a", "2", kind="B", timed=False)])
    assert [each.reason for each in run.not_compared] == ["different GPUs: A and B"]


@pytest.mark.parametrize(
    ("left", "right", "count"),
    [
        (on("a", "1"), on("a", "1"), 0),
        (on("a", "1"), on("a", "2"), 1),
        (on("a", "1"), on("b", "1"), 0),  # a container has a host's name of its own
        (on("a"), on("b"), 1),
        (on("a", ""), on("a", "2"), 0),  # an older file, without UUIDs
        (on("a", "1", timed=False), on("b", "2", timed=False), 1),
    ],
)
def test_two_devices_of_one_kind_are_compared_and_that_is_said(left, right, count):
    run = compare_runs([left], [right])
    assert run.names == ("f",)
    assert [note.code for note in run.notes] == ["other-device"] * count


def test_a_run_on_several_devices_is_compared_benchmark_by_benchmark():
    left = [Record(name="f", result=on("a", "1")), Record(name="g", result=on("b", "2", kind="B"))]
    right = [Record(name="g", result=on("b", "2", kind="B")), Record(name="f", result=on("c", "3"))]
    run = compare_runs(left, right)
    assert run.names == ("f", "g")
    assert "1 of 2 benchmarks" in run.notes[0].message


def test_what_is_not_known_of_devices_and_methods_is_no_obstacle():
    older = {"name": "f", "cpu_times_s": [1e-3] * 10, "gpu_times_s": [[1e-3] * 10]}
    assert compare_runs([older], [make_result(SLOW, [SLOW], environment=DEVICES)]).names == ("f",)


def test_the_runs_say_in_what_their_environments_differ():
    def run(**environment):
        return SavedResults(records=(Record(name="f", value=1),), environment=environment)

    left = run(date="1", numpy="2.0", git={"commit": "a", "dirty": False}, variables={}, old=1)
    right = run(
        date="2", numpy="2.1", git={"commit": "b", "dirty": False}, variables={"CUPY_TF32": "1"}
    )
    compared = compare_runs(left, right)
    assert [str(each) for each in compared.differences] == [
        "numpy: 2.0 → 2.1",
        "git.commit: a → b",
        "variables.CUPY_TF32: - → 1",
    ]
    assert "A → B: numpy: 2.0 → 2.1" in str(compared)


def test_values_without_times_are_put_side_by_side_and_not_judged():
    left = [
        {"name": "size", "value": 2, "unit": "bytes"},
        {"name": "unit", "value": 2, "unit": "s"},
        {"name": "times", "value": 2},
        {"name": "zero", "value": 0},
        {"name": "limit", "value": "inf"},
    ]
    right = [
        {"name": "size", "value": 3, "unit": "bytes"},
        {"name": "unit", "value": 3, "unit": "ms"},
        record("times"),
        {"name": "zero", "value": 1},
        {"name": "limit", "value": "inf"},
    ]
    run = compare_runs(left, right)
    assert run.values[0] == ValueChange("size", 2.0, 3.0, "bytes")
    assert [value.ratio for value in run.values] == [1.5, None, None]
    assert [each.reason for each in run.not_compared] == [
        "different units: 's' and 'ms'",
        "one has times, the other a value",
    ]
    assert sum(run.counts.values()) == 0


def test_an_interrupted_record_is_compared_by_what_it_has():
    result = make_result(SLOW, [SLOW])
    half = Record(name="f", status="interrupted", reason="3 of 6 rounds", result=result)
    assert compare_runs([half], [result]).names == ("f",)


def test_single_samples_and_equal_ones_make_strict_json():
    pairs = [[1.0], [2.0]], [[1.0] * 8, [1.0] * 8], [[0.0] * 8, [1.0] * 8]
    left, right = ([record(str(n), pair[i]) for n, pair in enumerate(pairs)] for i in (0, 1))
    values = json.loads(compare_runs(left, right).to_json(), parse_constant=pytest.fail)
    assert [(each["verdict"], each["ratio"]) for each in values["changes"]] == [
        ("unclear", 2.0),
        ("same", 1.0),
        ("unclear", None),
    ]
    assert values["counts"] == {"slower": 0, "faster": 0, "unclear": 2, "same": 1}


def test_html_shows_names_as_text():
    html = compare_runs([record("<script>")], [record("<script>")])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
