"""Arithmetic on intervals, gaps and waits, against counting every nanosecond."""

import numpy as np
import pytest
from example_recordings import Recorded

from gpubench.activity.diagnosis.idleness import idle_gaps
from gpubench.activity.diagnosis.serialization import serialization
from gpubench.activity.intervals import union

LENGTH = 300


def ticks(start, end):
    """Which nanoseconds at least one of the intervals covers."""
    covered = np.zeros(LENGTH, bool)
    for first, last in zip(start, end, strict=True):
        covered[first:last] = True
    return covered


def some(rng, n, longest=30):
    start = rng.integers(0, LENGTH - longest, n)
    return start, start + rng.integers(0, longest, n)


@pytest.fixture(params=range(20))
def rng(request):
    return np.random.default_rng(request.param)


class TestIntervals:
    def test_a_union_covers_what_any_of_them_does(self, rng):
        start, end = some(rng, rng.integers(0, 30))
        made = union(start, end)
        assert np.array_equal(ticks(made.start, made.end), ticks(start, end))
        assert made.total == ticks(start, end).sum()
        assert (made.start[1:] > made.end[:-1]).all()
        assert (made.start < made.end).all()

    def test_it_covers_parts_of_others(self, rng):
        start, end = some(rng, rng.integers(0, 12))
        first, last = some(rng, 40, longest=100)
        covered = ticks(start, end)
        expected = [covered[a:b].sum() for a, b in zip(first, last, strict=True)]
        assert union(start, end).within(first, last).tolist() == expected

    def test_two_overlap_in_what_both_cover(self, rng):
        one, other = some(rng, 8), some(rng, 8)
        expected = (ticks(*one) & ticks(*other)).sum()
        assert union(*one).overlap(union(*other)) == expected
        assert union(*other).overlap(union(*one)) == expected

    def test_what_ends_before_it_starts_counts_for_nothing(self):
        made = union(np.array([5, 7, 1]), np.array([4, 7, 2]))
        assert (made.start.tolist(), made.end.tolist()) == ([1], [2])
        assert made.within(np.array([2]), np.array([0])).tolist() == [0]

    def test_times_far_from_zero(self):
        begin = 2**62
        made = union(np.array([begin, begin + 10]), np.array([begin + 5, begin + 15]))
        assert made.total == 10
        assert made.within(np.array([-(2**62)]), np.array([2**62 + 12])).tolist() == [7]


def recorded_activities(rng, n_devices=1):
    recorded = Recorded()
    for start, end in zip(*some(rng, 15, longest=25), strict=True):
        device = int(rng.integers(n_devices))
        recorded.activity("kernel", "k", start / 1000, (end - start) / 1000, device=device)
    return recorded.recording(LENGTH / 1000)


class TestGaps:
    def test_they_are_where_a_device_is_not_busy(self, rng):
        recording = recorded_activities(rng, n_devices=2)
        nothing = np.zeros(0, np.int64)
        gaps = idle_gaps(recording, recording.launches(), union(nothing, nothing))
        for device in np.unique(recording.activities["device"]):
            rows = recording.activities[recording.activities["device"] == device]
            start, end = rows["start"] - recording.begin, rows["end"] - recording.begin
            idle = ~ticks(start, end)
            idle[: start.min()] = idle[max(end.max(), start.max()) :] = False
            own = gaps[gaps["device"] == device]
            first, last = own["start"] - recording.begin, own["end"] - recording.begin
            assert np.array_equal(ticks(first, last), idle)
            assert np.array_equal(recording.activities["start"][own["activity"]], own["end"])
            assert np.array_equal(own["lost"], last - first)


class TestSerialization:
    def schedule(self, rng):
        """What a device makes of work on the null stream and two others, as CUDA orders it."""
        recorded = Recorded()
        ends = {7: 0, 13: 0, 14: 0}
        rows = []
        for queued in np.sort(rng.integers(1, 60, 12)).tolist():
            stream = (7, 13, 14)[rng.integers(3)]
            waits_for = ends if stream == 7 else (7, stream)
            start = max([queued, *(ends[each] for each in waits_for)])
            start += int(rng.integers(0, 3))
            length = int(rng.integers(1, 15))
            rows.append((stream, max(queued, ends[stream]), start, start + length))
            ends[stream] = start + length
            recorded.launch(
                "k", (queued - 1) / 1000, start / 1000, length / 1000, call=0.001,
                stream=stream, is_null_stream=stream == 7,
            )  # fmt: skip
        return recorded.recording(LENGTH / 1000), rows

    def test_it_costs_each_moment_in_which_one_waits_for_the_other(self, rng):
        recording, rows = self.schedule(rng)
        found = serialization(recording, recording.launches(), 0)
        null, others = ([row for row in rows if (row[0] == 7) == is_null] for is_null in (1, 0))

        def covered(rows, first, last):
            return ticks([row[first] for row in rows], [row[last] for row in rows])

        null_runs, others_run = covered(null, 2, 3), covered(others, 2, 3)
        null_waits, others_wait = covered(null, 1, 2), covered(others, 1, 2)
        both = (null_runs & others_wait) | (others_run & null_waits)
        assert found.total == both.sum()
        held = {
            start: others_wait[start:end].sum() + others_run[ready:start].sum()
            for _, ready, start, end in null
        }
        starts = recording.activities["start"][found.rows] - recording.begin
        assert dict(zip(starts.tolist(), found.held_ns.tolist(), strict=True)) == {
            start: cost for start, cost in held.items() if cost
        }
