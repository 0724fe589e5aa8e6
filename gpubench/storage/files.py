"""Files of results: written whole or not at all, and read whoever wrote them."""

from __future__ import annotations

import gzip
import json
import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

from gpubench.arguments import shown, whole_number
from gpubench.environment import git_state, shared
from gpubench.errors import ArgumentError
from gpubench.files import replacing
from gpubench.reading import mapping
from gpubench.result import BenchmarkResult
from gpubench.storage.document import Document, read_document, short_message
from gpubench.storage.foreign import read_foreign
from gpubench.storage.record import FORMAT, VERSION, Record, SavedResults, as_record
from gpubench.storage.schema import file_to_dict, record_from_dict


def save(
    path: str | PathLike[str],
    records: Iterable[Record | BenchmarkResult] | Record | BenchmarkResult,
    *,
    environment: Mapping[str, object] | None = None,
) -> None:
    """Write results to a file, whole or not at all.

    Parameters
    ----------
    path : str or path-like
        Replaced if it is there. A name that ends in ``.gz`` makes a compressed file.
    records : iterable of Record or BenchmarkResult
        In the order in which they ran.
    environment : mapping of str to object, optional
        Of the run, as plain JSON values; what all results agree on in their own environments is
        added. By default, that alone and, if they are of this host, the state of the git
        repository around the current folder.

    Raises
    ------
    ArgumentError
        If there is something else among the records, or the environment isn't plain JSON.
    OSError
        If the file can't be written; what was there stays.
    """
    if isinstance(records, (Record, BenchmarkResult)):
        records = [records]
    if not isinstance(records, Iterable):
        raise ArgumentError(f"records must be a list of Record, got {shown(records)}")
    kept = [as_record(record) for record in records]
    origin = shared_environment(kept)
    if environment is not None:
        origin |= mapping("environment", environment)
    elif origin.get("host") == platform.node():
        origin["git"] = git_state()
    try:
        text = json.dumps(file_to_dict(kept, origin), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"environment must hold plain JSON values: {error}") from error
    content = text.encode() + b"\n"
    if fspath(path).endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    with replacing(path) as file:
        file.write(content)


def load(path: str | PathLike[str]) -> SavedResults:
    """Read a file of results.

    Parameters
    ----------
    path : str or path-like
        A file that `save` wrote, in this release or another; the JSON of one
        `BenchmarkResult.to_dict` or of a list of them; or a file of pytest-benchmark
        (``--benchmark-json``, ``--benchmark-autosave``), of NVBench and cuda-bench (``--json``,
        ``--jsonbin``) or of asv (``results/<machine>/<commit>-<environment>.json``). It may be
        compressed by gzip.

    Returns
    -------
    SavedResults
        A record for each benchmark. One that can't be read is ``"unavailable"``, with the reason.

    Raises
    ------
    ArgumentError
        If there is no such file, or it can't be read, is none of these, damaged, or of a newer
        format; the message names the path and, where there is one, the place in the file.
    """
    document = read_document(path)
    try:
        saved = _own(document) or read_foreign(document)
        environment = _finite(saved.environment) if saved else {}
    except ArgumentError as error:
        raise ArgumentError(f"{document.path!r} can't be read: {short_message(error)}") from error
    except RecursionError as error:
        raise ArgumentError(f"{document.path!r} is nested too deeply") from error
    if saved is None:
        raise ArgumentError(
            f"{document.path!r} is JSON, but no file of results of gpubench, pytest-benchmark, "
            f"NVBench or asv: {_described(document.value)}"
        )
    return replace(saved, path=document.path, environment=environment)


def shared_environment(records: Iterable[Record]) -> dict[str, Any]:
    """Return what all results say of their environment alike."""
    return shared([each.result.environment for each in records if each.result is not None])


def _own(document: Document) -> SavedResults | None:
    """Return what gpubench wrote, None if it is another's."""
    value = document.value
    if isinstance(value, Mapping) and value.get("format") == FORMAT:
        version = whole_number("version", value.get("version", 0), at_least=1)
        if version > VERSION:
            raise ArgumentError(
                f"its format has version {version}, and this release knows those up to {VERSION}: "
                "install a newer gpubench"
            )
        records = value.get("records")
        if not isinstance(records, list):
            raise ArgumentError(f"records must be a list, got {records!r:.60}")
        environment = mapping("environment", value.get("environment") or {})
    else:
        version, environment = 0, None
        records = value if isinstance(value, list) else [value]
        if not all(isinstance(each, Mapping) and "name" in each for each in records):
            return None
        if isinstance(value, Mapping) and not {"cpu_times_s", "status"} & value.keys():
            return None
    if document.not_finite:
        raise ArgumentError(f"it holds {document.not_finite}, which is not JSON")
    read = tuple(_records(records))
    if environment is None:
        environment = shared_environment(read)
    return SavedResults(records=read, environment=environment, format=FORMAT, version=version)


def _records(values: Iterable[Any]) -> Iterable[Record]:
    for number, value in enumerate(values):
        try:
            yield record_from_dict(value)
        except ArgumentError as error:
            raise ArgumentError(f"records[{number}]: {error}") from error


def _finite(value: Any) -> Any:
    """Return a JSON value, null in the place of each number that isn't finite."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _described(value: object) -> str:
    if isinstance(value, Mapping):
        keys = ", ".join(repr(key) for key in list(value)[:5])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)} values, not all of which are results with a name"
    return f"{value!r:.60}"
