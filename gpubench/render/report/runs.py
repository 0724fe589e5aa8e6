"""What a report is made of: runs, each of them from a file of results or of a sweep."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import PurePath
from typing import Any

from gpubench.errors import ArgumentError
from gpubench.reading import mapping
from gpubench.render.report.observations import Observation, of_records, of_sweep
from gpubench.storage import Record, SavedResults, load
from gpubench.storage.document import read_document
from gpubench.storage.files import shared_environment
from gpubench.sweeps.plain import measurement_from_dict


@dataclass(frozen=True)
class Run:
    """One file.

    Attributes
    ----------
    label : str
        What it is called in the report; no other run is called so.
    saved : SavedResults
        Its benchmarks; of a sweep one for each measurement.
    observations : tuple of Observation
        What curves can be drawn of.
    """

    label: str
    saved: SavedResults
    observations: tuple[Observation, ...]

    @cached_property
    def records(self) -> dict[str, Record]:
        """The records by their keys."""
        return dict(zip(self.saved.keys, self.saved.records, strict=True))

    @cached_property
    def environment(self) -> Mapping[str, object]:
        """The file's, or if it has none, what its results agree on."""
        return self.saved.environment or shared_environment(self.saved.records)


def read_runs(paths: Sequence[str | PathLike[str]]) -> list[Run]:
    """Read the files of a report.

    Parameters
    ----------
    paths : sequence of path
        What `gpubench.load` takes, or the JSON of a `SweepResult`.

    Raises
    ------
    ArgumentError
        If one can't be read; the message names it.
    """
    labels = _labels([os.fspath(path) for path in paths])
    return [_read(path, label) for path, label in zip(paths, labels, strict=True)]


def _read(path: str | PathLike[str], label: str) -> Run:
    document = read_document(path)
    value = document.value
    if not (isinstance(value, Mapping) and value.keys() >= {"measurements", "parameters"}):
        saved = load(path)
        return Run(label, saved, tuple(of_records(saved.records)))
    try:
        records = tuple(_measured(value))
        observations = tuple(of_sweep(value))
        environment = mapping("environment", value.get("environment") or {})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{document.path!r} can't be read as a sweep, whose form it has in part: {error}"
        ) from error
    saved = SavedResults(records=records, environment=environment, path=document.path)
    return Run(label, saved, observations)


def _measured(sweep: Mapping[str, Any]) -> Iterator[Record]:
    """Yield a record for each measurement of a sweep."""
    name = str(sweep.get("name", "sweep"))
    for values in sweep["measurements"]:
        each = measurement_from_dict(values)
        yield Record(
            name=name if each.region == name else f"{name}.{each.region}",
            params=each.config,
            status=each.status,
            reason=each.error,
            result=each.result,
        )


def _labels(paths: Sequence[str]) -> list[str]:
    """Return for each path as few of its last parts as tell it from the others."""
    parts = [PurePath(path).parts or (path,) for path in paths]
    longest = max(map(len, parts), default=0)
    for n in range(1, longest + 1):
        labels = [os.path.join(*each[-n:]) for each in parts]
        if len(set(labels)) == len(labels):
            return labels
    return [f"{path} #{number}" for number, path in enumerate(paths, start=1)]
