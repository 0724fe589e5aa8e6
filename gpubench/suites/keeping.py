"""A run's file: written again and again while the run lasts, read when it goes on."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from gpubench import storage
from gpubench.environment import describe_run
from gpubench.errors import ArgumentError
from gpubench.storage import Record, SavedResults
from gpubench.storage.files import shared_environment
from gpubench.storage.pace import Pace


class Keeper:
    """Saves a run's records.

    Parameters
    ----------
    path : str, path-like or None
        The file; None to keep nothing.
    suite : str
        The folder of the suite.
    quick : bool
        How it is run.
    environment : mapping of str to object
        What is known ahead of where it is run.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        suite: str,
        quick: bool,
        environment: Mapping[str, object],
    ) -> None:
        self._path = path
        self._suite = {"path": suite, "quick": quick}
        self._run = {
            **environment,
            **describe_run(_now(), suite),
            "suite": self._suite,
        }
        self._pace = Pace()

    def earlier(self) -> SavedResults | None:
        """Return what an earlier run left, if it left anything.

        Raises
        ------
        ArgumentError
            If that run was of another kind, so that its results can't stand beside this one's.
        """
        if self._path is None:
            raise ArgumentError("resume=True needs the file of the earlier run: give save, too")
        if not os.path.exists(self._path):
            return None
        saved = storage.load(self._path)
        there, here = saved.environment.get("suite"), self._suite
        if not isinstance(there, Mapping) or there.get("quick") != here["quick"]:
            raise ArgumentError(
                f"save={os.fspath(self._path)!r} is of no run that this one could go on from: its "
                f"suite is {there}, here it is {here}"
            )
        self._run["started"] = saved.environment.get("started", self._run["started"])
        return saved

    def environment(self, records: Sequence[Record]) -> dict[str, object]:
        """Return what is known of the run, and what the records say of theirs alike."""
        date = {"date": _now().isoformat(timespec="seconds")}
        return {**shared_environment(records), **self._run, **date}

    def save(self, records: Sequence[Record]) -> None:
        """Write the file.

        Raises
        ------
        ArgumentError
            If that can't be done.
        """
        if self._path is None:
            return
        try:
            with self._pace.saving():
                storage.save(self._path, records, environment=self.environment(records))
        except OSError as error:
            raise ArgumentError(
                f"save={os.fspath(self._path)!r} can't be written: {error}"
            ) from error

    def save_if_cheap(self, records: Sequence[Record]) -> None:
        """Write the file, unless it was just now, or can't be: it may be possible at the end."""
        if self._pace.is_due:
            with suppress(ArgumentError):
                self.save(records)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)
