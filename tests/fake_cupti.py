"""CUPTI and cupti-python, as much of them as gpubench uses; `emit` is what CUPTI sees."""

import ctypes
import sys
from types import ModuleType, SimpleNamespace

import numpy as np

from gpubench.devices import cupti_source


def layout(itemsize, **fields):
    """A record's layout: the kind, then these fields, by offset and format."""
    return np.dtype(
        {
            "names": ["kind", *fields],
            "formats": ["i4", *(form for _, form in fields.values())],
            "offsets": [0, *(offset for offset, _ in fields.values())],
            "itemsize": itemsize,
        }
    )


PLACE = {"device_id": (16, "u4"), "context_id": (20, "u4"), "stream_id": (24, "u4")}
THREAD = np.dtype([("pt", [("process_id", "u4"), ("thread_id", "u4")])])
LAYOUTS = {
    "activity_kernel9_dtype": layout(16),  # of an older release, still there
    "activity_kernel10_dtype": layout(
        112, start=(8, "u8"), end=(32, "u8"), **PLACE, correlation_id=(28, "u4"), name=(40, "i8"),
        grid_x=(48, "i4"), grid_y=(52, "i4"), grid_z=(56, "i4"), block_x=(60, "i4"),
        block_y=(64, "i4"), block_z=(68, "i4"), registers_per_thread=(72, "u2"),
        static_shared_memory=(76, "i4"), dynamic_shared_memory=(80, "i4"), graph_id=(84, "u4"),
    ),
    "activity_memcpy6_dtype": layout(
        72, copy_kind=(4, "u1"), src_kind=(5, "u1"), dst_kind=(6, "u1"), flags_=(7, "u1"),
        start=(8, "u8"), **PLACE, correlation_id=(28, "u4"), end=(32, "u8"), bytes=(40, "u8"),
        graph_id=(48, "u4"),
    ),
    "activity_memcpy_pto_p4_dtype": layout(
        72, copy_kind=(4, "u1"), src_kind=(5, "u1"), dst_kind=(6, "u1"), flags_=(7, "u1"),
        start=(8, "u8"), **PLACE, correlation_id=(28, "u4"), end=(32, "u8"), bytes=(48, "u8"),
        graph_id=(40, "u4"),
    ),
    "activity_memset4_dtype": layout(
        64, start=(8, "u8"), **PLACE, correlation_id=(28, "u4"), end=(32, "u8"), bytes=(40, "u8"),
        graph_id=(48, "u4"), flags_=(52, "u2"), memory_kind=(54, "u2"),
    ),
    "activity_api_dtype": layout(
        40, cbid=(4, "u4"), start=(8, "u8"), end=(16, "u8"), thread_id=(28, "u4"),
        correlation_id=(32, "u4"), return_value=(36, "u4"),
    ),
    "activity_external_correlation_dtype": layout(
        24, external_kind=(4, "i4"), external_id=(8, "u8"), correlation_id=(16, "u4")
    ),
    "activity_marker2_dtype": layout(
        56, flags_=(4, "i4"), timestamp=(8, "u8"), id=(16, "u4"), object_id=(24, THREAD),
        name=(40, "i8"), domain=(48, "i8"),
    ),
    "activity_marker_data_dtype": layout(32),
}  # fmt: skip

KINDS = {
    1: "activity_memcpy6_dtype",
    2: "activity_memset4_dtype",
    4: "activity_api_dtype",
    5: "activity_api_dtype",
    10: "activity_kernel10_dtype",
    12: "activity_marker2_dtype",
    22: "activity_memcpy_pto_p4_dtype",
    39: "activity_external_correlation_dtype",
}


class CuptiError(Exception):
    """What the fake's functions raise; as in cupti-python, no kind of `RuntimeError`."""


class Known:
    """An enumeration of one function."""

    def __init__(self, number, name):
        self._number, self._name = number, name

    def __call__(self, number):
        if number != self._number:
            raise ValueError(number)
        return SimpleNamespace(name=self._name)


class FakeCupti:
    """`surplus_bytes` is what each record has beyond what cupti-python knows of it."""

    def __init__(self, surplus_bytes=0):
        self.surplus_bytes = surplus_bytes
        self.log = []  # what was asked of it
        self.refusals = {}  # exceptions, by the function that raises them
        self.subscriber = None
        self.enabled = set()
        self.n_dropped = 0
        self.timestamp = 0
        self.external_ids = []
        self.callbacks = None
        self._rows = []
        self._strings = []

    def module(self):
        module = ModuleType("cupti.cupti")
        vars(module).update(LAYOUTS)
        module.ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=10)
        module.ActivityThreadIdType = SimpleNamespace(SYSTEM=1)
        module.ExternalCorrelationKind = SimpleNamespace(CUSTOM0=3)
        module.runtime_api_trace_cbid = Known(211, "cudaLaunchKernel_v7000")
        module.driver_api_trace_cbid = Known(307, "cuLaunchKernel")
        for name in (
            "subscribe", "unsubscribe", "set_thread_id_type", "get_timestamp", "get_context_id",
            "get_stream_id_ex", "activity_enable", "activity_disable", "activity_flush_all",
            "activity_push_external_correlation_id", "activity_pop_external_correlation_id",
        ):  # fmt: skip
            setattr(module, name, self._refusing(name))
        return module

    def install(self, monkeypatch):
        package = ModuleType("cupti")
        package.cupti = self.module()
        monkeypatch.setitem(sys.modules, "cupti", package)
        monkeypatch.setitem(sys.modules, "cupti.cupti", package.cupti)
        delivery = cupti_source._Delivery(self)
        monkeypatch.setattr(cupti_source, "_delivery", lambda: delivery)

    def _refusing(self, name):
        def function(*args):
            self.log.append(name)
            if name in self.refusals:
                raise self.refusals[name]
            return getattr(self, name)(*args)

        return function

    def emit(self, kind, **fields):
        """Keep a record of that kind; text becomes a string that CUPTI owns."""
        if kind not in self.enabled:
            return
        row = np.zeros(1, LAYOUTS[KINDS[kind]] if kind in KINDS else layout(48))
        row["kind"] = kind
        for field, value in fields.items():
            if isinstance(value, str):
                self._strings.append(ctypes.create_string_buffer(value.encode()))
                row[field] = ctypes.addressof(self._strings[-1])
            elif isinstance(value, dict):
                row[field]["pt"]["thread_id"] = value["thread_id"]
            else:
                row[field] = value
        content = row.tobytes()
        size = len(content) + self.surplus_bytes
        self._rows.append(content.ljust(size, b"\0")[:size])

    # cupti-python

    def subscribe(self, callback, userdata):
        if self.subscriber:
            raise CuptiError("ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)")
        self.subscriber = 7
        return self.subscriber

    def unsubscribe(self, subscriber):
        assert subscriber == self.subscriber
        self.subscriber = None

    def set_thread_id_type(self, kind):
        assert kind == 1

    def get_timestamp(self):
        self.timestamp += 1
        return self.timestamp

    def get_context_id(self, context):
        return context

    def get_stream_id_ex(self, context, stream, per_thread):
        return 7

    def activity_enable(self, kind):
        self.enabled.add(kind)

    def activity_disable(self, kind):
        self.enabled.remove(kind)

    def activity_push_external_correlation_id(self, kind, number):
        self.external_ids.append(number)

    def activity_pop_external_correlation_id(self, kind):
        return self.external_ids.pop()

    def activity_flush_all(self, flag):
        assert flag == 1
        request, complete = self.callbacks
        while self._rows:
            address, size, n_records = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(1)
            request(ctypes.pointer(address), ctypes.pointer(size), ctypes.pointer(n_records))
            assert n_records.value == 0
            content = b""
            while self._rows and len(content) + len(self._rows[0]) <= size.value:
                content += self._rows.pop(0)
            ctypes.memmove(address.value, content, len(content))
            self._end = address.value + len(content)
            complete(None, 0, address.value, size.value, len(content))
            ctypes.memset(address.value, 0xFF, len(content))  # it is CUPTI's again
        for string in self._strings:
            ctypes.memset(string, ord("?"), len(string) - 1)
        self._strings = []

    # CUPTI's library

    def cuptiActivityRegisterCallbacks(self, request, complete):  # noqa: N802
        self.callbacks = request, complete
        return 0

    def cuptiActivityGetNextRecord(self, buffer, n_bytes, record):  # noqa: N802
        kind = ctypes.c_int32.from_address(record._obj.value).value
        size = LAYOUTS[KINDS[kind]].itemsize if kind in KINDS else 48
        behind = record._obj.value + size + self.surplus_bytes
        if behind >= buffer.value + n_bytes.value:
            return 12
        record._obj.value = behind
        return 0

    def cuptiActivityGetNumDroppedRecords(self, context, stream, number):  # noqa: N802
        number._obj.value, self.n_dropped = self.n_dropped, 0
        return 0
