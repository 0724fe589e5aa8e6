"""A sweep as a table of pandas and as CSV."""

import csv
import sys

import numpy as np
import pytest
from example_results import make_result
from example_sweeps import failed, measured, on_host, precision, swept

from gpubench.errors import MissingExtraError
from gpubench.kernel_time import KernelTime
from gpubench.notes import Note
from gpubench.sweeps.measurement import Measurement

pd = pytest.importorskip("pandas")

COLUMNS = [
    "region",
    "n",
    "metric",
    "unit",
    "baseline",
    "n_samples",
    "mean",
    "std",
    "min",
    "q1",
    "median",
    "q3",
    "max",
    "ci95_low",
    "ci95_high",
    "relative_std",
    "stable",
    "why_unstable",
    "roofline",
    "kernels",
    "host",
    "device",
    "device_name",
    "device_uuid",
    "sm_clock_hz",
    "memory_clock_hz",
    "temperature_c",
    "entries",
    "n_throttled",
    "n_discarded",
    "method",
    "status",
    "error",
    "notes",
]


def state(clock):
    return {
        "sm_clock_hz": clock,
        "memory_clock_hz": 2e9,
        "temperature_c": 41.0,
        "throttle_reasons": [],
    }


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_row_for_each_metric():
    frame = precision(derive={"d": lambda t, n: (n, "item")}).to_dataframe()
    assert list(frame.columns) == COLUMNS
    assert list(frame["metric"][:4]) == ["gpu_time", "cpu_time", "d", "gpu_time"]
    assert list(frame["n"][:4]) == [512] * 4
    assert len(frame) == 12
    row = frame.iloc[0]
    assert (row["region"], row["unit"], row["n_samples"]) == ("fp32", "s", 7)
    assert row["median"] == pytest.approx(80e-6)
    assert row["ci95_low"] == pytest.approx(77.6e-6)
    assert row["ci95_high"] == pytest.approx(82.4e-6)
    assert row["relative_std"] == pytest.approx(0.02)
    assert (row["stable"], row["why_unstable"]) == (True, "")
    assert (row["method"], row["status"], row["error"], row["notes"]) == ("gated", "ok", "", "")


def test_the_types_of_columns_do_not_depend_on_what_is_known():
    for sweep in (precision(), swept(failed({"n": 1}))):
        types = sweep.to_dataframe().dtypes
        assert types["n"] == "int64"
        assert types["median"] == "float64"
        assert types["sm_clock_hz"] == "float64"
        assert types["n_samples"] == "Int64"
        assert types["device"] == "Int64"
        assert types["stable"] == "boolean"
        assert types["error"] == "object"


def test_nothing_measured_has_all_columns():
    assert list(swept(parameters=("n",)).to_dataframe().columns) == COLUMNS


def test_a_failure_is_a_row():
    frame = swept(measured({"n": 1}), failed({"n": 2})).to_dataframe()
    row = frame.iloc[-1]
    assert (row["n"], row["status"], row["error"]) == (2, "failed", "ValueError: too large")
    assert row["metric"] is None
    assert pd.isna(row["median"])
    assert row["n_samples"] is pd.NA


def test_what_is_missing_has_no_samples():
    frame = swept(measured({"n": 1}), derive={"d": lambda t: 1 / 0}).to_dataframe()
    row = frame[frame["metric"] == "d"].iloc[0]
    assert row["n_samples"] == 0
    assert pd.isna(row["median"])


def test_multiples_name_their_baseline():
    frame = precision(normalize_against="fp32").to_dataframe()
    row = frame[(frame["region"] == "fp16") & (frame["metric"] == "gpu_time")].iloc[0]
    assert (row["baseline"], row["unit"]) == ("fp32", "")
    assert row["median"] == pytest.approx(0.25)


def test_devices_have_rows_names_and_measured_clocks():
    environment = {
        "devices": [{"id": 3, "name": "A"}, {"id": 1, "name": "B"}],
        "device_states": [[state(1e9), state(1.5e9)], [state(1.2e9), None]],
    }
    result = make_result(
        cpu_us=(5.0, 6.0),
        gpu_us=((1.0, 1.0), (2.0, 2.0)),
        devices=(3, 1),
        environment=environment,
    )
    measurement = Measurement(config={}, region="f", result=result)
    frame = swept(measurement, derive={"d": lambda t: t}).to_dataframe()
    rows = frame[["metric", "device", "device_name", "sm_clock_hz", "temperature_c"]]
    assert rows.astype(object).where(rows.notna(), None).to_numpy().tolist() == [
        ["gpu_time", 3, "A", 1.5e9, 41.0],
        ["gpu_time", 1, "B", 1.2e9, 41.0],
        ["cpu_time", None, None, None, None],
        ["d", 1, "B", 1.2e9, 41.0],
    ]


def test_collectors_counters_and_kernels_are_columns():
    sweep = swept(
        measured(
            {"n": 1},
            collected={"power": np.array([300.0, np.nan, 310.0]), "heat": np.array([np.nan])},
            labels={"driver": "580"},
            counters={"dram__bytes_read.sum": 1e6},
            kernels=(KernelTime("sqrt", 1.0, 1e-6), KernelTime("f<a, b>", 2.0, 1e-6)),
        ),
        measured({"n": 2}),
    )
    first, second = (sweep.to_dataframe().iloc[index] for index in (0, 2))
    assert first["power_mean"] == 305
    assert first["power_std"] == 5
    assert (first["power_min"], first["power_max"]) == (300, 310)
    assert np.isnan(first["heat_mean"])
    assert first["driver"] == "580"
    assert first["dram__bytes_read.sum"] == 1e6
    assert first["kernels"] == "sqrt; f<a, b>"
    assert np.isnan(second["power_mean"])
    assert second["driver"] is None
    assert second["kernels"] == ""


def test_why_samples_are_not_steady():
    notes = (
        Note("near-floor", "It is near the floor."),
        Note("unstable", "It spreads."),
        Note("drifting", "It drifts."),
    )
    frame = swept(
        measured({"n": 1}, notes=notes, throttled=np.array([True] + [False] * 6), n_discarded=2),
        measured({"n": 2}, n=5),
        measured({"n": 3}, notes=notes[:1]),
    ).to_dataframe()
    unstable, few, steady = (frame.iloc[index] for index in (0, 2, 4))
    assert not unstable["stable"]
    assert unstable["why_unstable"] == (
        "It spreads. It drifts. 1 of 7 samples were taken while the GPU was slowed down."
    )
    assert (unstable["n_throttled"], unstable["n_discarded"]) == (1, 2)
    assert unstable["notes"] == "near-floor, unstable, drifting"
    assert few["stable"] is pd.NA
    assert few["why_unstable"] == "Too few samples to tell."
    assert steady["stable"]
    assert frame.iloc[1]["stable"] is pd.NA  # the notes look at the GPU


def test_parameters_keep_their_columns_whatever_their_names():
    config = {"region": "x", "median": 3, "n": 1, "value": 2}
    sweep = swept(measured(config, "g", collected={"n": np.ones(2), "error": np.ones(2)}))
    row = sweep.to_dataframe().iloc[0]
    assert (row["region"], row["config_region"], row["config_median"]) == ("g", "x", 3)
    assert (row["n"], row["n_samples"], row["config_value"]) == (1, 7, 2)
    assert row["collected_n_mean"] == row["collected_error_mean"] == 1


def test_values_of_configurations_are_plain():
    frame = swept(
        measured({"dtype": np.float32, "shape": (2, 3), "x": np.zeros((4, 5)), "k": np.int8(7)}),
        measured({"dtype": np.dtype("float64"), "shape": None, "x": max, "k": float("inf")}),
    ).to_dataframe()
    assert list(frame["dtype"][::2]) == ["float32", "float64"]
    assert list(frame["x"][::2]) == ["float64 (4, 5)", "max"]
    assert frame["shape"][0] == "(2, 3)"
    assert list(frame["k"][::2]) == [7, "inf"]


def test_a_parameter_that_some_configurations_lack():
    frame = swept(measured({"n": 1, "m": 2}), measured({"n": 3})).to_dataframe()
    assert pd.isna(frame["m"][2])


def test_without_pandas_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"gpubench\[dataframe\]"):
        precision().to_dataframe()


def test_csv_has_the_rows_of_the_table_without_pandas(monkeypatch, tmp_path):
    sweep = swept(measured({"n": 1}), failed({"n": 2}, "a \udcff, b"))
    frame = sweep.to_dataframe()
    monkeypatch.setitem(sys.modules, "pandas", None)
    path = tmp_path / "sweep.csv"
    path.write_text("old")
    sweep.to_csv(path)
    rows = read(path)
    assert list(rows[0]) == list(frame.columns)
    assert len(rows) == len(frame) == 3
    assert float(rows[0]["median"]) == frame["median"][0]
    assert (rows[0]["stable"], rows[0]["n_samples"]) == ("True", "7")
    assert rows[2]["median"] == rows[2]["metric"] == ""
    assert rows[2]["error"] == r"a \udcff, b"
    assert list(tmp_path.iterdir()) == [path]


def test_csv_with_a_row_for_each_sample(tmp_path):
    path = tmp_path / "samples.csv"
    sweep = swept(
        measured({"n": 1}, n=3, throttled=np.array([False, True, False])),
        on_host({"n": 2}, n=2),
        failed({"n": 3}),
        derive={"d": lambda t, n: 1 / 0 if n == 2 else 2.0},
    )
    sweep.to_csv(str(path), samples=True)
    rows = read(path)
    assert list(rows[0]) == [
        "region",
        "n",
        "metric",
        "unit",
        "baseline",
        "device",
        "sample",
        "value",
        "throttled",
    ]
    gpu = [row for row in rows if row["metric"] == "gpu_time"]
    assert [float(row["value"]) for row in gpu] == pytest.approx([9.9e-6, 1e-5, 1.01e-5])
    assert [row["sample"] for row in gpu] == ["0", "1", "2"]
    assert [row["throttled"] for row in gpu] == ["False", "True", "False"]
    assert [row["value"] for row in rows if row["metric"] == "d"] == ["2.0"] * 3 + [""] * 2
    assert len(rows) == 3 * 3 + 2 * 2
    assert {row["throttled"] for row in rows if row["n"] == "2"} == {""}


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no[/\\]sweep\.csv"):
        precision().to_csv(tmp_path / "no" / "sweep.csv")
