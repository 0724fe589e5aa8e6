"""What a sweep's result is, prints and exports."""

import copy
import dataclasses
import json
import re

import numpy as np
import pytest
from example_results import make_result
from example_sweeps import failed, measured, metric, on_host, precision, swept

from gpubench.errors import ArgumentError
from gpubench.notes import Note
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.outcome import SweepResult
from gpubench.sweeps.plain import measurement_from_dict
from gpubench.sweeps.roofline import Peaks

TFLOPS = {"tflops": lambda t, n: (2 * n**3 / t / 1e12, "TFLOP/s")}


def strict(text):
    """JSON without NaN and infinities."""

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_it_prints_a_table():
    assert (
        str(precision(derive=TFLOPS))
        == """\
precision: 4 measurements

   n  region    GPU time              rel. std    tflops (TFLOP/s)
----  --------  --------------------  ----------  ------------------
 512  fp32      80.0 us [77.6, 82.4]  2.0%        3.36 [3.26, 3.46]
 512  fp16      20.0 us [19.4, 20.6]  2.0%        13.4 [13.0, 13.8]
1024  fp32      640 us [621, 659]     2.0%        3.36 [3.26, 3.46]
1024  fp16      80.0 us [77.6, 82.4]  2.0%        26.8 [26.1, 27.7]"""
    )


def test_it_prints_multiples_and_what_has_none():
    sweep = swept(
        measured({"n": 1}, "fp32", 80.0),
        measured({"n": 1}, "fp16", 20.0),
        measured({"n": 2}, "fp16", 30.0),
        derive={"rate": lambda t, n: (n / t, "1/s")},
        normalize_against="fp32",
    )
    assert (
        str(sweep)
        == """\
f: 3 measurements

  n  region    GPU time / fp32       rel. std    rate / fp32
---  --------  --------------------  ----------  ------------------------
  1  fp32      1.00 [1.00, 1.00]     2.0%        1.00 [1.00, 1.00]
  1  fp16      0.250 [0.240, 0.261]  2.0%        4.00 [3.83, 4.17]
  2  fp16      30.0 us [29.1, 30.9]  2.0%        66667 [64725, 68729] 1/s

  ! no-baseline: There is no baseline fp32 for 1 of 3 measurements, which are shown as they were
    measured."""
    )


def test_it_prints_failures_notes_and_what_is_missing():
    unstable = Note(
        "unstable", "The middle half spreads over 12% of the median.", "Warm up longer."
    )
    sweep = swept(
        measured({"n": 1}, notes=(unstable,), throttled=np.array([True] * 2 + [False] * 5)),
        measured({"n": 2}, notes=(unstable,)),
        failed({"n": 3}),
        failed({"n": 4}),
        dataclasses.replace(measured({"n": 5}, n=3), status="interrupted"),
        derive={"d": lambda t, n: 1 / (n - 2)},
        notes=(Note("interrupted", "Ctrl-C ended the sweep."),),
    )
    assert (
        str(sweep)
        == """\
f: 5 measurements, 2 failed, 1 interrupted

  n  GPU time              rel. std    d                     throttled    status       notes
---  --------------------  ----------  --------------------  -----------  -----------  --------
  1  10.0 us [9.70, 10.3]  2.0%        -1.00 [-1.00, -1.00]  2 of 7                    unstable
  2  10.0 us [9.70, 10.3]  2.0%        missing                                         unstable
  3                                                                       failed
  4                                                                       failed
  5  10.0 us               0.8%        0.333                              interrupted

  ! interrupted: Ctrl-C ended the sweep.
  ! metric-missing: d lacks values in 1 of 3 measurements: ZeroDivisionError: division by zero.
  ! failed (2 measurements): ValueError: too large
  ! unstable (2 measurements): The middle half spreads over 12% of the median. Warm up longer."""
    )


def test_it_prints_the_roofline_and_what_limits():
    sweep = swept(
        measured({}, labels={"limited_by": "memory", "driver": "580"}),
        flops=2e6,
        bytes=7.8e6,
        peaks=Peaks(10e12, 1e12),
    )
    head, _, cells = str(sweep).splitlines()[2:]
    assert re.split(r"\s{2,}", head) == [
        "GPU time",
        "rel. std",
        "flop_rate (TFLOP/s)",
        "bandwidth (GB/s)",
        "roofline",
        "limited by",
    ]
    assert re.split(r"\s{2,}", cells) == [
        "10.0 us [9.70, 10.3]",
        "2.0%",
        "0.200 [0.194, 0.206]",
        "780 [757, 804]",
        "memory-bound: 78 % of 1 TB/s",
        "memory",
    ]


def test_it_prints_the_busiest_gpu():
    result = make_result(cpu_us=(5.0,), gpu_us=((8.0,), (9.0,)))
    assert "9.00 us" in str(swept(Measurement(config={"n": 1}, region="f", result=result)))


def test_it_prints_the_host_beside_the_gpu_where_there_is_none():
    lines = str(swept(measured({"on": "gpu"}), on_host({"on": "cpu"}, us=40.0))).splitlines()
    assert lines[2:] == [
        "on    GPU time              CPU time              rel. std",
        "----  --------------------  --------------------  ----------",
        "gpu   10.0 us [9.70, 10.3]                        2.0%",
        "cpu                         40.0 us [38.8, 41.2]  2.0%",
    ]


def test_texts_stay_in_their_lines():
    text = str(swept(measured({"name": "a\nb"}, "c\td"), failed({"name": "e"}, "f\ng")))
    assert r"a\nb" in text
    assert r"c\td" in text
    assert r"f\ng" in text


def test_values_of_all_kinds_are_readable():
    config = {"dtype": np.float32, "shape": (2, 3), "x": np.zeros((4, 5)), "m": np.int8(7)}
    cells = re.split(r"\s{2,}", str(swept(measured(config))).splitlines()[4])
    assert cells[:4] == ["float32", "(2, 3)", "float64 (4, 5)", "7"]


def test_a_parameter_that_some_configurations_lack():
    lines = str(swept(measured({"n": 1, "m": "x"}), measured({"n": 2}))).splitlines()
    assert lines[4].split()[:3] == ["1", "x", "10.0"]
    assert lines[5].split()[:2] == ["2", "10.0"]


def test_units_that_differ_stand_in_the_cells():
    units = iter(["B/s"] * 7 + ["KB/s"] * 7)
    sweep = swept(
        measured({"n": 1}), measured({"n": 2}), derive={"d": lambda t: (2.0, next(units))}
    )
    assert "2.00 [2.00, 2.00] B/s" in str(sweep)
    assert "2.00 [2.00, 2.00] KB/s" in str(sweep)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.99999, "1.00"),
        (-3.14159, "-3.14"),
        (123.4, "123"),
        (123456.7, "123457"),
        (0.00123, "0.00123"),
        (0.000123, "1.23e-04"),
        (4.5e9, "4.50e+09"),
    ],
)
def test_numbers_have_three_digits(value, shown):
    line = str(swept(measured({"n": 1}, n=1), derive={"d": lambda t: value})).splitlines()[4]
    assert line.split()[-1] == shown


def test_nothing_measured_prints_too():
    assert str(swept()) == "f: 0 measurements\n\n"
    assert str(swept(failed({"n": 1}))).splitlines()[0] == "f: 1 measurement, 1 failed"


def test_the_short_form():
    assert repr(precision()) == "<SweepResult precision: 4 measurements>"


def test_markdown_is_escaped():
    text = swept(measured({"a|b": "x*y"})).to_markdown()
    assert text.splitlines()[0].startswith(r"| a\|b")
    assert r"x\*y" in text


def test_html_is_escaped():
    html = swept(measured({"n": "<b>"}, "<i>"), failed({"n": 2}, "<u>"))._repr_html_()
    assert html.startswith("<div><p>f: 2 measurements, 1 failed</p><table>")
    assert "&lt;b&gt;" in html
    assert "<li>failed (1 measurement): &lt;u&gt;</li>" in html
    assert "<i>" not in html


def test_another_view_of_the_same_measurements():
    sweep = precision(derive={"d": lambda t: 1 / 0})
    assert sweep.remarks
    better = dataclasses.replace(sweep, derive=TFLOPS)
    assert better.remarks == ()
    assert metric(better.rows[0], "tflops").statistics.median == pytest.approx(3.355, abs=1e-3)


def test_it_is_frozen_and_can_be_copied():
    sweep = precision(derive=TFLOPS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        sweep.name = "other"
    assert str(copy.deepcopy(sweep)) == str(sweep)


@pytest.mark.parametrize("name", [None, 3])
def test_its_name_is_a_text(name):
    with pytest.raises(ArgumentError, match="name must be a string"):
        SweepResult(name=name, parameters=(), measurements=())


def test_json_is_strict_and_whole():
    sweep = precision(
        derive={**TFLOPS, "bad": lambda t: float("nan")},
        normalize_against={"n": 512},
        peaks=Peaks(1e12),
        notes=(Note("c", "m"),),
        environment={"host": "h"},
    )
    values = strict(sweep.to_json())
    assert values == sweep.to_dict()
    assert values["name"] == "precision"
    assert values["parameters"] == ["n"]
    assert values["derive"] == ["tflops", "bad"]
    assert values["normalize_against"] == {"n": 512}
    assert values["peaks"] == {
        "flops_per_second": 1e12,
        "bytes_per_second": None,
        "source": "given",
    }
    assert values["environment"] == {"host": "h"}
    assert [note["code"] for note in values["notes"]] == ["c", "metric-missing"]
    first = values["measurements"][0]
    assert first["config"] == {"n": 512}
    metrics = {each["name"]: each for each in first["metrics"]}
    assert metrics["gpu_time"]["baseline"] == "n=512"
    assert metrics["gpu_time"]["statistics"]["ci95_low"] == 1
    assert metrics["bad"]["statistics"] is None
    assert metrics["bad"]["problem"] == "the value of bad must be a number, got NaN"


def test_json_of_what_json_cannot_hold():
    sweep = swept(
        measured(
            {"dtype": np.float32, "x": float("nan")},
            collected={"power": np.array([1.0, np.nan, np.inf])},
            counters={"bytes": float("inf")},
        ),
        normalize_against={"dtype": np.float32},
        peaks={"f": Peaks()},
    )
    values = strict(sweep.to_json())
    assert values["normalize_against"] == {"dtype": "float32"}
    assert values["peaks"]["f"]["source"] == "given"


def test_measurements_come_back_from_json():
    values = strict(precision().to_json())
    again = tuple(map(measurement_from_dict, values["measurements"]))
    assert str(dataclasses.replace(precision(), measurements=again)) == str(precision())
