"""Pictures of sweeps: what they show, and how."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from example_results import make_result
from example_sweeps import failed, measured, precision, swept

from gpubench.errors import ArgumentError, MissingExtraError
from gpubench.sweeps.measurement import Measurement

TFLOPS = {"tflops": lambda t, n: (2 * n**3 / t / 1e12, "TFLOP/s")}
SMALL_AND_LARGE = [measured({"n": n}, us=n / 10) for n in (100, 200, 500)]


@pytest.fixture(autouse=True)
def _matplotlib():
    pytest.importorskip("matplotlib")


def drawn(sweep, **arguments):
    """The figure, drawn once, so that whatever can't be drawn is seen."""
    figure = sweep.plot(**arguments)
    figure.savefig(io.BytesIO())
    return figure


def panel(sweep, **arguments):
    """The only panel."""
    (axes,) = drawn(sweep, **arguments).axes
    return axes


def points(container):
    """Place, value, low end and high end of each point of a line with error bars."""
    line, _, (bars,) = container
    ends = [segment[:, 1] for segment in bars.get_segments()]
    return [(x, y, low, high) for x, y, (low, high) in zip(*line.get_data(), ends, strict=True)]


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def legend(figure):
    """Title and entries."""
    (found,) = figure.legends
    return found.get_title().get_text(), [text.get_text() for text in found.get_texts()]


def test_a_line_for_each_region_with_error_bars():
    figure = drawn(precision(derive=TFLOPS))
    (axes,) = figure.axes
    fp32, fp16 = axes.containers
    n, value, low, high = points(fp32)[0]
    assert (n, value) == (512, pytest.approx(2 * 512**3 / 80e-6 / 1e12))
    assert (low, high) == (pytest.approx(value / 1.03), pytest.approx(value / 0.97))
    assert [each[0] for each in points(fp16)] == [512, 1024]
    assert legend(figure) == ("region", ["fp32", "fp16"])
    assert axes.get_ylabel() == "tflops (TFLOP/s)"
    assert axes.get_xlabel() == "n"
    assert figure.get_suptitle() == "precision"
    assert figure.get_supxlabel() == "median and its 95 % interval"


def test_powers_of_two_are_on_a_logarithmic_axis():
    axes = panel(precision())
    assert axes.get_xscale() == "log"
    assert tick_labels(axes.xaxis) == ["512", "1024"]
    assert axes.get_yscale() == "linear"
    assert axes.get_ylim()[0] == 0


def test_other_numbers_are_on_a_linear_axis():
    axes = panel(swept(*SMALL_AND_LARGE))
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")


def test_many_powers_are_written_as_such():
    axes = panel(swept(*(measured({"n": 2**k}, us=10.0) for k in range(21))))
    labels = tick_labels(axes.xaxis)
    assert labels[:2] == ["$2^{0}$", "$2^{2}$"]
    assert len(labels) <= 12


def test_values_that_span_decades_are_on_a_logarithmic_axis():
    axes = panel(swept(*(measured({"n": 2**k}, us=2.0**k) for k in range(1, 9))))
    assert axes.get_yscale() == "log"
    assert panel(swept(*(measured({"n": 2**k}, us=2.0**k) for k in range(1, 7)))).get_yscale() == (
        "linear"
    )


@pytest.mark.parametrize(
    ("log", "scales"),
    [
        (True, ("log", "log")),
        (False, ("linear", "linear")),
        ("x", ("log", "linear")),
        ("y", ("linear", "log")),
    ],
)
def test_axes_that_are_asked_for(log, scales):
    axes = panel(swept(*SMALL_AND_LARGE), log=log)
    assert (axes.get_xscale(), axes.get_yscale()) == scales
    assert panel(precision(), log=False).get_xscale() == "linear"


def test_ticks_of_a_logarithmic_axis_are_readable():
    axes = panel(swept(*SMALL_AND_LARGE), log=True)
    assert tick_labels(axes.xaxis) == ["100", "200", "500"]
    assert "10" in tick_labels(axes.yaxis)
    assert tick_labels(panel(swept(measured({"n": 300})), log="x").xaxis) == ["300"]
    close = swept(*(measured({"n": n}, us=n / 10) for n in (1000, 1001, 1002, 1003, 9000)))
    assert "1000" in tick_labels(panel(close, log="x").xaxis)


def test_times_have_the_unit_that_suits_the_longest():
    axes = panel(swept(measured({"n": 1}, us=20.0), measured({"n": 3}, us=3000.0)))
    assert axes.get_ylabel() == "GPU time (ms)"
    assert points(axes.containers[0])[1][1] == pytest.approx(3.0)


def test_multiples_name_their_baseline_and_leave_out_what_has_none():
    sweep = swept(
        measured({"n": 1}, "fp32", 80.0),
        measured({"n": 1}, "fp16", 20.0),
        measured({"n": 2}, "fp16", 30.0),
        normalize_against="fp32",
    )
    figure = drawn(sweep, x="n")
    (axes,) = figure.axes
    assert axes.get_ylabel() == "GPU time relative to fp32"
    assert [len(points(container)) for container in axes.containers] == [1, 1]
    assert figure.get_supxlabel() == "median and its 95 % interval; 1 without a baseline not shown"
    assert [1, 1] in [list(line.get_ydata()) for line in axes.lines if line.get_zorder() == 1]


def test_few_samples_show_their_range():
    figure = drawn(swept(measured({"n": 1}, us=100.0, n=3), measured({"n": 3}, us=100.0, n=5)))
    assert points(figure.axes[0].containers[0])[0][2:] == (pytest.approx(99), pytest.approx(101))
    assert figure.get_supxlabel() == "median and range"
    mixed = drawn(swept(measured({"n": 1}, n=3), measured({"n": 3}, n=7)))
    assert mixed.get_supxlabel() == (
        "median and its 95 % interval, or the range of fewer than 6 samples"
    )


def test_failures_and_missing_values_are_left_out():
    sweep = swept(
        measured({"n": 2}),
        measured({"n": 4}),
        measured({"n": 8}),
        failed({"n": 16}),
        derive={"d": lambda t, n: 1 / (n - 4)},
    )
    assert [each[0] for each in points(panel(sweep).containers[0])] == [2, 8]
    assert [each[0] for each in points(panel(sweep, y="gpu_time").containers[0])] == [2, 4, 8]


GRID = [
    measured({"n": n, "dtype": dtype, "layout": layout}, region, us=n / 10)
    for dtype in (np.float32, np.float64)
    for layout in ("C", "F")
    for region in ("copy", "sum")
    for n in (100, 200)
]


def test_whatever_differs_has_its_place():
    figure = drawn(swept(*GRID))
    title, entries = legend(figure)
    assert title == "region, dtype, layout"
    assert entries[:2] == ["copy, float32, C", "sum, float32, C"]
    assert len(entries) == len(figure.axes[0].containers) == 8
    assert all(len(points(container)) == 2 for container in figure.axes[0].containers)


def test_panels_for_rows_and_columns():
    figure = drawn(swept(*GRID), row="layout", col="dtype", hue="region")
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "layout = C, dtype = float32",
        "layout = C, dtype = float64",
        "layout = F, dtype = float32",
        "layout = F, dtype = float64",
    ]
    assert legend(figure) == ("region", ["copy", "sum"])
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "n", "n"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["GPU time (us)", ""] * 2
    assert len({axes.get_ylim() for axes in figure.axes}) == 1


def test_the_place_that_is_asked_for():
    figure = drawn(swept(*GRID), x="dtype", col="n")
    assert tick_labels(figure.axes[0].xaxis) == ["float32", "float64"]
    assert legend(figure)[0] == "region, layout"


def test_one_series_needs_no_legend():
    assert drawn(swept(*SMALL_AND_LARGE)).legends == []


def test_the_first_parameter_with_numbers_is_the_axis():
    measurements = [
        measured({"op": op, "flag": True, "k": 3, "n": n}) for op in "ab" for n in (1, 2)
    ]
    figure = drawn(swept(*measurements))
    assert figure.axes[0].get_xlabel() == "n"
    assert legend(figure) == ("op", ["a", "b"])


def test_texts_and_truth_values_stand_side_by_side():
    axes = panel(swept(*(measured({"flag": flag}) for flag in (True, False))))
    assert tick_labels(axes.xaxis) == ["True", "False"]
    assert [each[0] for each in points(axes.containers[0])] == [0, 1]


def test_without_parameters_regions_are_the_axis():
    axes = panel(swept(measured({}, "a"), measured({}, "b")))
    assert axes.get_xlabel() == "region"
    assert tick_labels(axes.xaxis) == ["a", "b"]


def test_in_a_single_configuration_regions_are_the_axis():
    axes = panel(swept(measured({"n": 512}, "a"), measured({"n": 512}, "b")))
    assert axes.get_xlabel() == "region"


def test_what_does_not_vary_is_an_axis_too():
    assert panel(swept(measured({"op": "a", "n": 512}))).get_xlabel() == "n"
    assert panel(swept(measured({"n": 512})), hue="n").get_xlabel() == "region"


def test_a_line_runs_in_the_order_of_its_numbers():
    axes = panel(swept(*(measured({"n": n}) for n in (8, 2, 4))))
    assert [each[0] for each in points(axes.containers[0])] == [2, 4, 8]


def two_devices(n, *us):
    result = make_result(cpu_us=(5.0,), gpu_us=[(time,) for time in us])
    return Measurement(config={"n": n}, region="f", result=result)


def test_the_busiest_device_or_each():
    sweep = swept(two_devices(1, 1, 2), two_devices(3, 6, 3))
    (container,) = panel(sweep).containers
    assert [each[1] for each in points(container)] == pytest.approx([2, 6])
    figure = drawn(sweep, hue="device")
    assert legend(figure) == ("device", ["0", "1"])


def test_bars_have_error_bars():
    figure = drawn(precision(derive=TFLOPS), kind="bar")
    (axes,) = figure.axes
    fp32, fp16 = [each for each in axes.containers if hasattr(each, "patches")]
    assert [bar.get_height() for bar in fp32.patches] == pytest.approx([3.355, 3.355], abs=1e-3)
    first, _ = fp16.errorbar[2][0].get_segments()
    assert first[:, 1] == pytest.approx([13.03, 13.84], abs=0.01)
    assert tick_labels(axes.xaxis) == ["512", "1024"]
    assert axes.get_xscale() == "linear"
    assert legend(figure) == ("region", ["fp32", "fp16"])
    assert panel(precision(), kind="bar", log="y").get_yscale() == "log"


def test_many_bars_get_room():
    few, many = (
        drawn(swept(*(measured({"n": n}) for n in range(count))), kind="bar") for count in (3, 40)
    )
    assert few.get_figwidth() < many.get_figwidth() <= 16


def test_a_heat_map_says_its_figures():
    figure = drawn(precision(derive=TFLOPS), kind="heatmap")
    axes, colors = figure.axes
    (image,) = axes.images
    assert image.get_array().tolist() == [
        pytest.approx([3.355, 3.355], abs=1e-3),
        pytest.approx([13.42, 26.84], abs=0.01),
    ]
    assert axes.texts[0].get_text() == "3.36\n[3.26, 3.46]"
    assert tick_labels(axes.yaxis) == ["fp32", "fp16"]
    assert tick_labels(axes.xaxis) == ["512", "1024"]
    assert colors.get_ylabel() == "tflops (TFLOP/s)"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("n", "region")


def test_a_heat_map_with_a_hole():
    sweep = swept(measured({"n": 1}, "a"), measured({"n": 2}, "b"))
    image = drawn(sweep, kind="heatmap").axes[0].images[0]
    assert image.get_array().mask.tolist() == [[False, True], [True, False]]


def test_a_heat_map_of_one_cell():
    assert drawn(swept(measured({"n": 1})), kind="heatmap", log=True).axes[0].texts


def test_a_crowded_heat_map_says_that_it_shows_medians_alone():
    sweep = swept(*(measured({"n": 2**k}, us=2.0**k) for k in range(20)))
    figure = drawn(sweep, kind="heatmap")
    assert not figure.axes[0].texts
    assert figure.get_supxlabel() == "medians"
    assert type(figure.axes[0].images[0].norm).__name__ == "LogNorm"
    assert "$2^{18}$" in tick_labels(figure.axes[0].xaxis)


def test_long_labels_are_turned():
    names = ("elementwise multiplication", "reduction of all axes", "product of matrices")
    axes = panel(swept(*(measured({"op": name}) for name in names)), kind="bar")
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {30}
    assert {label.get_rotation() for label in panel(precision()).get_xticklabels()} == {0}


def test_names_are_shown_as_they_are():
    sweep = swept(
        measured({"a$b": "x$1"}, "_hidden $2"),
        measured({"a$b": "y$"}, "c$\n"),
        name="n$m",
        derive={"d$": lambda t: (t, "$/s")},
        normalize_against=None,
    )
    figure = drawn(sweep)
    assert legend(figure)[1] == ["\u200b_hidden \\$2", "c\\$\\n"]
    assert tick_labels(figure.axes[0].xaxis) == ["x\\$1", "y\\$"]
    drawn(sweep, kind="heatmap")
    drawn(sweep, kind="bar", x="region", row="a$b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "pie"}, "kind must be one of 'line', 'bar', 'heatmap'; got 'pie'"),
        ({"y": "speed"}, "y must be one of 'gpu_time', 'cpu_time'; got 'speed'"),
        ({"x": "m"}, "x must be one of 'n', 'region', 'device'; got 'm'"),
        ({"hue": "m"}, "hue must be one of"),
        ({"row": "m"}, "row must be one of"),
        ({"col": 3}, "col must be one of"),
        ({"log": "z"}, "log must be True, False, 'x', 'y' or None, got 'z'"),
        ({"log": 1.5}, "log must be True"),
        ({"log": "x", "kind": "bar"}, "log='x' needs lines and numbers above zero along x='n'"),
        ({"log": "x", "x": "region"}, "log='x' needs lines and numbers .* x='region', .* fp16"),
    ],
)
def test_what_cannot_be_drawn(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        precision().plot(**arguments)


def test_zero_has_no_place_on_a_logarithmic_axis():
    with pytest.raises(ArgumentError, match="log='x' needs lines and numbers above zero"):
        swept(measured({"n": 0}), measured({"n": 1})).plot(log="x")
    sweep = swept(measured({"n": 1}), derive={"d": lambda t: (-2.0, "K")})
    with pytest.raises(ArgumentError, match=r"log='y' .* but d \(K\) comes down to -2"):
        sweep.plot(log="y")
    assert panel(sweep).get_ylim()[0] < -2


def test_nothing_to_draw():
    with pytest.raises(ArgumentError, match="no measurement has a sample"):
        swept(failed({"n": 1})).plot()
    sweep = swept(measured({"n": 1}), derive={"d": lambda t: 1 / 0})
    with pytest.raises(ArgumentError, match="y='d' has no value in any measurement of f"):
        sweep.plot()


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(MissingExtraError, match=r"gpubench\[plot\]"):
        precision().plot()


def test_pyplot_is_not_touched():
    program = (
        "import sys\n"
        "from example_sweeps import precision\n"
        "assert 'matplotlib' not in sys.modules\n"
        "precision().plot(kind='heatmap')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parent)
