import html.parser
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from example_results import make_result

from gpubench.errors import ArgumentError
from gpubench.notes import Note
from gpubench.render.histogram import histogram
from gpubench.render.table import table
from gpubench.render.units import common_unit, format_time

NOTE = Note(
    "near-floor",
    "The median of GPU-0, 10.0 us, is under ten times what this method reports for an empty call.",
    "Use method='graph'.",
)
HOSTILE = "<script>alert(1)</script>&|a\nb\x1b[31m"

# --- Units ---


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (6.05e-6, "6.05 us"),
        (6.046e-6, "6.05 us"),
        (12.13e-6, "12.1 us"),
        (342.7e-6, "343 us"),
        (999.4e-6, "999 us"),
        (999.96e-6, "1.00 ms"),
        (999.96e-9, "1.00 us"),
        (0.99996, "1.00 s"),
        (1e-3, "1.00 ms"),
        (32e-9, "32.0 ns"),
        (0.58e-9, "0.580 ns"),
        (4.2e-12, "0.00420 ns"),
        (1.0, "1.00 s"),
        (59.96, "60.0 s"),
        (1234.5, "1230 s"),
        (0.0, "0 ns"),
        (-6.05e-6, "-6.05 us"),
        (np.float64(6.05e-6), "6.05 us"),
    ],
)
def test_times_have_three_digits_and_are_rounded_before_the_unit_is_chosen(seconds, text):
    assert format_time(seconds) == text


@pytest.mark.parametrize("exponent", range(-9, 2))
def test_every_time_has_three_significant_digits(exponent):
    for mantissa in np.linspace(1, 9.999, 200):
        number, unit = format_time(mantissa * 10.0**exponent).split()
        assert len(number.replace(".", "")) == 3
        assert 1 <= float(number) < 1000
        factor = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]
        assert float(number) * factor == pytest.approx(mantissa * 10.0**exponent, rel=0.00501)


def test_several_times_share_the_unit_of_the_smallest_that_is_not_zero():
    unit = common_unit(1.2e-3, 6.05e-6, 0.0)
    assert [unit.number(time) for time in (1.2e-3, 6.05e-6, 0.0)] == ["1200", "6.05", "0"]
    assert unit.text(1.2e-3) == "1200 us"
    assert common_unit(999.96e-9, 1.0).symbol == "us"
    assert common_unit().symbol == common_unit(0.0).symbol == "ns"


# --- Histogram ---


def test_histogram_of_one_sample_or_equal_ones_is_one_bar():
    for n in (1, 7):
        bins = histogram(np.full(n, 6e-6))
        assert (bins.bars, bins.low, bins.high, bins.tail) == ((n,), 6e-6, 6e-6, 0)
        assert bins.rows() == ("█", "█")
        assert bins.ends(common_unit(6e-6)) == ("6.00 us", "")


def test_heavy_outliers_are_gathered_in_the_last_bar():
    times = np.concatenate([np.arange(490) * 1e-9 + 1e-6, [1.0, 2.0, 50.0, 3600.0, 3600.0]])
    bins = histogram(times)
    assert bins.counts == (10,) * 49
    assert bins.bars == (*bins.counts, 5)
    assert (bins.low, bins.high, bins.tail) == (1e-6, times[489], 5)
    assert bins.ends(common_unit(1e-6)) == ("1.00 us", "> 1.49 us")
    assert bins.rows() == ("█" * 49 + " ", "█" * 49 + "█")


def test_few_samples_with_an_outlier():
    bins = histogram(np.array([1.0, 1.1, 1.2, 1.1, 90.0]))
    assert (bins.bars, bins.tail, bins.high) == ((1, 2, 1, 1), 1, 1.2)


def test_two_values_are_two_bars_without_a_tail():
    bins = histogram(np.array([6e-6] * 120 + [95e-6]))
    assert (bins.bars, bins.tail) == ((120, 1), 0)
    assert bins.ends(common_unit(6e-6)) == ("6.00 us", "95.0 us")
    assert histogram(np.array([2.0, 1.0])).bars == (1, 1)


@pytest.mark.parametrize("n_steps", [2, 11, 37, 49, 50, 60, 75, 99, 120])
def test_bars_are_whole_steps_of_the_clock(n_steps):
    times = 6e-6 + np.repeat(np.arange(n_steps), 10) * 32e-9
    counts = histogram(times).counts[:-1]  # the last one may be cut off
    assert set(counts) == {counts[0]}
    assert len(counts) < 50


def test_ever_so_many_different_samples():
    assert len(histogram(np.linspace(0, 1, 2_000_003)).bars) == 50
    assert len(histogram(np.random.default_rng(0).lognormal(size=10_000)).bars) == 50


def test_samples_that_differ_by_rounding_only():
    times = 1.0 + np.arange(4) * 2.0**-52
    assert sum(histogram(times).bars) == 4
    assert sum(histogram(np.array([0.0, 5e-324, 1e-320, 1e-318])).bars) == 4


def test_sixteen_levels_in_two_rows():
    times = np.repeat(np.arange(1, 18), np.arange(17)).astype(float)
    bins = histogram(np.concatenate([times, times]))
    upper, lower = bins.rows()
    assert upper == "        ▁▂▃▄▅▆▇█"
    assert lower == "▁▂▃▄▅▆▇█████████"


def test_a_bar_with_a_single_sample_is_seen_beside_a_tall_one():
    upper, lower = histogram(np.array([1.0] * 10_000 + [2.0] * 9_000 + [3.0] * 150)).rows()
    assert (upper[0], upper[2]) == ("█", " ")
    assert lower == "██▁"


# --- Panel ---


def test_summary_of_a_gpu_result():
    result = make_result(
        [*range(1, 21)],
        [[*range(8, 27), 400.0]],
        floor=1.25e-6,
        clock_step=32e-9,
        samples_per_gate=20,
        stopped_by="converged",
        notes=(NOTE, Note("odd", "Twice.")),
    )
    assert (
        result.summary()
        == """\
f: n=20 (converged), gated, 20 samples a gate, floor 1.25 us, clock step 32.0 ns

              CPU                   GPU-0
  median      10.5 us [6.00, 15.0]  17.5 us [13.0, 22.0]
  range       1.00 … 20.0 us        8.00 … 400 us
  mean ± std  10.5 ± 5.77 us        36.1 ± 83.6 us

  GPU-0       ████████████████████
              ████████████████████
              8.00 us    > 26.0 us

  ! near-floor: The median of GPU-0, 10.0 us, is under ten times what this
    method reports for an empty call. Use method='graph'.
  ! odd: Twice."""
    )


def test_summary_of_one_sample_without_gpu():
    assert (
        make_result([5.5], [], method="host").summary()
        == """\
f: n=1, host

              CPU
  median      5.50 us
  range       5.50 … 5.50 us
  mean ± std  5.50 us

  CPU         █
              █
              5.50 us"""
    )


def test_summary_has_one_unit_a_row_and_a_column_a_device():
    text = make_result([2000.0, 2001.0], [[5.0, 6.0], [7.0, 8.0]], devices=(1, 12)).summary()
    assert text.splitlines()[2:6] == [
        "              CPU              GPU-1            GPU-12",
        "  median      2000 us          5.50 us          7.50 us",
        "  range       2000 … 2000 us   5.00 … 6.00 us   7.00 … 8.00 us",
        "  mean ± std  2000 ± 0.500 us  5.50 ± 0.500 us  7.50 ± 0.500 us",
    ]


def test_summary_shows_what_a_name_and_a_note_hold_as_text():
    text = make_result(name=HOSTILE, notes=(Note("odd", HOSTILE),)).summary()
    assert text.startswith("<script>alert(1)</script>&|a\\nb\\x1b[31m: n=3, gated\n")
    assert text.endswith("\n  ! odd: <script>alert(1)</script>&|a\\nb\\x1b[31m")


# --- HTML ---


def test_html_is_well_formed_and_says_what_the_summary_says():
    result = make_result(range(1, 21), [[*range(8, 27), 400.0]], notes=(NOTE,))
    root = ET.fromstring(result._repr_html_())
    cells = [[cell.text for cell in row] for row in root.iter("tr")]
    assert cells == [
        [None, "CPU", "GPU-0"],
        ["median", "10.5 us [6.00, 15.0]", "17.5 us [13.0, 22.0]"],
        ["range", "1.00 … 20.0 us", "8.00 … 400 us"],
        ["mean ± std", "10.5 ± 5.77 us", "36.1 ± 83.6 us"],
    ]
    assert [span.text for span in root.iter("span")] == ["8.00 us", "> 26.0 us"]
    assert [item.text for item in root.iter("li")] == [str(NOTE)]
    assert next(root.iter("path")).get("d").count("M") == 20


def test_html_without_notes_has_no_list():
    assert next(ET.fromstring(make_result()._repr_html_()).iter("ul"), None) is None


def test_html_runs_nothing_that_a_name_or_a_note_holds():
    tags = []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append(tag)
            assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    text = make_result(
        name=HOSTILE, notes=(Note("odd", '<img src=x onerror="f()">'),)
    )._repr_html_()
    Reader().feed(text)
    assert "table" in tags
    assert not {"script", "img", "style", "link"} & set(tags)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;|a\\nb\\x1b[31m" in text


# --- Table ---


def test_table_has_a_row_for_each_result():
    results = [
        make_result(np.linspace(10, 14, 100), [np.linspace(6, 6.1, 100)], notes=(NOTE, NOTE)),
        make_result([2000.0], [], name="1e5", method="host"),
    ]
    assert table(results, tablefmt="plain").splitlines() == [
        "name      n  method    CPU median            CPU std"
        "    GPU-0 median          GPU-0 std    notes",
        "f       100  gated     12.0 us [11.6, 12.4]  1.17 us"
        "    6.05 us [6.04, 6.06]  0.0292 us    near-floor, near-floor",
        "1e5       1  host      2000 us",
    ]


def test_devices_that_differ_between_results_get_their_own_columns():
    results = [make_result(devices=(10,)), make_result(devices=(2,))]
    head = table(iter(results), tablefmt="tsv").splitlines()[0]
    assert [column.strip() for column in head.split("\t")] == [
        *("name", "n", "method", "CPU median", "CPU std"),
        *("GPU-2 median", "GPU-2 std", "GPU-10 median", "GPU-10 std"),
    ]


def test_empty_table_has_a_head():
    head = table([], tablefmt="plain")
    assert head.split() == ["name", "n", "method", "CPU", "median", "CPU", "std"]


@pytest.mark.parametrize("name", ["1e5", "0x10", "007", "nan", "1_000", "True", "", "None"])
@pytest.mark.parametrize("tablefmt", ["simple", "github", "plain"])
def test_names_that_look_like_numbers_stay_as_they_are(name, tablefmt):
    row = table([make_result([5.0], [], name=name, method="host")], tablefmt).splitlines()[-1]
    assert row.strip("| ").replace("|", " ").split() == [*name.split(), "1", "host", "5.00", "us"]


def test_names_do_not_break_rows_or_columns_of_markdown():
    rows = table([make_result(name="a|b\\|c\nd"), make_result()], "github").splitlines()
    assert len(rows) == 4
    unescaped = rows[2].replace("\\\\", "").replace("\\|", "")
    assert unescaped.count("|") == rows[0].count("|")
    assert rows[2].startswith("| a\\|b\\\\\\|c\\\\nd |")


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("my_func", "my_func"),
        ("__init__", r"\_\_init\_\_"),
        ("a * b * c", r"a \* b \* c"),
        ("<lambda>", r"\<lambda\>"),
        ("[x](javascript:f)", r"\[x\](javascript:f)"),
        ("`x`", r"\`x\`"),
    ],
)
@pytest.mark.parametrize("tablefmt", ["github", "pipe"])
def test_names_are_text_in_markdown(name, escaped, tablefmt):
    assert f"| {escaped} " in table([make_result(name=name)], tablefmt)


@pytest.mark.parametrize("tablefmt", ["html", "unsafehtml"])
def test_names_are_text_in_html(tablefmt):
    text = table([make_result(name=HOSTILE, method="<i>")], tablefmt)
    assert "<script" not in text
    assert "<i>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;|a\\nb\\x1b[31m" in text


def test_table_refuses_formats_that_tabulate_does_not_know():
    with pytest.raises(ArgumentError, match=r"tablefmt must be one of .*github.*, got 'markdown'"):
        table([make_result()], tablefmt="markdown")


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (make_result(), r"results must be a list.*did you mean \[result\]\?"),
        (3, "results must be a list of BenchmarkResult, got 3"),
        ("f", "results must hold nothing but BenchmarkResult, got 'f'"),
        ([make_result(), None], "results must hold nothing but BenchmarkResult, got None"),
    ],
)
def test_table_refuses_what_is_no_result(results, message):
    with pytest.raises(ArgumentError, match=message):
        table(results)


def test_text_needs_no_tabulate(monkeypatch):
    monkeypatch.setitem(sys.modules, "tabulate", None)
    assert make_result().summary().startswith("f: n=3")
