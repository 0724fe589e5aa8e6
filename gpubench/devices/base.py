"""What a timer needs of a device: streams, events, gates, and a way to wait.

The protocols here are the seam between the timers and the hardware: ``cuda.py`` and
``simulated.py`` implement them all, ``host.py`` is the platform of a machine without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from gpubench.devices.records import Records

Work = Callable[[], object]
"""Something to call for its effect."""

GATE_DEADLINE = 0.1
"""Seconds after which a gate opens by itself, so that no function can block on it for long."""


@dataclass(frozen=True)
class DeviceProperties:
    """What a device says of itself.

    Attributes
    ----------
    name : str
        The vendor's name of the device.
    l2_bytes : int
        Size of the last-level cache that all its processors share, 0 if unknown.
    memory_bytes : int
        Size of the device's memory, 0 if unknown.
    compute_capability : str
        For example ``"9.0"``; empty if it has none.
    pci_bus_id : str
        Identifies the physical device on this host; empty if unknown.
    uuid : str
        Identifies the physical device anywhere, as ``nvidia-smi -L`` shows it; empty if unknown.
    """

    name: str
    l2_bytes: int = 0
    memory_bytes: int = 0
    compute_capability: str = ""
    pci_bus_id: str = ""
    uuid: str = ""


class Event(Protocol):
    """A point in a stream that remembers when the device reached it."""

    def seconds_since(self, earlier: Event) -> float:
        """Device time from `earlier` to this event, in seconds; both must have happened."""
        ...


class Gate(Protocol):
    """A barrier that the host opens, with a deadline after which it opens by itself.

    One gate may hold streams of several devices; `open` releases them all at once.
    """

    def close(self) -> int:
        """Close the gate for streams held from now on; return the closing's growing number."""
        ...

    def open(self) -> None:
        """Release every stream that the gate holds. Opening an open gate does nothing."""
        ...

    def has_expired(self, closing: int) -> bool:
        """Whether the deadline released a stream held at that closing or a later one.

        The answer holds once the streams have been synchronized.
        """
        ...


class Graph(Protocol):
    """Work captured from a stream, to be launched again in one piece.

    Attributes
    ----------
    stream : Stream
        The stream that it was captured from.
    is_empty : bool
        Whether the work queued nothing there.
    kernel_names : tuple of str
        The captured kernels' names, in the order of their launch. Asking raises
        `UnsupportedError` where they can't be told.
    """

    @property
    def stream(self) -> Stream: ...

    @property
    def is_empty(self) -> bool: ...

    @property
    def kernel_names(self) -> tuple[str, ...]: ...

    def launch(self) -> None:
        """Queue the captured work on the stream that it was captured from."""
        ...


class Stream(Protocol):
    """A queue of work on one device, or all queues of the device at once.

    Attributes
    ----------
    label : str
        Says in a note which stream this is, for example ``"CuPy's current stream"``.
    is_capturing : bool
        Whether work queued here is captured instead of run.
    """

    @property
    def label(self) -> str: ...

    @property
    def device(self) -> Device: ...

    @property
    def is_capturing(self) -> bool: ...

    def record(self, event: Event) -> None:
        """Queue `event` behind the work queued so far."""
        ...

    def hold(self, gate: Gate) -> None:
        """Let work queued from now on wait until `gate` opens."""
        ...

    def synchronize(self) -> None:
        """Wait until all work queued so far is done."""
        ...


class Device(Protocol):
    """One GPU as a benchmark sees it."""

    @property
    def id(self) -> int: ...

    @property
    def properties(self) -> DeviceProperties: ...

    def create_event(self) -> Event:
        """Make an event that any stream of this device can record."""
        ...

    def current_streams(self) -> Sequence[Stream]:
        """Return the streams that the caller's next call may use.

        One for each framework, without repeats, the device's own first.
        """
        ...

    def every_stream(self) -> Stream:
        """Return all streams of this process on the device, as one.

        Raises
        ------
        UnsupportedError
            If the driver can't do that; the message says why.
        """
        ...

    def capture(self, work: Work) -> Graph:
        """Capture what `work` queues, without running it.

        Raises
        ------
        UnsupportedError
            If the work refuses to be captured; the message says why.
        """
        ...

    def launch_empty(self) -> None:
        """Queue a kernel that does nothing on the current stream."""
        ...

    def synchronize(self) -> None:
        """Wait until every stream of the device is idle; on CUDA, it is the current one then."""
        ...

    def reserved_bytes(self) -> int:
        """Device memory that the frameworks' pools hold, in bytes."""
        ...

    def cold_cache(self) -> AbstractContextManager[Work]:
        """Lend a function that fills the last-level cache with other data.

        The buffer behind it is allocated on entry, outside the frameworks' pools, and freed
        on exit.
        """
        ...


class ActivitySource(Protocol):
    """Where activity records come from while it is open.

    Times are nanoseconds of `now`.
    """

    def now(self) -> int:
        """Return the time on the clock of the records, in nanoseconds."""
        ...

    def enable(self, kinds: Collection[str]) -> None:
        """Record these too, from now on.

        Parameters
        ----------
        kinds : collection of str
            `ACTIVITY_KINDS`, `CALL_KINDS`, ``"range"`` (NVTX's) and ``"link"`` say something to
            it, others don't.
        """
        ...

    @property
    def sees_nvtx(self) -> bool:
        """Whether ranges that NVTX is told of come as records."""
        ...

    def collect(self) -> Records:
        """Return what was recorded since the last call, of everything that is done."""
        ...

    @property
    def delivery_time(self) -> float:
        """Seconds that the interpreter has been busy with taking records over."""
        ...

    def push(self, external_id: int) -> None:
        """Link calls of this thread to the id from now on."""
        ...

    def pop(self) -> None:
        """Link them to the id again that was pushed before."""
        ...

    def close(self) -> None:
        """Record nothing more."""
        ...


class Platform(Protocol):
    """All devices of one kind, as seen from the calling thread.

    Attributes
    ----------
    name : str
        ``"cuda"``, ``"simulated"`` or ``"host"``.
    """

    @property
    def name(self) -> str: ...

    def device_count(self) -> int:
        """How many devices there are; 0 on a machine without a GPU."""
        ...

    def current_device(self) -> int:
        """Id of the device that is current in this thread."""
        ...

    def device(self, device_id: int) -> Device:
        """Return the device with that id."""
        ...

    def drain(self) -> None:
        """Wait until every device that this process uses is idle; the current one may change."""
        ...

    def gate(self) -> Gate:
        """Return this thread's gate, open.

        Raises
        ------
        UnsupportedError
            If streams can't be held here; the message says why.
        """
        ...

    def activity_source(self) -> ActivitySource:
        """Open a source of activity records of all devices.

        Raises
        ------
        UnsupportedError
            If nothing can be recorded, or not now; the message says why.
        """
        ...

    def preserved(self) -> AbstractContextManager[Work]:
        """Restore the current device and stream on exit, whatever happens inside.

        Yields a function that makes the device current again that was so on entry.
        """
        ...
