"""A Dask cluster as places, each of which is given one job at a time.

Dask knows workers, not what they measure on. So the client decides which job goes where: whenever
a place is free, it is given one. What other clients might do there at the same time is kept off by
a lock for each place. A worker that dies takes its job with it, which is then as if it had never
been given away; so no answer comes twice.
"""

from __future__ import annotations

import gc
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gpubench
from gpubench.devices.place import Place, this_place
from gpubench.errors import ArgumentError, GpubenchError, MissingExtraError, UnsupportedError

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_TIMEOUT = 20.0
"""Seconds in which a scheduler must answer, and have a worker."""

PATIENCE = 60.0
"""Seconds to wait for a worker when all are gone: whoever supervises them may start others."""

MAX_LOSSES = 3
"""How many workers may die of one job."""

_POLL_TIME = 1.0
"""Seconds from one look at the cluster's workers to the next, while nothing happens."""

_FETCH_TIMEOUT = 10.0
"""Seconds in which an answer must travel here; its worker may have died meanwhile."""


class UnequippedError(GpubenchError):
    """A worker lacks what it was given, since another process has taken its address."""


@dataclass(frozen=True)
class Job:
    """Something to do at one place.

    Attributes
    ----------
    key : str
        Tells it from other jobs; the same if it has to be done again.
    payload : object
        What the worker is sent.
    """

    key: str
    payload: Any


@dataclass(frozen=True)
class Answer:
    """What became of a job.

    Attributes
    ----------
    job : Job
        Which.
    place : Place
        Where it was done.
    value : object
        What the work returned.
    error : Exception or None
        What it raised instead, or that no worker survives it.
    """

    job: Job
    place: Place
    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True)
class _Flight:
    job: Job
    worker: str
    future: Future[Any]


def connect(address: str) -> Client:
    """Connect with a Dask scheduler.

    Raises
    ------
    MissingExtraError
        If distributed isn't installed.
    ArgumentError
        If no scheduler answers at that address.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError("a Dask scheduler", "distributed", "dask") from error
    try:
        return Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, ImportError, TimeoutError) as error:
        reason = str(error) or type(error).__name__
    # What is left of the client closes as it is collected; while another one is made, that would
    # wait for itself.
    gc.collect()
    raise ArgumentError(
        f"scheduler={address!r}: no Dask scheduler can be reached there ({reason}); 'dask "
        "scheduler' starts one, and says its address"
    )


class Cluster:
    """The workers of a Dask cluster, by the places that they measure at.

    Parameters
    ----------
    client : distributed.Client
        Connected with the cluster.
    equip : callable, optional
        Called once on each worker with the folder that is its own.

    Attributes
    ----------
    flying : dict of Place to Job
        What is being done now.

    Raises
    ------
    UnsupportedError
        If there is no worker.
    GpubenchError
        If a worker can't be used, or the scheduler is gone; the message says so.
    """

    def __init__(self, client: Client, equip: Callable[[Path], object] | None = None) -> None:
        self._client = client
        self._equip = equip
        self._places: dict[str, Place] = {}
        self._flights: dict[Place, _Flight] = {}
        self._losses: Counter[str] = Counter()
        self._wait_for_workers(CONNECT_TIMEOUT)

    @property
    def places(self) -> tuple[Place, ...]:
        """All places, in the order in which they were found."""
        return tuple(dict.fromkeys(self._places.values()))

    @property
    def flying(self) -> dict[Place, Job]:
        """What is being done, and where."""
        return {place: flight.job for place, flight in self._flights.items()}

    def run(
        self, work: Callable[[Any], object], next_job: Callable[[Place], Job | None]
    ) -> Iterator[Answer]:
        """Give jobs to places until there are none left.

        Parameters
        ----------
        work : callable
            Called on a worker with a job's payload, while no other job is done at its place.
        next_job : callable
            Returns what a place is to do next, or None if there is nothing for it now. Jobs that
            are `flying` must be left out; those whose worker has died aren't any more.

        Yields
        ------
        Answer
            One for each job, as it comes.

        Raises
        ------
        UnsupportedError
            If there is no worker any more, and none comes.
        GpubenchError
            If a new worker can't be used, or the scheduler is gone.
        """
        try:
            while self._launch(work, next_job):
                self._wait()
                self._look()
                yield from self._landed()
                if not self._places:
                    self._wait_for_workers(PATIENCE)
        finally:
            self._client.cancel([flight.future for flight in self._flights.values()])
            self._flights.clear()

    def _launch(
        self, work: Callable[[Any], object], next_job: Callable[[Place], Job | None]
    ) -> bool:
        """Give jobs to the places that are free; return whether anything is being done."""
        for place in self.places:
            job = None if place in self._flights else next_job(place)
            if job is not None:
                worker = next(address for address, at in self._places.items() if at == place)
                future = self._client.submit(
                    _alone,
                    work,
                    place,
                    job.payload,
                    key=f"gpubench-{secrets.token_hex(16)}",
                    workers=[worker],
                    pure=False,
                )
                self._flights[place] = _Flight(job, worker, future)
        return bool(self._flights)

    def _wait(self) -> None:
        import distributed

        futures = [flight.future for flight in self._flights.values()]
        with (
            self._client.as_current(),  # or wait() would take the process's default client
            suppress(distributed.TimeoutError, distributed.CancelledError),
        ):
            distributed.wait(futures, timeout=_POLL_TIME, return_when="FIRST_COMPLETED")

    def _landed(self) -> Iterator[Answer]:
        """Yield what has been answered by now, and see what won't be."""
        for place, flight in list(self._flights.items()):
            is_done = flight.future.done()
            if not is_done and flight.worker in self._places:
                continue
            del self._flights[place]
            answer = self._answer(place, flight) if is_done else None
            flight.future.cancel()
            if answer is None:
                self._losses[flight.job.key] += 1
                if self._losses[flight.job.key] < MAX_LOSSES:
                    continue
                words = f"{MAX_LOSSES} workers ended while they did this"
                answer = Answer(flight.job, place, error=GpubenchError(words))
            yield answer

    def _answer(self, place: Place, flight: _Flight) -> Answer | None:
        """Return a job's answer; None if it was lost on the way."""
        import distributed

        try:
            value = flight.future.result(timeout=_FETCH_TIMEOUT)
        except UnequippedError:
            self._places.pop(flight.worker, None)
        except (
            distributed.KilledWorker,
            distributed.CancelledError,
            distributed.TimeoutError,
        ):
            pass
        except Exception as error:  # noqa: BLE001  # whatever the work raises
            return Answer(flight.job, place, error=error)
        else:
            return Answer(flight.job, place, value)
        return None

    def _look(self) -> None:
        """See which workers there are."""
        try:
            alive = self._client.nthreads()
        except OSError as error:
            raise GpubenchError(f"the Dask scheduler can't be reached any more: {error}") from error
        self._places = {a: place for a, place in self._places.items() if a in alive}
        self._meet([address for address in alive if address not in self._places])

    def _meet(self, addresses: list[str]) -> None:
        if not addresses:
            return
        reports = self._client.run(_report, self._equip, workers=addresses, on_error="return")
        for address, report in reports.items():
            if isinstance(report, OSError):  # it is gone again
                continue
            if isinstance(report, Exception):
                raise GpubenchError(
                    f"the worker {address} can't be used: {type(report).__name__}: {report}; it "
                    f"needs gpubench {gpubench.__version__}, and what is measured"
                ) from report
            version, place = report
            if version != gpubench.__version__:
                raise GpubenchError(
                    f"the worker {address} has gpubench {version}, and here it is "
                    f"{gpubench.__version__}: install the same everywhere"
                )
            self._places[address] = place

    def _wait_for_workers(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            self._look()
            if self._places:
                return
            if time.monotonic() > deadline:
                raise UnsupportedError(
                    f"the Dask scheduler {self._client.scheduler.address} has no worker; start "
                    "some with 'dask cuda worker ADDRESS', one for each GPU of a machine, or with "
                    "'dask worker ADDRESS --nworkers 1' where there is no GPU"
                )
            time.sleep(_POLL_TIME / 4)


def _report(equip: Callable[[Path], object] | None, dask_worker: Any) -> tuple[str, Place]:
    """Return, on a worker, what it can be used for."""
    if equip is not None:
        try:
            equip(Path(dask_worker.local_directory))
        except OSError as error:  # which would look like the connection's
            raise GpubenchError(f"it can't write its files: {error}") from error
    return gpubench.__version__, this_place()


def _alone(work: Callable[[Any], object], place: Place, payload: Any) -> object:
    """Do, on a worker, what nobody else may disturb."""
    from distributed import Lock

    with Lock(f"gpubench: {place.host} {place.gpu or 'CPU'}"):
        try:
            return work(payload)
        except (KeyboardInterrupt, SystemExit) as error:  # which would end the worker
            raise GpubenchError(f"{type(error).__name__}: {error}") from error
