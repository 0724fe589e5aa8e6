"""What a sweep measured, in a file from which a later run of it goes on.

The file is lines of strict JSON: the first says which sweep it is of, each other one holds a
configuration with all that was measured in it. A line counts once it is whole. So whenever a
process is killed, the file holds the configurations that it had written by then.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import FileIO
from os import PathLike, fspath
from typing import Any

import gpubench
from gpubench.arguments import text, unique_name
from gpubench.errors import ArgumentError
from gpubench.plain import canonical, has_identity
from gpubench.reading import mapping
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.plain import measurement_from_dict, measurement_to_dict

FORMAT = 1
"""The version of the files; raised when older releases would misread newer ones."""

_CONTENT = "gpubench sweep"

_START = json.dumps({"content": _CONTENT}).encode()[:-1]
"""With what each file begins."""


class Checkpoint:
    """A checkpoint's file, open for writing; `open_checkpoint` makes it.

    Attributes
    ----------
    done : dict of int to tuple of Measurement
        What earlier runs measured in configurations that are done, by the configuration's index.
    """

    def __init__(
        self,
        file: FileIO,
        n_bytes: int,
        keys: Sequence[str],
        done: dict[int, tuple[Measurement, ...]],
    ) -> None:
        self.done = done
        self._file = file
        self._n_bytes = n_bytes
        self._keys = keys

    def write(self, index: int, measurements: Iterable[Measurement]) -> None:
        """Write all that was measured in a configuration; it is safe when this returns.

        Parameters
        ----------
        index : int
            The configuration's index.
        measurements : iterable of Measurement
            One for each region, or the one that says how it failed. What is written later counts.

        Raises
        ------
        OSError
            If it can't be written; what was written before stays.
        """
        values = [measurement_to_dict(measurement) for measurement in measurements]
        self._append({"key": self._keys[index], "measurements": values})

    def _append(self, values: Mapping[str, object]) -> None:
        """Write plain values as a line."""
        line = memoryview(json.dumps(values, allow_nan=False).encode() + b"\n")
        self._file.truncate(self._n_bytes)  # a line that was broken off, by a full disk for example
        left = line
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())
        self._n_bytes += len(line)


@contextmanager
def open_checkpoint(
    path: str | PathLike[str],
    name: str,
    configs: Sequence[Mapping[str, object]],
    options: Mapping[str, object],
) -> Iterator[Checkpoint]:
    """Open the checkpoint of a sweep, and read what is done.

    A configuration is done if none of its measurements failed or was interrupted; others are to
    be measured again. The file may be of a run with more or fewer configurations.

    Parameters
    ----------
    path : str or path-like
        The file. It is made if it isn't there.
    name : str
        The sweep's name.
    configs : sequence of mapping
        The sweep's configurations. Those with values that can't be known again, such as lambdas,
        are measured anew.
    options : mapping
        All else in which two runs have to agree, such as how the times are taken and where.

    Yields
    ------
    Checkpoint
        The open file.

    Raises
    ------
    ArgumentError
        If the file is in use by another process; or it isn't a checkpoint, or one of another
        sweep, with other options, or of a newer release: the message says what differs. The file
        stays as it is.
    OSError
        If it can't be read or written.
    """
    keys = _keys(configs)
    header = _header(name, configs, options)
    with open(path, "a+b", buffering=0) as file:
        _lock(file, path)
        file.seek(0)
        content = file.readall()
        *lines, rest = content.split(b"\n")
        if not (content.startswith(_START) or _START.startswith(content)):
            raise _unusable(path, "is not a checkpoint")
        found = _read(lines, header, path) if lines else {}
        done = {
            index: tuple(replace(each, config=config) for each in found[key])
            for index, (key, config) in enumerate(zip(keys, configs, strict=True))
            if key in found and all(each.status == "ok" for each in found[key])
        }
        checkpoint = Checkpoint(file, len(content) - len(rest), keys, done)
        if not lines:
            checkpoint._append(header)
        yield checkpoint


def _keys(configs: Sequence[Mapping[str, object]]) -> list[str]:
    keys: dict[str, None] = {}
    for config in configs:
        key = canonical(config)
        if not has_identity(config):
            key += f" {secrets.token_hex(8)}"  # what can't be known again is measured again
        keys[unique_name(key, keys)] = None
    return list(keys)


def _header(
    name: str, configs: Sequence[Mapping[str, object]], options: Mapping[str, object]
) -> dict[str, Any]:
    return {
        "content": _CONTENT,
        "format": FORMAT,
        "gpubench": gpubench.__version__,
        "name": name,
        "parameters": list(dict.fromkeys(key for config in configs for key in config)),
        "options": json.loads(canonical(options)),
    }


def _read(
    lines: Sequence[bytes], header: Mapping[str, Any], path: str | PathLike[str]
) -> dict[str, tuple[Measurement, ...]]:
    """Return what whole lines hold of the sweep that has this header, by configurations' keys."""
    found: dict[str, tuple[Measurement, ...]] = {}
    for number, line in enumerate(lines, 1):
        try:
            values = mapping("a line", json.loads(line, parse_constant=_refuse))
            if number > 1:
                found[text("key", values["key"])] = tuple(
                    map(measurement_from_dict, values["measurements"])
                )
        except (ValueError, KeyError, TypeError) as error:
            raise _unusable(path, f"can't be read in line {number}: {error!r}") from error
        if number == 1:
            _compare(values, header, path)
    return found


def _compare(there: Mapping[str, Any], here: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Refuse the header of another sweep."""
    format_there = there.get("format")
    if not isinstance(format_there, int) or format_there > FORMAT:
        raise _unusable(
            path, f"is of format {format_there!r}, newer than {FORMAT}: install a newer gpubench"
        )
    differences = []
    for key in ("name", "parameters"):
        differences += _difference(key, there.get(key), here[key])
    options = there.get("options") or {}
    for key in {**here["options"], **options}:
        differences += _difference(key, options.get(key), here["options"].get(key))
    if differences:
        raise _unusable(path, f"is of another sweep: {'; '.join(differences)}")


def _difference(key: str, there: object, here: object) -> list[str]:
    if there == here:
        return []
    return [f"{key} is {json.dumps(there)} there and {json.dumps(here)} here"]


def _unusable(path: str | PathLike[str], reason: str) -> ArgumentError:
    return ArgumentError(
        f"checkpoint={fspath(path)!r} {reason}; name another file, or remove this one to measure "
        "all anew"
    )


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _lock(file: FileIO, path: str | PathLike[str]) -> None:
    """Keep other processes off while the file is open, where the system can do that."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ArgumentError(
            f"checkpoint={fspath(path)!r} is in use by another sweep; wait for it, or name "
            "another file"
        ) from None
    except (ImportError, OSError):  # Windows, or a file system without locks
        pass
