"""CUPTI as a source of activity records.

cupti-python switches kinds of records on and off. The buffers are taken from CUPTI as they are
and read as arrays: a Python object for each record would take ten times as long.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import time
from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

import numpy as np

from gpubench.devices.cupti import load_cupti, refusals, refuse_beside_pytorchs_profiler
from gpubench.devices.cupti_buffers import (
    DRIVER,
    KERNEL,
    LINKED,
    MARKER,
    MEMCPY,
    MEMSET,
    PEER_COPY,
    RUNTIME,
    BufferReader,
    layouts,
)
from gpubench.devices.driver import used_contexts
from gpubench.devices.names import NameTable
from gpubench.devices.records import Records
from gpubench.errors import UnsupportedError

_NUMBERS = {
    "kernel": (KERNEL,),
    "memcpy": (MEMCPY, PEER_COPY),
    "memset": (MEMSET,),
    "runtime": (RUNTIME,),
    "driver": (DRIVER,),
    "range": (MARKER,),
    "link": (LINKED, RUNTIME, DRIVER),  # a link stands before the record of a call
}

_BUFFER_BYTES = 4 << 20
"""Size of a buffer: about 19,000 records of kernels."""

_MAX_FREE_BUFFERS = 16
"""How many buffers wait to be used again."""

_FORCED = 1
_CUSTOM = "CUSTOM0"

_REQUEST = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)
_COMPLETE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


class _Delivery:
    """The callbacks by which CUPTI asks for buffers and returns them filled.

    CUPTI keeps their addresses, and may call them as long as the process lives.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._free: list[Any] = []
        self._lent: dict[int, Any] = {}
        self.reader: BufferReader | None = None
        self.chunks: list[Records] = []
        self.problems: list[BaseException] = []
        self.n_dropped = 0
        self.busy_time = 0.0
        self._callbacks = _REQUEST(self._request), _COMPLETE(self._complete)

    def register(self) -> None:
        """Give CUPTI the callbacks, instead of those that it had."""
        status = self._library.cuptiActivityRegisterCallbacks(*self._callbacks)
        if status:
            raise UnsupportedError(f"CUPTI refuses the callbacks for its buffers: status {status}")

    def _request(self, address: Any, size: Any, max_records: Any) -> None:
        address[0], size[0], max_records[0] = None, 0, 0  # no buffer: CUPTI drops the records
        try:
            buffer = self._free.pop() if self._free else _new_buffer()
            self._lent[ctypes.addressof(buffer)] = buffer
            address[0], size[0] = ctypes.addressof(buffer), ctypes.sizeof(buffer)
        except BaseException as error:  # noqa: BLE001  # Ctrl-C too may come in here
            self.problems.append(error)

    def _complete(
        self, context: int | None, stream: int, address: int, _size: int, n_bytes: int
    ) -> None:
        begin = time.perf_counter()
        try:
            buffer = self._lent.pop(address, None)
            if buffer is None:
                return  # it is of whoever had the callbacks before
            self._take(buffer, n_bytes)
            self._count_dropped(context, stream)
            if len(self._free) < _MAX_FREE_BUFFERS:
                self._free.append(buffer)
        except BaseException as error:  # noqa: BLE001  # CUPTI, which calls this, can't handle any
            self.problems.append(error)
        finally:
            self.busy_time += time.perf_counter() - begin

    def reset(self) -> None:
        """Forget what was delivered, and free the buffers."""
        self.reader = None
        self.chunks, self.problems, self.n_dropped = [], [], 0
        self._free.clear()

    def _take(self, buffer: Any, n_bytes: int) -> None:
        if self.reader is None or not n_bytes:
            return
        address = ctypes.addressof(buffer)

        def next_record(offset: int) -> int:
            record = ctypes.c_void_p(address + offset)
            status = self._library.cuptiActivityGetNextRecord(
                ctypes.c_void_p(address), ctypes.c_size_t(n_bytes), ctypes.byref(record)
            )
            # It has another status for the last one.
            return n_bytes if status or record.value is None else record.value - address

        valid = np.frombuffer(buffer, np.uint8, n_bytes)
        self.chunks.append(self.reader.read(valid, next_record))

    def _count_dropped(self, context: int | None, stream: int) -> None:
        n_dropped = ctypes.c_size_t()
        self._library.cuptiActivityGetNumDroppedRecords(
            ctypes.c_void_p(context), ctypes.c_uint32(stream), ctypes.byref(n_dropped)
        )
        self.n_dropped += n_dropped.value


class CuptiSource:
    """CUPTI's records of all devices, from when this is made until `close`.

    Raises
    ------
    UnsupportedError
        If CUPTI can't be used, or not now; the message says why.
    """

    def __init__(self) -> None:
        refuse_beside_pytorchs_profiler()
        self._cupti = cupti = load_cupti()
        self._enabled: list[int] = []
        self._names = NameTable()
        with refusals():
            # The second subscriber is refused: so this one robs no other profiler of its records.
            self._subscriber = cupti.subscribe(lambda *_: None, None)
        try:
            with refusals():
                self._custom = getattr(cupti.ExternalCorrelationKind, _CUSTOM)
                cupti.set_thread_id_type(cupti.ActivityThreadIdType.SYSTEM)
                self._null_streams = _null_streams(cupti)
                self._delivery = _delivery()
                self._delivery.reset()
                self._delivery.reader = BufferReader(
                    layouts(cupti),
                    _read_string,
                    functools.partial(_call_name, cupti),
                    self._null_streams,
                    self._custom,
                    self._names,
                )
                self._delivery.register()
        except BaseException:
            cupti.unsubscribe(self._subscriber)
            raise

    def now(self) -> int:
        """Return CUPTI's time in nanoseconds."""
        return int(self._cupti.get_timestamp())

    def enable(self, kinds: Collection[str]) -> None:
        """Record these too, from now on."""
        for number in dict.fromkeys(n for kind in kinds for n in _NUMBERS.get(kind, ())):
            if number not in self._enabled:
                with refusals():
                    self._cupti.activity_enable(number)
                self._enabled.append(number)

    @property
    def sees_nvtx(self) -> bool:
        """Whether NVTX was told to report to CUPTI when the process began."""
        return "libcupti" in os.environ.get("NVTX_INJECTION64_PATH", "")

    @property
    def delivery_time(self) -> float:
        """Seconds that the interpreter has been busy with taking records over."""
        return self._delivery.busy_time

    def push(self, external_id: int) -> None:
        """Link calls of this thread to the id from now on."""
        self._cupti.activity_push_external_correlation_id(self._custom, external_id)

    def pop(self) -> None:
        """Link them to the id again that was pushed before."""
        self._cupti.activity_pop_external_correlation_id(self._custom)

    def collect(self) -> Records:
        """Return what was recorded since the last call, of everything that is done."""
        self._null_streams.update(_null_streams(self._cupti))  # of contexts made meanwhile
        with refusals():
            self._cupti.activity_flush_all(_FORCED)
        delivery = self._delivery
        chunks, delivery.chunks = delivery.chunks, []
        n_dropped, delivery.n_dropped = delivery.n_dropped, 0
        if delivery.problems:
            problem, *_ = delivery.problems
            delivery.problems = []
            if not isinstance(problem, Exception):
                raise problem
            raise UnsupportedError(f"CUPTI's records can't be read: {problem!r}") from problem
        return Records.joined(chunks, self._names(), n_dropped)

    def close(self) -> None:
        """Record nothing more."""
        with refusals(), ExitStack() as stack:  # which does all of it, whatever fails
            stack.callback(self._cupti.unsubscribe, self._subscriber)
            stack.callback(self._delivery.reset)
            stack.callback(self._cupti.activity_flush_all, _FORCED)
            for number in self._enabled:
                stack.callback(self._cupti.activity_disable, number)


def _new_buffer() -> Any:
    return (ctypes.c_uint64 * (_BUFFER_BYTES // 8))()


@functools.cache
def _delivery() -> _Delivery:
    """Return the process's callbacks, for the CUPTI that cupti-python has loaded."""
    paths = set(re.findall(r"/\S*/libcupti\.so\S*", _memory_map()))
    if len(paths) != 1:
        found = ", ".join(sorted(paths)) or "none"
        raise UnsupportedError(f"one CUPTI library must be loaded in this process, found {found}")
    return _Delivery(ctypes.CDLL(paths.pop()))


def _memory_map() -> str:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return maps.read()


def _read_string(address: int) -> str:
    return ctypes.string_at(address).decode(errors="replace")


def _call_name(cupti: Any, kind: int, number: int) -> str:
    """Return the name of a function of CUDA's API, without the version that CUPTI appends."""
    known = cupti.runtime_api_trace_cbid if kind == RUNTIME else cupti.driver_api_trace_cbid
    try:
        name = str(known(number).name)
    except ValueError:  # a function newer than this cupti-python
        return f"{'runtime' if kind == RUNTIME else 'driver'} function {number}"
    return re.sub(r"_v\d{4,}$", "", name)


def _null_streams(cupti: Any) -> dict[int, int]:
    """Return CUPTI's number of each context's null stream, as far as it can be told."""
    try:
        with used_contexts() as contexts:
            return {cupti.get_context_id(c): cupti.get_stream_id_ex(c, 0, 0) for c in contexts}
    except Exception:  # noqa: BLE001  # what is worth recording doesn't hang on it
        return {}
