import dataclasses

import numpy as np
import pytest
from example_recordings import MAIN, Recorded

from gpubench.activity.summary import (
    NameTotal,
    activity_totals,
    call_time,
    device_totals,
    range_summary,
)
from gpubench.render import activity

WORKER = 2002

ADD = "void add<float>(float*, int)"


def elementwise(functor):
    return f"void at::vectorized_elementwise_kernel<8, 256, at::{functor}<float> >(at::{functor})"


def steps():
    """Return records of two steps, of a kernel and a call behind them, and of marks."""
    recorded = Recorded()
    for start in (0, 200):
        recorded.range("step", start, 150)
        recorded.range("begun", start + 1, 0)
        recorded.copy(start + 5, start + 10, 20 + start / 100, 4 * 2**20)
        recorded.launch("sqrt", start + 20, start + 40, 5)
        recorded.launch("sqrt", start + 30, start + 50, 7)
    recorded.compilation("add", 300, 80)
    recorded.launch(ADD, 390, 400, 50, call=8)
    recorded.call("cudaDeviceSynchronize", 440, 12, correlation_id=recorded.next_id())
    return recorded


def launched_in(recording):
    """Return for each range of a recording how often each kernel was launched in it."""
    return {
        one.host.name: {each.name: each.n_calls for each in one.activities}
        for one in range_summary(recording).ranges
    }


TABLE = """
Trace of 500 us: 7 activities, 8 API calls, 4 ranges, 1 compilation

The host was in CUDA's API for 44.0 us (8.8% of the trace):
  share    total    calls      mean ± std      min      max  name
-------  -------  -------  --------------  -------  -------  ---------------------
   4.8%  24.0 us        5  4.80 ± 1.60 us  4.00 us  8.00 us  cudaLaunchKernel
   2.4%  12.0 us        1                                    cudaDeviceSynchronize
   1.6%  8.00 us        2  4.00 ±    0 us  4.00 us  4.00 us  cudaMemcpyAsync

GPU-0 (a GPU) was busy for 116 us (23.2% of the trace):
  share    total    calls      mean ± std      min      max    bytes  name
-------  -------  -------  --------------  -------  -------  -------  ----------------------------
  10.0%  50.0 us        1                                             void add<float>(float*, int)
   8.4%  42.0 us        2  21.0 ± 1.00 us  20.0 us  22.0 us  8.0 MiB  memcpy HtoD
   4.8%  24.0 us        4  6.00 ± 1.00 us  5.00 us  7.00 us           sqrt

Ranges, on the host:
  share    total    calls    mean ± std     min     max  name
-------  -------  -------  ------------  ------  ------  ------
  60.0%   300 us        2    150 ± 0 us  150 us  150 us  step

Marks:
  times  name
-------  ------
      2  begun

CuPy compiled for 80.0 us (16.0% of the trace):
  share    total  name
-------  -------  ------
  16.0%  80.0 us  add

  ! dropped-records: 1,234 records were lost for want of room, so counts and
    totals are too low. Record a shorter block or fewer kinds.
  ! slower-host: Recording made a launch take 4.10 us on the host instead of
    2.90 us and kept the interpreter busy for 5.00 us (1.0% of the trace).
    Kernels' own times are not affected, gaps between them are; fewer kinds cost
    less.
"""


def test_table():
    recording = steps().recording(
        500, n_dropped=1234, launch_time=2.9e-6, recorded_launch_time=4.1e-6, delivery_time=5e-6
    )

    assert activity.table(recording) == TABLE.strip()


ONE_CALL = """
Trace of 100 us: 1 activity, 1 API call

The host was in CUDA's API for 4.00 us (4.0% of the trace):
  share    total  name
-------  -------  ----------------
   4.0%  4.00 us  cudaLaunchKernel

GPU-0 (a GPU) was busy for 5.00 us (5.0% of the trace):
  share    total  name
-------  -------  ------
   5.0%  5.00 us  sqrt
"""


def test_table_of_one_call_has_no_columns_on_several():
    recorded = Recorded()
    recorded.launch("sqrt", 0, 10, 5)

    assert activity.table(recorded.recording(100)) == ONE_CALL.strip()


@pytest.mark.parametrize(("duration", "text"), [(100, "100 us"), (0, "0 ns")])
def test_empty_recording(duration, text):
    recording = Recorded().recording(duration)

    assert activity.short_form(recording) == f"<Trace of {text}: 0 activities>"
    assert activity.table(recording) == (
        f"Trace of {text}: 0 activities\n"
        "\n"
        "The host called nothing of CUDA's API.\n"
        "\n"
        "No GPU did anything."
    )
    assert activity.range_table(recording) == "There are no ranges."
    assert activity.timeline_table(recording) == "No activities were recorded."
    assert activity.activity_table(recording) == "No activities were recorded."
    assert activity.device_table(recording) == "No activities were recorded."


def test_what_was_not_recorded_is_not_said_to_be_nothing():
    recording = dataclasses.replace(Recorded().recording(100), kinds=("compilation",))

    assert activity.table(recording) == (
        "Trace of 100 us: 0 activities\n"
        "\n"
        "Calls of CUDA's API were not recorded.\n"
        "\n"
        "What the GPU did was not recorded."
    )
    assert activity.range_table(recording) == "Ranges were not recorded."


def test_recording_without_duration_has_shares_all_the_same():
    recorded = Recorded()
    recorded.launch("sqrt", 0, 0, 0, call=0)
    recorded.range("solve", 0, 0)

    text = activity.table(recorded.recording(0))

    assert "nan" not in text
    assert "inf" not in text
    assert "   0.0%     0 ns  sqrt" in text


TWO_DEVICES = """
GPU-0 (H200) was busy for 15.0 us (15.0% of the trace):
  share    total    calls      mean ± std      min      max  name
-------  -------  -------  --------------  -------  -------  -------------------------------
  20.0%  20.0 us        2  10.0 ± 2.00 us  8.00 us  12.0 us  vectorized_element…Add<float> >

GPU-1 was busy for 20.0 us (20.0% of the trace):
  share    total  name
-------  -------  -------------------------------
  20.0%  20.0 us  vectorized_element…Mul<float> >
"""


def test_each_device_has_a_table_and_names_are_told_apart_between_them():
    recorded = Recorded()
    recorded.launch(elementwise("Add"), 0, 10, 8)
    recorded.launch(elementwise("Add"), 5, 13, 12, stream=8)
    recorded.launch(elementwise("Mul"), 9, 15, 20, device=1)

    text = activity.table(recorded.recording(100, devices={0: "H200"}))

    assert text.startswith("Trace of 100 us: 3 activities on 2 GPUs, 3 API calls\n")
    assert text.endswith(TWO_DEVICES.strip())


def test_busy_time_counts_overlapping_activities_once():
    recorded = Recorded()
    recorded.activity("kernel", "sqrt", 0, 10)
    recorded.activity("kernel", "sqrt", 5, 10, stream=8)
    recorded.activity("kernel", "sqrt", 0, 40, device=1)

    totals = device_totals(recorded.recording(100))

    assert [(one.device, one.busy_time, one.share) for one in totals] == [
        (0, pytest.approx(15e-6), pytest.approx(0.15)),
        (1, pytest.approx(40e-6), pytest.approx(0.40)),
    ]


def test_call_time_counts_nested_calls_and_several_threads_once():
    recorded = Recorded()
    recorded.call("cudaLaunchKernel", 0, 10)
    recorded.call("cuLaunchKernel", 2, 6, kind="driver")
    recorded.call("cudaMemcpy", 5, 15, thread=WORKER)

    assert call_time(recorded.recording(100)) == pytest.approx(20e-6)


def test_name_totals_are_by_kind_and_name_in_seconds_the_longest_first():
    recorded = Recorded()
    recorded.activity("kernel", "fill", 0, 4)
    recorded.activity("memset", "fill", 10, 30, bytes=100)
    recorded.activity("kernel", "fill", 50, 8)

    assert activity_totals(recorded.recording(100)) == (
        NameTotal("fill", "memset", 1, 30e-6, 30e-6, None, 30e-6, 30e-6, 0.3, 100),
        NameTotal("fill", "kernel", 2, 12e-6, 6e-6, 2e-6, 4e-6, 8e-6, 0.12, 0),
    )


def test_deviation_of_long_times_keeps_its_digits():
    recorded = Recorded()
    for k in range(4):
        recorded.activity("kernel", "slow", k * 1e8, 9e7 + k % 2 * 0.002)

    (total,) = activity_totals(recorded.recording(1e9))

    assert total.std_time == pytest.approx(1e-9, rel=1e-6)


def test_units_of_a_column_stand_below_each_other():
    recorded = Recorded()
    recorded.activity("kernel", "long", 0, 2e6)
    recorded.activity("kernel", "short", 0, 5)

    assert activity.table(recorded.recording(4e6)).splitlines()[-2:] == [
        "  50.0%  2.00  s  long",
        "   0.0%  5.00 us  short",
    ]


def test_domains_and_sources_are_shown_where_they_differ():
    recorded = Recorded()
    recorded.range("solve", 0, 50)
    recorded.range("solve", 60, 10, domain="torch")
    recorded.range("seen", 1, 0, domain="torch")
    recorded.compilation("sqrt", 0, 30)
    recorded.compilation("add", 40, 10, source="nvcc")

    text = activity.table(recorded.recording(100))

    assert "  50.0%  50.0 us  gpubench  solve\n  10.0%  10.0 us  torch     solve\n" in text
    assert "  30.0%  30.0 us  nvrtc     sqrt\n  10.0%  10.0 us  nvcc      add" in text
    assert text.count("domain") == 1


def test_names_of_any_kind_stay_in_their_lines():
    recorded = Recorded()
    for name in ("a\nb", "", "<b>|'\"", "x" * 5000):
        recorded.launch(name, 0, 10, 5)
        recorded.range(name, 0, 50, domain=name)
    recording = recorded.recording(100, devices={0: "GPU\n" * 3})

    for text in (activity.table(recording), activity.range_table(recording)):
        lines = text.splitlines()
        assert max(map(len, lines)) < 160
        assert any(line.endswith(" a\\nb") for line in lines)
        assert any(line.endswith(" (no name)") for line in lines)


@pytest.mark.parametrize(
    ("cost", "note"),
    [
        ({"launch_time": 3e-6}, None),
        ({"launch_time": 3e-6, "recorded_launch_time": 4e-6}, "4.00 us on the host instead of"),
        ({"delivery_time": 5e-6}, "Recording kept the interpreter busy for 5.00 us"),
    ],
)
def test_slow_down_is_stated_as_far_as_it_was_measured(cost, note):
    text = activity.table(Recorded().recording(100, **cost))

    assert ("slower-host" in text) == (note is not None)
    assert note is None or note in text.replace("\n    ", " ")


RANGES = """
Trace of 500 us: 7 activities, 8 API calls, 4 ranges, 1 compilation

Ranges, and what was launched in each:
  host    share      GPU    share    calls      mean ± std      min      max  name
------  -------  -------  -------  -------  --------------  -------  -------  -------------
300 us    60.0%  66.0 us    13.2%        2   150 ±    0 us   150 us   150 us  step
                 42.0 us     8.4%        2  21.0 ± 1.00 us  20.0 us  22.0 us  └ memcpy HtoD
                 24.0 us     4.8%        4  6.00 ± 1.00 us  5.00 us  7.00 us  └ sqrt

In no range, as far as is known: 1 of 7 activities.
"""


def test_range_table():
    assert activity.range_table(steps().recording(500)) == RANGES.strip()


def test_range_table_says_that_calls_were_not_recorded():
    recorded = Recorded()
    recorded.range("step", 0, 50)
    recorded.activity("kernel", "sqrt", 10, 5)
    recording = dataclasses.replace(recorded.recording(100), kinds=("kernel", "range"))

    assert activity.range_table(recording) == (
        "Trace of 100 us: 1 activity, 1 range\n"
        "\n"
        "Ranges, and what was launched in each:\n"
        "   host    share  name\n"
        "-------  -------  ------\n"
        "50.0 us    50.0%  step\n"
        "\n"
        "What was launched in them is unknown: calls of CUDA's API were not recorded (add "
        '"runtime" and "driver" to kinds).'
    )


def test_range_table_states_dropped_records():
    recorded = Recorded()
    recorded.range("step", 0, 50)

    assert "dropped-records: 1 record" in activity.range_table(recorded.recording(9, n_dropped=1))


def test_activity_belongs_to_all_ranges_that_are_open_when_it_is_launched():
    recorded = Recorded()
    recorded.range("outer", 0, 100)
    recorded.range("inner", 20, 30)
    recorded.range("crossing", 40, 80)
    recorded.launch("in outer", 10, 60, 1)  # which runs while the others are open
    recorded.launch("in outer, inner", 20, 200, 1)
    recorded.launch("in all", 45, 201, 1)
    recorded.launch("in outer, crossing", 50, 202, 1)
    recorded.launch("in crossing", 110, 203, 1)
    recorded.launch("in none", 120, 204, 1)
    recording = recorded.recording(300)

    assert launched_in(recording) == {
        "outer": {"in outer": 1, "in outer, inner": 1, "in all": 1, "in outer, crossing": 1},
        "inner": {"in outer, inner": 1, "in all": 1},
        "crossing": {"in all": 1, "in outer, crossing": 1, "in crossing": 1},
    }
    assert range_summary(recording).n_outside == 1


def test_ranges_hold_what_their_own_thread_launched():
    recorded = Recorded()
    recorded.range("main", 0, 100)
    recorded.range("worker", 0, 100, thread=WORKER)
    recorded.range("idle", 0, 100, thread=3003)
    recorded.launch("a", 10, 20, 1)
    recorded.launch("b", 10, 20, 1, thread=WORKER)
    recorded.launch("c", 10, 20, 1, thread=4004)

    assert launched_in(recorded.recording(200)) == {
        "main": {"a": 1},
        "worker": {"b": 1},
        "idle": {},
    }


def test_range_that_is_nested_in_its_like_has_its_activities_once():
    recorded = Recorded()
    for depth in range(3):
        recorded.range("recursive", 10 * depth, 100 - 20 * depth)
    recorded.launch("outermost", 5, 200, 1)
    recorded.launch("innermost", 45, 205, 1)
    recorded.launch("after", 95, 210, 1)
    (total,) = range_summary(recorded.recording(300)).ranges

    assert (total.host.n_calls, total.host.total_time) == (3, pytest.approx(240e-6))
    assert {each.name: each.n_calls for each in total.activities} == {
        "outermost": 1,
        "innermost": 1,
        "after": 1,
    }


def test_range_is_busy_while_any_of_its_activities_runs():
    recorded = Recorded()
    recorded.range("step", 0, 100)
    recorded.launch("a", 0, 10, 20)
    recorded.launch("b", 5, 20, 20, device=1)
    recorded.launch("c", 10, 300, 5)
    (total,) = range_summary(recorded.recording(400)).ranges

    assert (total.busy_time, total.share) == (pytest.approx(35e-6), pytest.approx(35 / 400))


def test_ranges_of_several_threads_as_a_loop_over_all_pairs_finds_them():
    random = np.random.default_rng(5)
    recorded = Recorded()
    threads = (MAIN, WORKER)
    launches = [(f"k{k % 7}", k, threads[random.integers(2)]) for k in range(200)]
    for kernel, at, thread in launches:
        recorded.launch(kernel, at, at + 3, 2, thread=thread)
    ranges = [
        (f"r{random.integers(6)}", *random.integers(1, 60, 2) * 3.5, threads[random.integers(2)])
        for _ in range(40)
    ]
    for name, start, duration, thread in ranges:
        recorded.range(name, start, duration, thread=thread)
    expected = {}
    for name, *_ in ranges:
        inside = [
            kernel
            for kernel, at, thread in launches
            if any(
                thread == owner and start <= at < start + duration
                for other, start, duration, owner in ranges
                if other == name
            )
        ]
        expected[name] = {kernel: inside.count(kernel) for kernel in inside}

    assert launched_in(recorded.recording(1000)) == expected


TIMELINE = """
Timeline:
      start |        time | device | activity
------------+-------------+--------+-----------------------------
0.010000 ms | 0.020000 ms | GPU-0  | memcpy HtoD
0.040000 ms | 0.005000 ms | GPU-0  | sqrt
0.050000 ms | 0.007000 ms | GPU-0  | sqrt
0.210000 ms | 0.022000 ms | GPU-0  | memcpy HtoD
0.240000 ms | 0.005000 ms | GPU-0  | sqrt
0.250000 ms | 0.007000 ms | GPU-0  | sqrt
0.400000 ms | 0.050000 ms | GPU-0  | void add<float>(float*, int)
"""

ACTIVITIES = """
Activity summary:
 total time | share | count | activity
------------+-------+-------+-----------------------------
0.050000 ms | 43.1% |     1 | void add<float>(float*, int)
0.042000 ms | 36.2% |     2 | memcpy HtoD
0.024000 ms | 20.7% |     4 | sqrt
"""

DEVICES = """
Device summary:
 total time | share | count | device
------------+-------+-------+--------------
1.000000 ms | 89.6% |     1 | GPU-1
0.116000 ms | 10.4% |     7 | GPU-0 (a GPU)
"""


def test_three_tables_in_the_layout_of_timing_print():
    recorded = steps()

    assert activity.timeline_table(recorded.recording(500)) == TIMELINE.strip()
    assert activity.activity_table(recorded.recording(500)) == ACTIVITIES.strip()
    recorded.activity("memset", "memset", 0, 1000, device=1)
    assert activity.device_table(recorded.recording(500)) == DEVICES.strip()


def test_short_form():
    assert activity.short_form(steps().recording(500)) == (
        "<Trace of 500 us: 7 activities, 8 API calls, 4 ranges, 1 compilation>"
    )
