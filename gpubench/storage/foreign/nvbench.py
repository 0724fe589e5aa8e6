"""JSON files of NVBench and its Python package cuda-bench: ``--json`` and ``--jsonbin``.

A benchmark has a state for each combination of its axes and devices, and a state has summaries,
each with a tag and named values; numbers stand there as text. With ``--jsonbin``, a summary
names the file in which the samples lie: GPU times of isolated calls, little-endian 32-bit floats
in seconds, in a folder beside the JSON file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from gpubench.arguments import text, whole_number
from gpubench.errors import ArgumentError
from gpubench.reading import mapping
from gpubench.storage.document import Document
from gpubench.storage.foreign.common import (
    NO_SAMPLES,
    device_result,
    host_result,
    numbers,
    or_unavailable,
)
from gpubench.storage.record import Record, SavedResults

TOOL = "nvbench"

_GPU, _CPU = "nv/cold", "nv/cpu_only"
"""How the tags of a state's measurement begin: of a GPU, or of the host alone."""

_STATISTICS = {
    "mean": "mean_s",
    "median": "median_s",
    "stdev/absolute": "std_s",
    "min": "min_s",
    "max": "max_s",
    "q1": "q25_s",
    "q3": "q75_s",
}


def wrote(value: Any) -> bool:
    """Whether NVBench wrote the file that holds this."""
    return isinstance(value, Mapping) and {"devices", "benchmarks"} <= value.keys()


def read(document: Document) -> SavedResults:
    """Return a record for each state of each benchmark."""
    devices = {device.get("id"): _device(device) for device in _mappings("devices", document.value)}
    return SavedResults(
        records=tuple(_records(document, devices)),
        environment={"devices": list(devices.values())},
        format=TOOL,
        version=_version(document.value.get("meta")),
    )


def _records(document: Document, devices: Mapping[Any, dict[str, Any]]) -> Iterator[Record]:
    for benchmark in _mappings("benchmarks", document.value):
        name = text("benchmarks: name", benchmark.get("name"))
        states = _mappings("states", benchmark)
        on_several = len({state.get("device") for state in states}) > 1
        for state in states:
            record = partial(_record, name, state, document.path, devices, on_several)
            yield or_unavailable(name, record)


def _record(
    name: str,
    state: Mapping[str, Any],
    path: str,
    devices: Mapping[Any, dict[str, Any]],
    on_several: bool,
) -> Record:
    device = state.get("device")
    params = {each["name"]: each["value"] for each in _named_values("axis_values", state)}
    if on_several:
        params["device"] = device
    if state.get("is_skipped"):
        reason = str(state.get("skip_reason") or "")
        return Record(name=name, params=params, status="skipped", reason=reason)
    summaries = {
        summary.get("tag"): {each["name"]: each["value"] for each in _named_values("data", summary)}
        for summary in _mappings("summaries", state)
    }
    is_gpu = not any(str(tag).startswith(_CPU) for tag in summaries)
    summary = _summary(summaries, is_gpu)
    files = summaries.get(f"nv/json/bin:{_GPU if is_gpu else _CPU}/sample_times")
    try:
        if files is None:
            raise ArgumentError(f"{NO_SAMPLES}: run it with --jsonbin")
        times = _samples(Path(path).parent, files)
    except ArgumentError as error:
        if not summary:
            return Record(name=name, params=params, status="unavailable", reason="no times")
        return Record(name=name, params=params, reason=str(error), summary=summary)
    if not is_gpu:
        return Record(name=name, params=params, result=host_result(name, times, TOOL, {}))
    known = devices.get(device)
    environment = {"devices": [known] if known else []}
    number = whole_number("device", 0 if device is None else device, at_least=0)
    # It empties the L2 cache before each isolated call.
    result = device_result(name, times, TOOL, environment, device=number, cache="cold")
    return Record(name=name, params=params, result=result, summary=summary)


def _summary(summaries: Mapping[Any, Mapping[str, Any]], is_gpu: bool) -> dict[str, float]:
    """Return the statistics that stand in the file."""
    prefix = f"{_GPU}/time/gpu" if is_gpu else f"{_CPU}/time/cpu"
    tags = {f"{prefix}/{statistic}": key for statistic, key in _STATISTICS.items()}
    if is_gpu:
        tags[f"{_GPU}/time/cpu/mean"] = "cpu_mean_s"
        tags["nv/batch/time/gpu/mean"] = "batch_mean_s"
    tags[f"{_GPU if is_gpu else _CPU}/sample_size"] = "n"
    return numbers({key: summaries.get(tag, {}).get("value") for tag, key in tags.items()})


def _samples(folder: Path, files: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the samples from the file in a folder beside the JSON file.

    The path is as the benchmark was told it, from the folder in which it ran; so only the last
    folder and the name are taken from it. That also keeps a file from having others read.
    """
    *_, parent, name = ("", "", *PureWindowsPath(text("filename", files.get("filename"))).parts)
    size = whole_number("size", files.get("size", 0), at_least=1)
    if ".." in (parent, name):
        raise ArgumentError(f"its samples lie in a file of an unusual name: {name!r}")
    path = folder / parent / name
    try:
        if not path.is_file():
            raise ArgumentError(f"its samples are missing: there is no file {str(path)!r}")
        with path.open("rb") as file:
            content = file.read(4 * size + 1)
    except OSError as error:
        raise ArgumentError(f"its samples can't be read from {str(path)!r}: {error}") from error
    if len(content) != 4 * size:
        raise ArgumentError(f"its samples, {size} numbers, don't fill the file {str(path)!r}")
    times = np.frombuffer(content, "<f4").astype(np.float64)
    if not np.isfinite(times).all():
        raise ArgumentError(f"its samples in {str(path)!r} aren't all finite")
    return times


def _named_values(key: str, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return names and values; numbers that stand there as text become numbers."""
    convert = {"int64": int, "float64": float}
    for each in _mappings(key, values):
        name, value = text(f"{key}: name", each.get("name")), each.get("value")
        try:
            yield {"name": name, "value": convert.get(str(each.get("type")), _same)(value)}
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{key}: {name} must be a number, got {value!r}") from error


def _same(value: Any) -> Any:
    return value


def _mappings(key: str, values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = values.get(key) or []  # what is empty stands there as null
    if not isinstance(items, list):
        raise ArgumentError(f"{key} must be a list, got {items!r:.60}")
    return [mapping(key, item) for item in items]


def _device(values: Mapping[str, Any]) -> dict[str, Any]:
    architecture = values.get("sm_version")
    known = {
        "id": values.get("id"),
        "name": values.get("name"),
        "memory_bytes": values.get("global_memory_size"),
        "l2_bytes": values.get("l2_cache_size"),
    }
    if isinstance(architecture, int):
        known["compute_capability"] = f"{architecture // 100}.{architecture // 10 % 10}"
    return {key: value for key, value in known.items() if value is not None}


def _version(meta: Any) -> int:
    """Return the major version of the file's format; 0 before it had one."""
    try:
        return int(meta["version"]["json"]["major"])
    except (KeyError, TypeError, ValueError):
        return 0
