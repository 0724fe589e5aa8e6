"""Processes that measure one call together, as ranks of an MPI communicator.

The ranks go in step. Before each call, in the warm-up too, they meet: every rank says one word in a
collective operation, which is thus the barrier, and hears what the others say. So a function with
collective operations of its own is called by all ranks equally often, whatever each of them would
find out about it; whether there are enough samples is decided together; and a rank that has
failed, or was sent Ctrl-C, says so at the next meeting instead of leaving the others to wait.
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from gpubench.devices.base import Work
from gpubench.errors import ArgumentError, GpubenchError
from gpubench.integrations.slowest_rank import slowest_rank
from gpubench.result import BenchmarkResult
from gpubench.session import Session

_T = TypeVar("_T")
_Words = npt.NDArray[np.int32]

_NO, _YES, _INTERRUPTED, _FAILED = range(4)
"""What a rank says when it meets the others."""

_PATIENCE = 10.0
"""Seconds that a rank which failed waits for the others before it says why they hang."""


class Communicator(Protocol):
    """The part of ``mpi4py.MPI.Intracomm`` that is needed here."""

    def Get_rank(self) -> int: ...  # noqa: N802, D102

    def Get_size(self) -> int: ...  # noqa: N802, D102

    def Dup(self) -> Communicator: ...  # noqa: N802, D102

    def Free(self) -> None: ...  # noqa: N802, D102

    def Allgather(self, sendbuf: _Words, recvbuf: _Words) -> None: ...  # noqa: N802, D102

    def allgather(self, sendobj: Any) -> list[Any]: ...  # noqa: D102


class Alone:
    """One process, which measures for itself; what `Ranks` does for several needs no doing."""

    rank = 0
    meet: Work | None = None

    def check_alike(self, **values: object) -> None:
        """Do nothing."""

    def in_step(self, _session: Session, /) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def anywhere(self, holds: bool) -> bool:
        """Return `holds`."""
        return holds

    def joined(self, result: BenchmarkResult) -> BenchmarkResult:
        """Return `result`."""
        return result


class _PeerError(Exception):
    """Another rank has failed."""


class _AgreedInterrupt(KeyboardInterrupt):
    """Ctrl-C that all ranks act on."""


class _AllReady(Exception):  # noqa: N818  # it isn't an error
    """No rank needs another call."""


class Ranks:
    """This process as one of several that measure together.

    Parameters
    ----------
    comm : Communicator
        All of them; nobody else uses it.

    Attributes
    ----------
    rank : int
        This process's number.
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self.rank = comm.Get_rank()
        self._heard: _Words = np.zeros(comm.Get_size(), dtype=np.int32)
        self._is_ready = False
        self.interrupts = _Interrupts()

    def _say(self, word: int) -> _Words:
        self._comm.Allgather(np.array([word], dtype=np.int32), self._heard)
        if _FAILED in self._heard:
            raise _PeerError
        return self._heard

    def _gather(self, value: _T) -> list[_T]:
        self._say(_YES)  # a rank that has failed doesn't come to what follows
        return self._comm.allgather(value)

    def meet(self) -> None:
        """Wait for the other ranks, before a call.

        Raises
        ------
        KeyboardInterrupt
            On all ranks, if one was sent Ctrl-C.
        """
        ready = _YES if self._is_ready else _NO
        heard = self._say(_INTERRUPTED if self.interrupts.pending else ready)
        if _INTERRUPTED in heard:
            self.interrupts.pending = False
            raise _AgreedInterrupt
        if (heard == _YES).all():
            raise _AllReady

    def anywhere(self, holds: bool) -> bool:
        """Whether it holds on any rank; asked by all of them."""
        return bool((self._say(_YES if holds else _NO) == _YES).any())

    def check_alike(self, **values: object) -> None:
        """Check that all ranks call this with the same values.

        Raises
        ------
        ArgumentError
            On all ranks, if they don't.
        """
        first, *others = self._gather(values)
        for rank, other in enumerate(others, start=1):
            for name, value in first.items():
                if other[name] != value:
                    raise ArgumentError(
                        f"{name} must be the same on all ranks, got {value!r} on rank 0 and "
                        f"{other[name]!r} on rank {rank}"
                    )

    @contextmanager
    def in_step(self, session: Session, /) -> Iterator[None]:
        """Let ranks make different numbers of calls in the block, to warm up and choose a timer.

        One that has made its own goes on calling, untimed, as long as another does. Afterwards
        all take samples in the same way.
        """
        yield
        self._is_ready = True
        with suppress(_AllReady):
            while True:
                session.call()
        self._is_ready = False
        if len(set(self._gather(session.method))) > 1:
            session.leave_gate()

    def joined(self, result: BenchmarkResult) -> BenchmarkResult:
        """Return the result of all ranks, of which `result` is this one's."""
        return slowest_rank(self._gather(result))

    def give_up(self, error: BaseException) -> None:
        """Let the other ranks fail with this one, and raise what is to be raised here.

        Raises
        ------
        GpubenchError
            If it was another rank that failed; the message says which and why.
        """
        if isinstance(error, _AgreedInterrupt):
            raise KeyboardInterrupt from None
        report = None
        if not isinstance(error, _PeerError):
            report = f"{type(error).__name__}: {error}"
            with self._patience(report), suppress(_PeerError):
                self._say(_FAILED)
        reports = enumerate(self._comm.allgather(report))
        if report is None:
            listed = "; ".join(f"rank {rank} raised {said}" for rank, said in reports if said)
            raise GpubenchError(f"nothing was measured, since {listed}") from None
        raise error

    @contextmanager
    def _patience(self, report: str) -> Iterator[None]:
        message = (
            f"rank {self.rank} raised {report}, and still waits for the other ranks to hear of it; "
            "if they wait in the function for this rank, only ending the program helps"
        )
        timer = threading.Timer(_PATIENCE, warnings.warn, (message, RuntimeWarning))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def together(comm: Communicator | None) -> Iterator[Alone | Ranks]:
    """Measure with the other ranks of a communicator inside the block, which all of them enter.

    Parameters
    ----------
    comm : Communicator or None
        None: alone.

    Raises
    ------
    ArgumentError
        If `comm` is no communicator.
    GpubenchError
        On each rank whose own block hasn't failed when another's has.
    """
    if comm is None:
        yield Alone()
        return
    own = _duplicate(comm)
    ranks = Ranks(own)
    try:
        with ranks.interrupts.delayed():
            try:
                yield ranks
            except BaseException as error:  # noqa: BLE001  # raised again there
                ranks.give_up(error)
    finally:
        own.Free()


def _duplicate(comm: Communicator) -> Communicator:
    """Return a communicator for gpubench alone, so that no message of the function's meets its."""
    needed = ("Dup", "Free", "Get_rank", "Get_size", "Allgather", "allgather")
    is_communicator = all(callable(getattr(comm, name, None)) for name in needed)
    if not is_communicator or not comm or getattr(comm, "is_inter", False):
        raise ArgumentError(
            f"comm must be an intracommunicator of mpi4py, such as MPI.COMM_WORLD, got {comm!r}"
        )
    return comm.Dup()


class _Interrupts:
    """Ctrl-C while ranks are in step: it waits for the next meeting, when all can act on it.

    Attributes
    ----------
    pending : bool
        Whether it was pressed since.
    """

    def __init__(self) -> None:
        self.pending = False

    @contextmanager
    def delayed(self) -> Iterator[None]:
        """Delay it inside the block; pressed for a second time, it acts at once."""
        former = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(former):
            yield
            return
        signal.signal(signal.SIGINT, self._handler(former))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, former)
        if self.pending:
            raise KeyboardInterrupt

    def _handler(
        self, former: Callable[[int, FrameType | None], object]
    ) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            if self.pending:
                former(number, frame)
            self.pending = True

        return handle
