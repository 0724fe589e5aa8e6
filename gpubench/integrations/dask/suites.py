"""Suites on the workers of a Dask cluster: `gpubench run --scheduler`."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import gpubench
from gpubench.devices.place import Place, places_of
from gpubench.errors import GpubenchError
from gpubench.integrations.dask.archive import packed, unpack
from gpubench.integrations.dask.cluster import Answer, Cluster, Job, UnequippedError
from gpubench.storage import Record
from gpubench.suites.agenda import Agenda
from gpubench.suites.case import Case, Outcome, SuiteFile, Task
from gpubench.suites.discovery import discover
from gpubench.suites.schedule import outcomes

if TYPE_CHECKING:
    from distributed import Client, Worker


@dataclass(frozen=True)
class Suite:
    """A suite as workers have it, each in a folder of its own.

    Attributes
    ----------
    token : str
        Tells this run's folders from those of others.
    name : str
        What the suite's folder is called, by which its modules are imported.
    """

    token: str
    name: str

    def equip(self, archive: bytes, folder: Path) -> None:
        """Write the suite to a worker's folder."""
        unpack(archive, self._root(folder))

    def remove(self, dask_worker: Worker) -> None:
        """Remove the suite from a worker."""
        shutil.rmtree(self._folder(Path(dask_worker.local_directory)), ignore_errors=True)

    @property
    def scratch(self) -> str:
        """A folder for what benchmarks leave to each other on this worker."""
        return str(self._folder(_worker_folder()) / "scratch")

    def file(self, original: SuiteFile) -> SuiteFile:
        """Return one of the suite's files as it is on this worker.

        Raises
        ------
        UnequippedError
            If the suite isn't there.
        """
        root = self._root(_worker_folder())
        if not root.is_dir():
            raise UnequippedError(f"there is no {root}")
        path = root / Path(original.path).relative_to(original.root)
        return SuiteFile(str(root), original.module, str(path))

    def _root(self, folder: Path) -> Path:
        return self._folder(folder) / "suite" / self.name

    def _folder(self, folder: Path) -> Path:
        return folder / f"gpubench-{self.token}"


class DaskScheduler:
    """Runs a suite on a Dask cluster, a benchmark at a time at each place.

    The folder is sent to the workers. All rounds of a benchmark run at one place; if no worker is
    left there, the benchmark begins anew at another.

    Parameters
    ----------
    client : distributed.Client
        Connected with the cluster.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.environment: Mapping[str, object] = {
            "gpubench": gpubench.__version__,
            "scheduler": client.scheduler.address,
        }

    def discover(self, files: Sequence[SuiteFile]) -> tuple[list[Case], list[Record]]:
        """Import the files on a worker, since they may need what isn't here.

        Raises
        ------
        ArgumentError
            If the folder is too large to be sent.
        UnsupportedError
            If there is no worker.
        GpubenchError
            If a worker can't be used.
        """
        root = files[0].root
        self._suite = Suite(secrets.token_hex(8), Path(root).name)
        self._cluster = Cluster(self._client, partial(self._suite.equip, packed(root)))
        answered: list[Answer] = []
        job = Job("discover", (self._suite, tuple(files)))

        def next_job(_: Place) -> Job | None:
            return None if answered or self._cluster.flying else job

        for answer in self._cluster.run(_discover, next_job):
            answered.append(answer)
        (answer,) = answered
        if answer.error is not None:
            raise GpubenchError(
                f"the suite can't be looked through on {answer.place}: {answer.error}"
            ) from answer.error
        originals = {file.module: file for file in files}
        cases, failed = answer.value
        return [replace(case, file=originals[case.file.module]) for case in cases], failed

    def run(self, agenda: Agenda) -> Iterator[Outcome]:
        """Run the tasks, each where a place is free."""
        homes = Homes(agenda, self._cluster.places)

        def next_job(place: Place) -> Job | None:
            busy = {
                case.key for job in self._cluster.flying.values() for case in job.payload[1].cases
            }
            task = agenda.next_benchmark(
                lambda case: (
                    case.key not in busy and homes.has_room(case, place, self._cluster.places)
                )
            )
            if task is None:
                return None
            for case in task.cases:
                homes.settle(case, place)
            key = f"{task.cases[0].key} in round {task.round}"
            return Job(key, (self._suite, task))

        try:
            for answer in self._cluster.run(_outcomes, next_job):
                yield from _answered(answer)
        finally:
            with suppress(OSError):  # of a scheduler that is gone
                self._client.run(self._suite.remove, on_error="ignore")


class Homes:
    """Where each case is measured, so that its rounds can stand in one record.

    Parameters
    ----------
    agenda : Agenda
        Its records tell where cases were measured in an earlier run.
    places : sequence of Place
        Where they can go on.
    """

    def __init__(self, agenda: Agenda, places: Sequence[Place]) -> None:
        self._agenda = agenda
        self._places: dict[str, Place] = {}
        for case in agenda.ledger.cases:
            result = agenda.ledger.record(case).result
            if result is not None:
                self._places[case.key] = _present(places_of(result.environment)[0], places)

    def has_room(self, case: Case, place: Place, places: Sequence[Place]) -> bool:
        """Whether a case may be measured at a place, one of those that there are."""
        home = self._places.get(case.key, place)
        return home == place or home not in places

    def settle(self, case: Case, place: Place) -> None:
        """Have a case measured at a place; anew, if it was begun at another."""
        if self._places.setdefault(case.key, place) != place:
            self._places[case.key] = place
            self._agenda.ledger.restart(case)


def _present(place: Place, places: Sequence[Place]) -> Place:
    """Return the one of the places at which something was measured; else where that was."""
    is_any_gpu = not place.gpu  # what doesn't use a GPU doesn't tell which one it was given
    there = (each for each in places if each.host == place.host)
    return next((each for each in there if is_any_gpu or each.gpu == place.gpu), place)


def _answered(answer: Answer) -> Iterator[Outcome]:
    task: Task = answer.job.payload[1]
    found: Sequence[Outcome] = answer.value or ()
    if answer.error is not None:
        reason = f"{type(answer.error).__name__}: {answer.error}"
        found = [
            Outcome(key=case.key, round=task.round, status="failed", reason=reason)
            for case in task.cases
        ]
    for outcome in found:
        if outcome.status in ("failed", "unavailable"):
            yield replace(outcome, reason=f"{outcome.reason} (on {answer.place})")
        else:
            yield outcome


def _worker_folder() -> Path:
    from distributed import get_worker

    return Path(get_worker().local_directory)


def _discover(payload: tuple[Suite, Sequence[SuiteFile]]) -> tuple[list[Case], list[Record]]:
    suite, files = payload
    return discover([suite.file(file) for file in files])


def _outcomes(payload: tuple[Suite, Task]) -> list[Outcome]:
    suite, task = payload
    file = suite.file(task.file)
    cases = [replace(case, file=file) for case in task.cases]
    return list(outcomes(replace(task, file=file, cases=cases), suite.scratch))
