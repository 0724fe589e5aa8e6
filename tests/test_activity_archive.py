"""Recordings come back from files as they were, and other files are refused."""

import json
import pickle
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest
from example_recordings import MAIN, Recorded

from gpubench.activity.archive import FORMAT, load, save
from gpubench.activity.recording import Recording
from gpubench.devices.records import ACTIVITY, CALL, RANGE, no_records
from gpubench.errors import ArgumentError

TABLES = ("activities", "calls", "ranges", "compilations")

ODD_NAMES = (
    "",
    " ",
    "a\nb\tc\0d",
    "quote \" and \\ and '",
    "<script>&amp;</script>",
    "void at::native::kernel<(lambda at a.cu:1)>(float *)" * 500,
    "größer 大 \U0001f600",
    "\udc80 lone \ud800",
    "{}",
    "header",
)


def several():
    recorded = Recorded()
    for name in ODD_NAMES:
        recorded.launch(name, 1, 3.5, 2.25, grid=(3, 2, 1), block=(256, 1, 1), registers=40)
    recorded.copy(20, 30, 5, 2**40, source="pageable", is_async=False, device=3, stream=2**32 - 1)
    recorded.activity("memset", "memset", 50, 1, graph_id=2**32 - 1, is_null_stream=True)
    recorded.call("cuInit", 2, 1, kind="driver", thread=2**64 - 1, status=-1)
    recorded.range("outer", -1, 30, domain="<d>")
    recorded.range("mark", 4, 0)
    recorded.compilation("k", 5, 6)
    return recorded.recording(
        100,
        devices={3: "a \U0001f600", 0: "b"},
        threads={MAIN: "MainThread", 2**63: "\n"},
        n_dropped=7,
        launch_time=2e-6,
        recorded_launch_time=7.5e-6,
        delivery_time=0.1,
    )


def nothing():
    tables = {"activities": ACTIVITY, "calls": CALL, "ranges": RANGE, "compilations": RANGE}
    empty = {table: no_records(dtype) for table, dtype in tables.items()}
    return Recording(begin=0, end=0, kinds=(), names=(), **empty)


def assert_same(one, other):
    for field in fields(Recording):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if field.name in TABLES:
            assert left.dtype == right.dtype
            assert np.array_equal(left, right)
        else:
            assert left == right
            assert type(left) is type(right)


def rewritten(path, change):
    """Have `change` alter the file's arrays, by name, and its header."""
    with np.load(path) as arrays:
        columns = dict(arrays)
    header = json.loads(columns.pop("header").tobytes())
    change(columns, header)
    columns["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **columns)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a recording"
    save(several(), path)
    return path


class TestRoundTrip:
    @pytest.mark.parametrize("make", [several, nothing, lambda: Recorded().recording(5)])
    def test_everything_comes_back(self, make, tmp_path):
        save(make(), tmp_path / "file")
        assert_same(load(tmp_path / "file"), make())

    def test_one_table_alone_comes_back(self, tmp_path):
        for table in TABLES:
            empty = {t: getattr(nothing(), t) for t in TABLES if t != table}
            alone = replace(several(), **empty)
            save(alone, tmp_path / "file")
            assert_same(load(tmp_path / "file"), alone)

    def test_random_numbers_come_back(self, tmp_path):
        rng = np.random.default_rng(0)
        rows = np.frombuffer(rng.bytes(200 * ACTIVITY.itemsize), ACTIVITY).copy()
        rows["kind"], rows["name"] = 1, 0
        rows["source_memory"] = rows["target_memory"] = 0
        rows["is_async"] = rows["is_null_stream"] = True
        rows["start"] = np.sort(rows["start"] // 4)
        rows["end"] = rows["start"] + rng.integers(0, 2**60, 200)
        recording = replace(nothing(), names=("x",), activities=rows)
        save(recording, tmp_path / "file")
        assert_same(load(tmp_path / "file"), recording)

    def test_records_far_apart_come_back(self, tmp_path):
        recorded = Recorded()
        for start in (-3, 10, 10 + 2**32, 10 + 2**45):
            recorded.launch("k", start, start + 1, 2**34)
        save(recorded.recording(100), tmp_path / "file")
        assert_same(load(tmp_path / "file"), recorded.recording(100))

    def test_numbers_of_numpy_are_written_as_numbers(self, tmp_path):
        made = replace(
            several(),
            begin=np.int64(several().begin),
            n_dropped=np.uint64(7),
            delivery_time=np.float64(0.1),
            devices={np.int32(3): "a \U0001f600", np.int32(0): "b"},
        )
        save(made, tmp_path / "file")
        assert_same(load(tmp_path / "file"), several())

    def test_the_same_recording_makes_the_same_bytes(self, tmp_path, monkeypatch):
        save(several(), tmp_path / "one.npz")
        monkeypatch.setattr("time.time", lambda: 2e9)
        save(several(), str(tmp_path / "other"))
        assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other").read_bytes()

    def test_a_regular_loop_takes_a_few_bytes_a_record(self, tmp_path):
        recorded = Recorded()
        for i in range(2000):
            recorded.launch("sqrt", 10 * i, 10 * i + 8, 2)
        save(recorded.recording(20000), tmp_path / "file")
        assert (tmp_path / "file").stat().st_size < 4 * 4000

    def test_it_takes_the_place_of_an_older_file(self, path):
        save(nothing(), path)
        assert_same(load(path), nothing())
        assert list(path.parent.iterdir()) == [path]


class TestVersions:
    def test_a_file_without_later_columns_has_zeros_in_them(self, path):
        def change(columns, header):
            for later in ("activities.graph_id", "activities.grid", "calls.status"):
                del columns[later]

        rewritten(path, change)
        made, expected = load(path), several()
        expected.activities["graph_id"] = 0
        expected.activities["grid"] = 0
        expected.calls["status"] = 0
        assert_same(made, expected)

    def test_a_file_without_later_fields_has_their_defaults(self, path):
        def change(columns, header):
            for later in ("delivery_time", "launch_time", "threads"):
                del header["recording"][later]

        rewritten(path, change)
        assert_same(load(path), replace(several(), delivery_time=0.0, launch_time=None, threads={}))

    def test_a_file_without_a_later_table_has_no_rows_in_it(self, path):
        def change(columns, header):
            for column in [c for c in columns if c.startswith("compilations.")]:
                del columns[column]

        rewritten(path, change)
        assert_same(load(path), replace(several(), compilations=no_records(RANGE)))

    def test_what_later_releases_add_is_left_out(self, path):
        def change(columns, header):
            columns["activities.colour"] = np.zeros(3)
            columns["clocks.start"] = np.zeros(3)
            header["mood"] = header["recording"]["mood"] = "good"

        rewritten(path, change)
        assert_same(load(path), several())

    def test_another_format_is_refused(self, path):
        def change(columns, header):
            header["format"] = FORMAT + 1
            header["recording"] = "arranged in another way"

        rewritten(path, change)
        with pytest.raises(ArgumentError, match=rf"{path}' has format 2: install a newer gpubench"):
            load(path)


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('the pickle was loaded')",)


def foreign(kind, path):
    if kind == "text":
        path.write_text("hello")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "npy":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Bomb()))
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header", "hello")
    else:
        header = {
            "other arrays": None,
            "objects": np.array([Bomb()], object),
            "header of something else": b"\x93NUMPY",
            "other JSON": b'{"content": "a cake"}',
            "list": b"[]",
            "no format": b'{"content": "gpubench recording"}',
            "no fields": b'{"content": "gpubench recording", "format": 1, "recording": {}}',
            "no mapping": b'{"content": "gpubench recording", "format": 1, "recording": []}',
        }[kind]
        if isinstance(header, bytes):
            header = np.frombuffer(header, np.uint8)
        with path.open("wb") as file:
            np.savez(file, **{"x": np.zeros(3)} if header is None else {"header": header})


class TestRefusals:
    @pytest.mark.parametrize(
        "kind",
        [
            "text",
            "empty",
            "npy",
            "pickle",
            "zip",
            "other arrays",
            "objects",
            "header of something else",
            "other JSON",
            "list",
            "no format",
            "no fields",
            "no mapping",
        ],
    )
    def test_a_foreign_file(self, kind, tmp_path):
        foreign(kind, tmp_path / "file")
        with pytest.raises(ArgumentError, match=f"whole file .*{tmp_path}/file' isn't one: "):
            load(tmp_path / "file")

    def test_no_pickle_hides_in_a_column(self, path):
        def change(columns, header):
            columns["activities.bytes"] = np.array([Bomb()] * len(several().activities), object)

        rewritten(path, change)
        with pytest.raises(ArgumentError, match="isn't one"):
            load(path)

    def test_a_file_cut_short(self, path):
        whole = path.read_bytes()
        for length in np.linspace(0, len(whole) - 1, 40).astype(int):
            path.write_bytes(whole[:length])
            with pytest.raises(ArgumentError, match=f"{path}' isn't one"):
                load(path)

    def test_a_changed_byte_is_noticed_or_does_nothing(self, path):
        whole = path.read_bytes()
        rng = np.random.default_rng(0)
        refused = 0
        for place in rng.integers(0, len(whole), 300):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
            try:
                load(path)
            except ArgumentError:
                refused += 1
        assert refused > 150

    @pytest.mark.parametrize(
        ("column", "values"),
        [
            ("activities.name", [99]),
            ("activities.name", [-1]),
            ("activities.kind", [3]),
            ("activities.kind", [256]),
            ("activities.source_memory", [8]),
            ("activities.device", [2**31]),
            ("activities.device", [0.5]),
            ("activities.device", ["0"]),
            ("activities.device", [[0]]),
            ("activities.grid", [0]),
            ("calls.kind", [2]),
            ("ranges.domain", [99]),
        ],
    )
    def test_a_column_that_holds_what_it_cannot(self, column, values, path):
        def change(columns, header):
            columns[column] = np.repeat(np.array(values), len(columns[column]), axis=0)

        rewritten(path, change)
        with pytest.raises(ArgumentError, match="isn't one"):
            load(path)

    def test_a_column_of_another_length(self, path):
        def change(columns, header):
            columns["activities.device"] = columns["activities.device"][:-1]

        rewritten(path, change)
        with pytest.raises(ArgumentError, match=r"activities\.device has the shape \(11,\)"):
            load(path)

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nothing")

    def test_no_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            save(nothing(), tmp_path / "no folder" / "file")
