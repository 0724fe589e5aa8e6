"""The picture of a trace: what stands in which lane, and where."""

import sys

import numpy as np
import pytest
from example_recordings import MAIN, Recorded

import gpubench
from gpubench.activity.trace import Trace


def plotted(recorded, duration=100, **options):
    """Draw a recording of that many microseconds and return the axes."""
    return Trace(recorded.recording(duration)).plot(**options).axes[0]


def bars(axes):
    """Return (left, right) of every bar of each lane, in the unit of the axis."""
    lanes = []
    for collection in axes.collections:
        edges = [path.vertices[:, 0] for path in collection.get_paths()]
        lanes.append([(float(each.min()), float(each.max())) for each in edges])
    return lanes


def interval(left, right):
    """What `bars` has of something that took so long: bars end a hair early."""
    return pytest.approx((left, right), abs=0.2)


def labels(axes):
    return [each.get_text() for each in axes.get_yticklabels()]


def texts(axes):
    return [each.get_text() for each in axes.texts]


@pytest.fixture
def two_launches():
    recorded = Recorded()
    recorded.range("step", 0, 60)
    recorded.launch("sqrt", 5, 10, 30)
    recorded.launch("sum", 15, 45, 20)
    return recorded


def test_lanes_stand_below_each_other_host_first(two_launches):
    axes = plotted(two_launches)
    assert labels(axes) == ["host", "", "GPU-0, stream 7"]
    assert bars(axes) == [
        [interval(0, 60)],
        [interval(5, 9), interval(15, 19)],
        [interval(10, 40), interval(45, 65)],
    ]
    assert axes.get_xlim() == (0, 100)
    assert axes.get_xlabel() == "time (us)"
    bottom, top = axes.get_ylim()
    assert bottom > top  # lanes are counted from the top


def test_a_line_leads_from_a_call_to_what_it_launched(two_launches):
    lines = [line.get_xydata().tolist() for line in plotted(two_launches).lines]
    assert lines == [
        [pytest.approx([9, 1.36]), pytest.approx([10, 1.64])],
        [pytest.approx([19, 1.36]), pytest.approx([45, 1.64])],
    ]


def test_many_lines_are_left_out():
    recorded = Recorded()
    for i in range(61):
        recorded.launch("sqrt", 10 * i, 10 * i + 5, 2)
    assert not plotted(recorded, 700).lines
    assert len(plotted(recorded, 700, end=300e-6).lines) == 30


def test_only_what_is_asked_for_is_shown(two_launches):
    axes = plotted(two_launches, begin=20e-6, end=42e-6)
    assert axes.get_xlim() == pytest.approx((20, 42))
    assert bars(axes) == [[interval(20, 42)], [interval(20, 40)]]
    assert labels(axes) == ["host", "GPU-0, stream 7"]


def test_names_stand_in_a_legend_and_a_single_one_at_its_bars(two_launches):
    picture = Trace(two_launches.recording(100)).plot()
    assert [each.get_text() for each in picture.legends[0].get_texts()] == ["sqrt", "sum"]
    alone = Recorded()
    alone.launch("sqrt", 5, 10, 30)
    picture = Trace(alone.recording(100)).plot()
    assert not picture.legends
    assert "sqrt" in texts(picture.axes[0])


def test_a_name_stands_beside_a_bar_that_is_too_small_for_it_if_there_is_room():
    recorded = Recorded()
    recorded.range("stopwatch", 10, 2)
    (text,) = plotted(recorded).texts
    assert (text.get_text(), text.get_ha()) == ("stopwatch", "left")
    recorded.range("next", 13, 60)
    assert texts(plotted(recorded)) == ["next"]


def test_nested_ranges_have_lanes_of_their_own_and_inner_calls_none():
    recorded = Recorded()
    recorded.range("outer", 0, 90)
    recorded.range("inner", 10, 30)
    recorded.call("cudaLaunchKernel", 15, 10)
    recorded.call("cuLaunchKernel", 17, 5, kind="driver")
    recorded.call("cudaDeviceSynchronize", 50, 10)
    axes = plotted(recorded)
    assert bars(axes) == [
        [interval(0, 90)],
        [interval(10, 40)],
        [interval(15, 25), interval(50, 60)],
    ]
    assert labels(axes) == ["host", "", ""]


def test_bars_that_touch_are_told_apart_and_the_shortest_are_seen():
    recorded = Recorded()
    for start, duration in ((10, 30), (40, 30), (80, 0)):
        recorded.activity("kernel", "sqrt", start, duration)
    ((first, second, nothing),) = bars(plotted(recorded))
    assert first[1] < second[0]
    assert nothing[1] > nothing[0]


def test_threads_and_streams_are_told_apart():
    recorded = Recorded()
    recorded.launch("sqrt", 5, 10, 30)
    recorded.launch("sqrt", 5, 10, 30, thread=MAIN + 1, stream=8)
    names = labels(plotted(recorded))
    assert names[2:] == ["GPU-0, stream 7", "GPU-0, stream 8"]
    assert all(name.startswith("host, ") for name in names[:2])
    assert names[0] != names[1]


def test_names_are_no_formulas():
    recorded = Recorded()
    recorded.range("$x^2$", 10, 80)
    assert texts(plotted(recorded)) == ["\\$x^2\\$"]


def test_nothing_can_be_drawn_too():
    axes = plotted(Recorded())
    assert not axes.collections
    assert axes.get_xlim() == (0, 100)


def test_many_bars_are_stored_as_pixels(tmp_path):
    recorded = Recorded()
    for i in range(2000):
        recorded.activity("kernel", "sqrt", i, 0.5)
    picture = Trace(recorded.recording(2000)).plot()
    picture.savefig(tmp_path / "many.svg")
    assert (tmp_path / "many.svg").stat().st_size < 100_000


def test_pyplot_knows_nothing_of_it(two_launches):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    plotted(two_launches)
    assert pyplot.get_fignums() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"begin": 2e-5, "end": 1e-5}, "end must be after begin, got 1e-05 and 2e-05"),
        ({"begin": 1.0}, "end must be after begin"),
        ({"begin": np.nan}, "begin"),
        ({"end": "late"}, "end"),
    ],
)
def test_an_impossible_window_is_refused(two_launches, options, message):
    with pytest.raises(gpubench.ArgumentError, match=message):
        plotted(two_launches, **options)


def test_without_matplotlib_the_extra_is_named(two_launches, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(gpubench.MissingExtraError, match=r"gpubench\[plot\]"):
        plotted(two_launches)
