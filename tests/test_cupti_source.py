"""CUPTI as a source of records, on a fake of it: what is read, and what is refused."""

import ctypes
import sys
import threading
from types import SimpleNamespace

import pytest
from fake_cupti import LAYOUTS, CuptiError, FakeCupti

from gpubench.devices import cupti_source
from gpubench.devices.cupti_source import CuptiSource
from gpubench.devices.records import ACTIVITY_KINDS, CALL_KINDS
from gpubench.errors import UnsupportedError

EVERYTHING = (*ACTIVITY_KINDS, *CALL_KINDS, "range", "link")


@pytest.fixture(params=[0, 16], ids=["same release", "newer CUPTI"])
def cupti(request, monkeypatch):
    fake = FakeCupti(surplus_bytes=request.param)
    fake.install(monkeypatch)
    monkeypatch.setattr(cupti_source, "used_contexts", Contexts)
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    return fake


class Contexts:
    """Context 3 of a device."""

    def __enter__(self):
        return [3]

    def __exit__(self, *_):
        pass


@pytest.fixture
def source(cupti):
    source = CuptiSource()
    source.enable(EVERYTHING)
    yield source
    source.close()
    assert cupti.subscriber is None
    assert not cupti.enabled


def kernel(cupti, name="k", start=1, end=2, **fields):
    cupti.emit(10, name=name, start=start, end=end, **fields)


class TestRecords:
    def test_a_kernel(self, cupti, source):
        kernel(
            cupti, "sqrt", 100, 150, device_id=1, context_id=3, stream_id=7, correlation_id=9,
            grid_x=4, grid_y=2, grid_z=1, block_x=128, block_y=1, block_z=1,
            registers_per_thread=32, static_shared_memory=16, dynamic_shared_memory=8, graph_id=5,
        )  # fmt: skip
        records = source.collect()
        (row,) = records.activities
        assert ACTIVITY_KINDS[row["kind"]] == "kernel"
        assert records.names[row["name"]] == "sqrt"
        assert (row["start"], row["end"]) == (100, 150)
        assert (row["device"], row["stream"], row["is_null_stream"]) == (1, 7, True)
        assert (row["correlation_id"], row["graph_id"]) == (9, 5)
        assert (row["grid"].tolist(), row["block"].tolist()) == ([4, 2, 1], [128, 1, 1])
        assert (row["registers"], row["shared_bytes"]) == (32, 24)

    def test_another_stream_and_an_unknown_context_are_not_null(self, cupti, source):
        kernel(cupti, context_id=3, stream_id=13)
        kernel(cupti, context_id=4, stream_id=7)
        assert not source.collect().activities["is_null_stream"].any()

    def test_copies_and_sets(self, cupti, source):
        cupti.emit(1, copy_kind=1, src_kind=1, dst_kind=3, flags_=1, bytes=4096, start=1, end=2)
        cupti.emit(22, copy_kind=10, src_kind=3, dst_kind=3, bytes=8, start=3, end=4)
        cupti.emit(2, memory_kind=3, bytes=64, start=5, end=6)
        cupti.emit(1, copy_kind=77, start=7, end=8)
        records = source.collect()
        by_start = {row["start"]: row for row in records.activities}
        names = {start: records.names[row["name"]] for start, row in by_start.items()}
        assert names == {1: "memcpy HtoD", 3: "memcpy PtoP", 5: "memset", 7: "memcpy"}
        assert [by_start[start]["bytes"] for start in (1, 3, 5)] == [4096, 8, 64]
        first = by_start[1]
        assert (first["source_memory"], first["target_memory"], first["is_async"]) == (1, 3, True)
        assert not by_start[3]["is_async"]
        assert by_start[5]["target_memory"] == 3

    def test_calls(self, cupti, source):
        cupti.emit(5, cbid=211, start=1, end=2, thread_id=77, correlation_id=9, return_value=700)
        cupti.emit(4, cbid=307, start=3, end=4)
        cupti.emit(4, cbid=999, start=5, end=6)
        records = source.collect()
        runtime, driver = (CALL_KINDS.index(kind) for kind in ("runtime", "driver"))
        assert records.calls["kind"].tolist() == [runtime, driver, driver]
        assert [records.names[row["name"]] for row in records.calls] == [
            "cudaLaunchKernel", "cuLaunchKernel", "driver function 999"
        ]  # fmt: skip
        first = records.calls[0]
        assert (first["thread"], first["correlation_id"], first["status"]) == (77, 9, 700)

    def test_links(self, cupti, source):
        cupti.emit(39, external_kind=3, external_id=2**40, correlation_id=9)
        (row,) = source.collect().links
        assert (row["correlation_id"], row["external_id"]) == (9, 2**40)

    def test_ranges_and_marks(self, cupti, source):
        thread = {"thread_id": 77}
        cupti.emit(12, flags_=2, id=1, timestamp=10, name="step", domain="d", object_id=thread)
        cupti.emit(12, flags_=1, id=2, timestamp=11, name="now", object_id=thread)
        assert len(source.collect().ranges) == 1
        cupti.emit(12, flags_=4, id=1, timestamp=30)
        cupti.emit(12, flags_=4, id=99, timestamp=31)  # began before the recording
        records = source.collect()
        (row,) = records.ranges
        assert (records.names[row["name"]], records.names[row["domain"]]) == ("step", "d")
        assert (row["start"], row["end"], row["thread"]) == (10, 30, 77)

    def test_kinds_lie_mixed_in_a_buffer_and_unknown_ones_are_passed_over(self, cupti, source):
        cupti.enabled.add(38)
        for i in range(1, 4):
            cupti.emit(5, cbid=211, start=i, end=i + 1, correlation_id=i)
            cupti.emit(38)
            kernel(cupti, f"k{i % 2}", i, i + 5, correlation_id=i)
        records = source.collect()
        cupti.enabled.discard(38)
        assert records.activities["correlation_id"].tolist() == [1, 2, 3]
        assert records.calls["correlation_id"].tolist() == [1, 2, 3]
        assert [records.names[i] for i in records.activities["name"]] == ["k1", "k0", "k1"]

    def test_more_than_a_buffer_holds(self, cupti, source, monkeypatch):
        monkeypatch.setattr(cupti_source, "_BUFFER_BYTES", 1 << 10)
        for i in range(1, 101):
            kernel(cupti, start=i, end=i + 1)
        assert source.collect().activities["start"].tolist() == list(range(1, 101))
        assert source.delivery_time > 0

    def test_what_has_no_times_is_left_out(self, cupti, source):
        kernel(cupti, start=0, end=0)
        assert not len(source.collect().activities)

    def test_nothing_is_delivered_twice(self, cupti, source):
        kernel(cupti)
        assert len(source.collect().activities) == 1
        assert not len(source.collect().activities)

    def test_dropped_records_are_counted(self, cupti, source):
        cupti.n_dropped = 5
        kernel(cupti)
        assert source.collect().n_dropped == 5
        assert source.collect().n_dropped == 0


class TestCallbacks:
    """What CUPTI calls may meet anything, and must not raise."""

    def test_ctrl_c_in_a_callback_is_passed_on_later(self, cupti, source, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        kernel(cupti)
        with monkeypatch.context() as patch:
            patch.setattr(source._delivery.reader, "read", interrupt)
            with pytest.raises(KeyboardInterrupt):
                source.collect()
        kernel(cupti)
        assert len(source.collect().activities) == 1

    def test_without_memory_cupti_is_told_so(self, source, monkeypatch):
        def fail():
            raise MemoryError("none left")

        monkeypatch.setattr(cupti_source, "_new_buffer", fail)
        request, _ = source._delivery._callbacks
        address, size = ctypes.c_void_p(1), ctypes.c_size_t(1)
        request(ctypes.pointer(address), ctypes.pointer(size), ctypes.pointer(ctypes.c_size_t()))
        assert (address.value, size.value) == (None, 0)
        with pytest.raises(UnsupportedError, match="none left"):
            source.collect()

    def test_another_tools_buffer_is_left_alone(self, cupti, source):
        _, complete = source._delivery._callbacks
        complete(None, 0, 12345, 64, 64)
        assert not len(source.collect().activities)

    def test_one_recording_leaves_nothing_to_the_next(self, cupti, monkeypatch):
        source = CuptiSource()
        source.enable(["kernel"])
        monkeypatch.setattr(source._delivery.reader, "read", lambda *_: 1 / 0)
        cupti.n_dropped = 7
        kernel(cupti)
        source.close()
        after = CuptiSource()
        assert after.collect().n_dropped == 0
        assert after._delivery._free == []
        after.close()

    def test_closing_goes_on_whatever_fails(self, cupti):
        source = CuptiSource()
        source.enable(["kernel", "memcpy"])
        cupti.refusals["activity_flush_all"] = CuptiError("ERROR_UNKNOWN")
        with pytest.raises(UnsupportedError, match="ERROR_UNKNOWN"):
            source.close()
        assert cupti.enabled == set()
        assert cupti.subscriber is None

    def test_links_of_other_kinds_are_somebody_elses(self, cupti, source):
        cupti.emit(39, external_kind=4, external_id=12, correlation_id=7)
        cupti.emit(39, external_kind=3, external_id=13, correlation_id=7)
        assert source.collect().links["external_id"].tolist() == [13]

    def test_contexts_made_meanwhile_have_a_null_stream(self, cupti, monkeypatch):
        known = []
        monkeypatch.setattr(Contexts, "__enter__", lambda self: list(known))
        source = CuptiSource()
        source.enable(["kernel"])
        known.append(3)
        kernel(cupti, context_id=3, stream_id=7)
        assert source.collect().activities["is_null_stream"].all()
        source.close()


class TestSwitching:
    def test_only_what_is_asked_for(self, cupti):
        source = CuptiSource()
        source.enable(["kernel"])
        source.enable(["kernel", "memcpy", "compilation"])
        assert cupti.enabled == {10, 1, 22}
        source.close()

    def test_push_and_pop(self, cupti, source):
        source.push(4)
        source.push(5)
        source.pop()
        assert cupti.external_ids == [4]

    def test_the_clock_is_cuptis(self, cupti, source):
        assert source.now() == cupti.timestamp

    @pytest.mark.parametrize(
        ("path", "seen"), [("/opt/libcupti.so.13", True), ("/opt/libnsys.so", False)]
    )
    def test_nvtx_is_seen_where_it_was_told_to_report(self, source, monkeypatch, path, seen):
        monkeypatch.setenv("NVTX_INJECTION64_PATH", path)
        assert source.sees_nvtx == seen

    def test_buffers_that_come_after_the_end_are_dropped(self, cupti):
        source = CuptiSource()
        source.enable(["kernel"])
        source.close()
        cupti.enabled.add(10)
        kernel(cupti)
        cupti.activity_flush_all(1)
        assert not len(CuptiSource().collect().activities)

    def test_a_callback_in_another_thread(self, cupti, source):
        kernel(cupti)
        thread = threading.Thread(target=cupti.activity_flush_all, args=(1,))
        thread.start()
        thread.join()
        assert len(source.collect().activities) == 1


class TestRefusals:
    def test_another_profiler(self, cupti):
        cupti.subscriber = 5
        with pytest.raises(UnsupportedError, match=r"SUBSCRIBERS.*end the profiler"):
            CuptiSource()

    @pytest.mark.parametrize("function", ["set_thread_id_type", "subscribe"])
    def test_what_cupti_refuses(self, cupti, function):
        cupti.refusals[function] = CuptiError("ERROR_NOT_INITIALIZED")
        with pytest.raises(UnsupportedError, match="CUPTI refuses to record: ERROR_NOT_INIT"):
            CuptiSource()
        assert cupti.subscriber is None

    def test_a_kind_that_is_refused(self, cupti, source):
        cupti.refusals["activity_enable"] = CuptiError("ERROR_INVALID_KIND")
        source.enable(["kernel"])  # it is on already
        cupti.enabled.clear()
        source._enabled.clear()
        with pytest.raises(UnsupportedError, match="INVALID_KIND"):
            source.enable(["kernel"])

    def test_the_callbacks_are_refused(self, cupti, monkeypatch):
        monkeypatch.setattr(cupti, "cuptiActivityRegisterCallbacks", lambda *_: 999)
        with pytest.raises(UnsupportedError, match="status 999"):
            CuptiSource()
        assert cupti.subscriber is None

    def test_layouts_that_are_not_there(self, cupti, monkeypatch):
        monkeypatch.delattr(sys.modules["cupti.cupti"], "activity_api_dtype")
        with pytest.raises(UnsupportedError, match="has no activity_api_dtype"):
            CuptiSource()
        assert cupti.subscriber is None

    def test_records_shorter_than_their_layout(self, cupti, source):
        cupti.surplus_bytes = -8
        kernel(cupti)
        kernel(cupti)
        with pytest.raises(UnsupportedError, match="kind 10 are shorter"):
            source.collect()
        cupti.surplus_bytes = 0

    def test_no_null_streams_where_contexts_are_unknown(self, cupti, monkeypatch):
        def refuse():
            raise UnsupportedError("no driver")

        monkeypatch.setattr(cupti_source, "used_contexts", refuse)
        source = CuptiSource()
        source.enable(["kernel"])
        kernel(cupti, context_id=3, stream_id=7)
        assert not source.collect().activities["is_null_stream"].any()
        source.close()


@pytest.mark.parametrize(
    ("memory_map", "found"),
    [
        ("7f0 /lib/libc.so.6\n", "none"),
        ("7f0 /a/libcupti.so.12\n7f1 /b/libcupti.so.13\n", "/a/libcupti.so.12, /b/libcupti.so.13"),
    ],
)
def test_one_library_must_be_loaded(monkeypatch, memory_map, found):
    monkeypatch.setattr(cupti_source, "_memory_map", lambda: memory_map)
    with pytest.raises(UnsupportedError, match=f"found {found}"):
        cupti_source._delivery()


def test_the_highest_number_is_the_newest_layout():
    module = SimpleNamespace(**LAYOUTS)
    found = cupti_source.layouts(module)
    assert found[10] is LAYOUTS["activity_kernel10_dtype"]
    assert found[1] is LAYOUTS["activity_memcpy6_dtype"]
    assert found[12] is LAYOUTS["activity_marker2_dtype"]


def test_a_hundred_thousand_records_a_second(monkeypatch):
    fake = FakeCupti()
    fake.install(monkeypatch)
    source = CuptiSource()
    source.enable(EVERYTHING)
    for _ in range(3):
        kernel(fake)
    row = fake._rows[0]
    fake._rows = [row * 30_000]
    source.collect()
    assert source.delivery_time < 0.3
    source.close()
