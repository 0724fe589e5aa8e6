"""The table of all records: its rows, columns and types, and what doesn't apply."""

import sys
from dataclasses import replace

import pandas as pd
import pytest
from example_recordings import MAIN, Recorded

from gpubench.activity.frame import to_dataframe
from gpubench.errors import MissingExtraError

TYPES = {
    "kind": "category",
    "name": "category",
    "domain": "category",
    "start_time_s": "float64",
    "duration_s": "float64",
    "thread": "UInt64",
    "thread_name": "category",
    "device": "Int64",
    "device_name": "category",
    "stream": "Int64",
    "is_null_stream": "boolean",
    "bytes": "Int64",
    "source_memory": "category",
    "target_memory": "category",
    "is_async": "boolean",
    "grid_x": "Int64",
    "grid_y": "Int64",
    "grid_z": "Int64",
    "block_x": "Int64",
    "block_y": "Int64",
    "block_z": "Int64",
    "registers": "Int64",
    "shared_bytes": "Int64",
    "correlation_id": "Int64",
    "graph_id": "Int64",
    "call": "category",
    "call_start_time_s": "float64",
    "status": "Int64",
}

COMMON = {"kind", "name", "start_time_s", "duration_s"}
OF_DEVICE = {"device", "device_name", "stream", "is_null_stream"}
LAUNCHED = {"thread", "thread_name", "correlation_id", "call", "call_start_time_s"}
OF_KERNEL = {f"{field}_{axis}" for field in ("grid", "block") for axis in "xyz"} | {
    "registers",
    "shared_bytes",
}


def table(recorded, duration=100, **fields):
    return to_dataframe(recorded.recording(duration, **fields))


def row(recorded, kind, **fields):
    """What applies to the only record of a kind, as a dict."""
    frame = table(recorded, **fields)
    (found,) = frame[frame["kind"] == kind].to_dict("records")
    return {column: value for column, value in found.items() if not pd.isna(value)}


class TestRows:
    def test_of_a_kernel(self):
        recorded = Recorded()
        recorded.launch(
            "sqrt", 1, 5, 2.5, call=3, stream=13, is_null_stream=True, grid=(4, 3, 2),
            block=(128, 2, 1), registers=40, shared_bytes=1024, graph_id=9,
        )  # fmt: skip
        assert row(recorded, "kernel") == {
            "kind": "kernel",
            "name": "sqrt",
            "start_time_s": 5e-6,
            "duration_s": 2.5e-6,
            "thread": MAIN,
            "thread_name": "MainThread",
            "device": 0,
            "device_name": "a GPU",
            "stream": 13,
            "is_null_stream": True,
            "grid_x": 4,
            "grid_y": 3,
            "grid_z": 2,
            "block_x": 128,
            "block_y": 2,
            "block_z": 1,
            "registers": 40,
            "shared_bytes": 1024,
            "correlation_id": 1,
            "graph_id": 9,
            "call": "cudaLaunchKernel",
            "call_start_time_s": 1e-6,
        }

    def test_of_a_copy(self):
        recorded = Recorded()
        recorded.copy(0, 2, 8, 4096, is_async=False, source="pageable")
        found = row(recorded, "memcpy")
        assert found.keys() == COMMON | OF_DEVICE | LAUNCHED | {
            "bytes", "source_memory", "target_memory", "is_async"
        }  # fmt: skip
        assert found["bytes"] == 4096
        assert (found["source_memory"], found["target_memory"]) == ("pageable", "device")
        assert found["is_async"] is False
        assert found["call"] == "cudaMemcpy"

    def test_of_a_set(self):
        recorded = Recorded()
        recorded.activity("memset", "memset", 3, 1, target="managed", bytes=7, is_async=True)
        found = row(recorded, "memset")
        assert found.keys() == COMMON | OF_DEVICE | {"bytes", "target_memory", "is_async"}
        assert (found["bytes"], found["target_memory"], found["is_async"]) == (7, "managed", True)

    @pytest.mark.parametrize("kind", ["runtime", "driver"])
    def test_of_a_call(self, kind):
        recorded = Recorded()
        recorded.call("cuInit", 4, 2, kind=kind, correlation_id=3, status=700)
        assert row(recorded, kind) == {
            "kind": kind,
            "name": "cuInit",
            "start_time_s": 4e-6,
            "duration_s": 2e-6,
            "thread": MAIN,
            "thread_name": "MainThread",
            "correlation_id": 3,
            "status": 700,
        }

    @pytest.mark.parametrize(("kind", "duration"), [("range", 30), ("mark", 0)])
    def test_of_a_range_and_a_mark(self, kind, duration):
        recorded = Recorded()
        recorded.range("step", 10, duration, domain="training")
        assert row(recorded, kind) == {
            "kind": kind,
            "name": "step",
            "domain": "training",
            "start_time_s": 10e-6,
            "duration_s": duration / 1e6,
            "thread": MAIN,
            "thread_name": "MainThread",
        }

    def test_of_a_compilation(self):
        recorded = Recorded()
        recorded.compilation("cupy_sum", 10, 0)
        found = row(recorded, "compilation")
        assert found.keys() == COMMON | {"domain", "thread", "thread_name"}
        assert found["domain"] == "nvrtc"

    def test_without_the_launching_call(self):
        recorded = Recorded()
        recorded.activity("kernel", "sqrt", 5, 2, correlation_id=4)
        found = row(recorded, "kernel")
        assert found.keys() == COMMON | OF_DEVICE | OF_KERNEL | {"correlation_id"}

    def test_launched_by_one_of_several_threads(self):
        recorded = Recorded()
        recorded.launch("a", 0, 5, 2)
        recorded.launch("b", 1, 8, 2, thread=2**64 - 1)
        frame = table(recorded).set_index("name")
        assert frame.loc["a", "thread"] == MAIN
        assert frame.loc["b", "thread"] == 2**64 - 1
        assert pd.isna(frame.loc["b", "thread_name"])

    def test_of_an_unknown_device_and_memory(self):
        recorded = Recorded()
        recorded.copy(0, 2, 8, 4096, source="", device=5)
        found = row(recorded, "memcpy")
        assert found["device"] == 5
        assert not {"device_name", "source_memory"} & found.keys()

    def test_before_the_beginning(self):
        recorded = Recorded()
        recorded.range("outer", -5, 10)
        assert table(recorded)["start_time_s"].tolist() == [-5e-6]


class TestTable:
    def test_columns_and_types(self):
        recorded = Recorded()
        recorded.launch("sqrt", 0, 5, 2)
        frame = table(recorded)
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == TYPES

    def test_of_no_records_has_the_same(self):
        frame = table(Recorded(), 0, devices={}, threads={})
        assert len(frame) == 0
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == TYPES

    def test_by_start_and_the_longer_first(self):
        recorded = Recorded()
        recorded.compilation("fourth", 7, 1)
        recorded.range("first", 0, 90)
        recorded.call("second", 0, 2)
        recorded.activity("kernel", "third", 3, 2)
        recorded.range("fifth", 8, 0)
        frame = table(recorded)
        assert frame["name"].tolist() == ["first", "second", "third", "fourth", "fifth"]
        assert frame.index.tolist() == [0, 1, 2, 3, 4]

    def test_any_name_comes_through(self):
        names = ["", "a\nb", "<b>", "größer \U0001f600", "\udc80", "x" * 5000]
        recorded = Recorded()
        for start, name in enumerate(names):
            recorded.range(name, start, 1)
        assert table(recorded)["name"].tolist() == names

    def test_categories_are_those_that_occur(self):
        recorded = Recorded()
        recorded.call("cuInit", 0, 1)
        recorded.range("a", 2, 1)
        frame = table(recorded)
        assert set(frame["name"].cat.categories) == {"cuInit", "a"}
        assert set(frame["domain"].cat.categories) == {"gpubench"}
        assert list(frame["call"].cat.categories) == []

    def test_a_name_that_two_indices_have_is_one_category(self):
        recorded = Recorded()
        recorded.range("a", 0, 1)
        recorded.range("b", 1, 1)
        recording = replace(recorded.recording(10), names=("gpubench", "same", "same"))
        assert to_dataframe(recording)["name"].cat.categories.tolist() == ["same"]

    def test_figures_by_group(self):
        recorded = Recorded()
        for i in range(10):
            recorded.launch("sqrt" if i % 2 else "sum", 10 * i, 10 * i + 5, 1 + i % 2)
        frame = table(recorded)
        kernels = frame[frame["kind"] == "kernel"]
        totals = kernels.groupby("name", observed=True)["duration_s"].sum()
        assert totals.to_dict() == pytest.approx({"sqrt": 10e-6, "sum": 5e-6})
        assert kernels["grid_x"].sum() == 0
        assert frame["bytes"].isna().all()

    def test_without_pandas(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingExtraError, match=r'pip install "gpubench\[dataframe\]"'):
            table(Recorded())
