"""What several ranks measured together, as one result: the slowest rank's times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpubench import notes
from gpubench.notes import Note
from gpubench.result import BenchmarkResult

_IMBALANCED = 0.1


def slowest_rank(results: Sequence[BenchmarkResult]) -> BenchmarkResult:
    """Return the result whose times are the slowest rank's, sample by sample."""
    busy = [result.busy_times for result in results]
    is_known = all(len(rows) for rows in busy)
    joined = replace(
        results[0],
        cpu_times=np.max([result.cpu_times for result in results], axis=0),
        gpu_times=np.max([result.gpu_times for result in results], axis=0),
        busy_times=np.max(busy, axis=0) if is_known else np.empty((0, results[0].cpu.n)),
        floor=_largest([result.floor for result in results]),
        clock_step=_largest([result.clock_step for result in results]),
        first_call_time=_largest([result.first_call_time for result in results]),
        first_call_compile_time=_largest([result.first_call_compile_time for result in results]),
        ranks=tuple(results),
    )
    return replace(joined, notes=(*_notes_of_ranks(joined), *_merged_notes(results)))


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _notes_of_ranks(joined: BenchmarkResult) -> Iterator[Note]:
    """Make the notes on how the ranks get along."""
    if joined.imbalance is not None and joined.imbalance > _IMBALANCED:
        slowest = int(np.argmax(joined.rank_medians))
        yield notes.imbalanced(slowest, float(joined.rank_medians[slowest]), joined.imbalance)
    users: dict[str, list[int]] = {}
    for rank, result in enumerate(joined.ranks):
        for gpu in _gpus(result):
            users.setdefault(gpu, []).append(rank)
    for gpu, ranks in users.items():
        if len(ranks) > 1:
            yield notes.shared_gpu(ranks, gpu)


def _gpus(result: BenchmarkResult) -> list[str]:
    """Name the GPUs that a result was taken on, so that no two have the same name."""
    known: Any = result.environment
    return [
        f"{known['host']} {device['pci_bus_id']}"
        for device in known.get("devices", ())
        if device.get("pci_bus_id")
    ]


def _merged_notes(results: Sequence[BenchmarkResult]) -> Iterator[Note]:
    """Return each kind of note once, in the words of the first rank that has it."""
    found: dict[str, dict[int, Note]] = {}
    for rank, result in enumerate(results):
        for note in result.notes:
            found.setdefault(note.code, {}).setdefault(rank, note)
    for by_rank in found.values():
        note = next(iter(by_rank.values()))
        if len(by_rank) < len(results):
            where = f"rank{'s'[: len(by_rank) - 1]} {', '.join(map(str, by_rank))}"
            note = replace(note, message=f"On {where}: {note.message}")
        yield note
