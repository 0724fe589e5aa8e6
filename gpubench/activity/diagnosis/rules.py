"""The rules of `diagnose`: each is a function with its threshold, its cost and its advice.

A share is one of the recording's time, from beginning to end. Where devices lose time, the cost
is that of the device that loses most; the others' are mentioned.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpubench.activity import notes
from gpubench.activity.diagnosis.copies import copy_waits, pageable
from gpubench.activity.diagnosis.evidence import Evidence
from gpubench.activity.diagnosis.findings import Finding
from gpubench.activity.diagnosis.idleness import LONG_GAP, added_time
from gpubench.activity.diagnosis.serialization import serialization
from gpubench.devices.records import ACTIVITY_KINDS, KERNEL, MEMCPY
from gpubench.render.units import format_time

TINY = 10_000
"""Nanoseconds; a kernel that takes less is tiny: launching it takes the host about as long."""


def dropped_records(evidence: Evidence) -> Finding | None:
    """Records were lost for want of room."""
    note = notes.dropped_records(evidence.recording)
    if note is None:
        return None
    message = f"{note.message} What is missing looks like idle time, so rely on nothing below."
    return Finding(note.code, message, note.advice)


def slow_recording(evidence: Evidence) -> Finding | None:
    """Taking records over kept the interpreter busy for at least 5 %.

    Cost: that time. It is part of the gaps in which the host was launching or busy.
    """
    cost = round(evidence.recording.delivery_time * 1e9)
    if evidence.share(cost) < 0.05:
        return None
    return Finding(
        "slow-recording",
        f"Recording itself kept the interpreter busy for {evidence.figures(cost)}; gaps are longer "
        "by up to as much.",
        "Record a shorter block or fewer kinds.",
        share=evidence.share(cost),
        cost_time=cost * 1e-9,
    )


def launch_bound(evidence: Evidence) -> Finding | None:
    """A device was idle while the host was launching, for at least 5 %.

    Cost: the gaps in the device's work that ended when the host launched something, and that no
    other rule accounts for. What recording adds to each launch is taken off.
    """
    loss, gaps = evidence.lost(evidence.gaps_by("launch"))
    if evidence.share(loss.cost) < 0.05:
        return None
    added = added_time(evidence.recording)
    text = f" ({format_time(added * 1e-9)} that recording adds to each are left out)"
    left_out = text if added else ""
    return evidence.finding(
        "launch-bound",
        f"GPU-{loss.device} was idle for {evidence.figures(loss.cost)} in "
        f"{_counted(len(gaps), 'gap', 'gaps')}, while the host was launching what came next"
        f"{left_out}.{loss.others}",
        "Capture a CUDA graph, fuse kernels, or give each launch more work.",
        cost=loss.cost,
        table="activities",
        rows=gaps["activity"],
        costs=gaps["lost"],
    )


def host_busy(evidence: Evidence) -> Finding | None:
    """A device was idle while the host did something else than launch or wait, for at least 1 %.

    Cost: the gaps in the device's work in which the host neither launched nor waited for
    `LONG_GAP`, and then launched something.
    """
    loss, gaps = evidence.lost(evidence.gaps_by("host"))
    if evidence.share(loss.cost) < 0.01:
        return None
    return evidence.finding(
        "host-busy",
        f"GPU-{loss.device} was idle for {evidence.figures(loss.cost)} in "
        f"{_counted(len(gaps), 'gap', 'gaps')}, while the host did something else for over "
        f"{format_time(LONG_GAP * 1e-9)} each time.{loss.others}",
        "Prepare input and handle output in another thread, or between launches that keep the "
        "GPU busy.",
        cost=loss.cost,
        table="activities",
        rows=gaps["activity"],
        costs=gaps["lost"],
    )


def synchronizing_copies(evidence: Evidence) -> Finding | None:
    """The host waited for copies, and meanwhile a device did nothing else, for at least 1 %.

    Cost: see `CopyWaits`.
    """
    gaps = evidence.gaps_by("copy")
    by_device = {
        device: copy_waits(evidence.recording, evidence.launches, gaps, device)
        for device in evidence.devices
    }
    loss = evidence.worst({device: each.total for device, each in by_device.items()})
    if evidence.share(loss.cost) < 0.01:
        return None
    waits = by_device[loss.device]
    return evidence.finding(
        "synchronizing-copies",
        f"The host waited for {_counted(len(waits.rows), 'copy', 'copies')}, and "
        f"GPU-{loss.device} did nothing else, for {evidence.figures(loss.cost)}.{loss.others}",
        "Copy less often, or asynchronously from and to pinned memory, and synchronize once at "
        "the end.",
        cost=loss.cost,
        table="activities",
        rows=waits.rows,
        costs=waits.wait_ns,
    )


def synchronizing_calls(evidence: Evidence) -> Finding | None:
    """A device ran dry while the host waited in a call that synchronizes, for at least 1 %.

    Such calls synchronize, allocate memory or free it. Cost: the gaps in the device's work that
    began while the host was in such a call, or of which it spent at least half in one.
    """
    loss, gaps = evidence.lost(evidence.gaps_by("call"))
    if evidence.share(loss.cost) < 0.01:
        return None
    rows, places = np.unique(gaps["wait"], return_inverse=True)
    costs = np.zeros(len(rows), np.int64)
    np.add.at(costs, places, gaps["lost"])
    names = evidence.called(evidence.recording.calls["name"][rows])
    return evidence.finding(
        "synchronizing-calls",
        f"GPU-{loss.device} ran dry and was idle for {evidence.figures(loss.cost)} because the "
        f"host was in calls that wait: {names}.{loss.others}",
        "Synchronize only where a result is needed (.item(), .get() and print do it too), and "
        "take memory from a pool.",
        cost=loss.cost,
        table="calls",
        rows=rows,
        costs=costs,
    )


def pageable_copies(evidence: Evidence) -> Finding | None:
    """Copies from or to pageable memory took at least 1 %.

    Cost: the time in which at least one of them ran.
    """
    activities = evidence.recording.activities
    rows = np.flatnonzero((activities["kind"] == MEMCPY) & pageable(activities))
    copies = activities[rows]
    cost = evidence.union(copies["start"], copies["end"]).total
    if evidence.share(cost) < 0.01:
        return None
    durations = copies["end"] - copies["start"]
    rate = copies["bytes"].sum() / durations.sum()
    return evidence.finding(
        "pageable-copies",
        f"{_counted(len(rows), 'copy', 'copies')} from or to pageable memory took "
        f"{evidence.figures(cost)}, at {rate:.3g} GB/s.",
        "Use pinned memory on the host, which the GPU reads and writes by itself "
        "(cupyx.empty_pinned, torch.Tensor.pin_memory).",
        cost=cost,
        table="activities",
        rows=rows,
        costs=durations,
    )


def null_stream(evidence: Evidence) -> Finding | None:
    """The null stream and others took turns, though ready to run together, for at least 5 %.

    Cost: see `Serialization`. Nothing is said if only the null stream, or none of it, is used.
    """
    by_device = {
        device: serialization(evidence.recording, evidence.launches, device)
        for device in evidence.devices
    }
    loss = evidence.worst({device: each.total for device, each in by_device.items()})
    if evidence.share(loss.cost) < 0.05:
        return None
    found = by_device[loss.device]
    return evidence.finding(
        "null-stream",
        f"Work on GPU-{loss.device}'s null stream and on other streams was held up by each other "
        f"for up to {evidence.figures(loss.cost)}: they never run together.{loss.others}",
        "Unless one needs what the other makes, use streams of your own for all of it, or "
        "non-blocking ones.",
        cost=loss.cost,
        table="activities",
        rows=found.rows,
        costs=found.held_ns,
    )


def compilation(evidence: Evidence) -> Finding | None:
    """CuPy compiled, or read its cache, for at least 1 %.

    Cost: the time in which at least one compilation was under way.
    """
    records = evidence.recording.compilations
    cost = evidence.compiled.total
    if evidence.share(cost) < 0.01:
        return None
    return evidence.finding(
        "compilation",
        f"CuPy spent {evidence.figures(cost)} on compiling; by where the code came from: "
        f"{evidence.called(records['domain'])}.",
        "Warm up before recording, and keep shapes, dtypes and the kernels' source the same.",
        cost=cost,
        table="compilations",
        rows=np.arange(len(records)),
        costs=records["end"] - records["start"],
    )


def tiny_kernels(evidence: Evidence) -> Finding | None:
    """Most kernels, and at least 50, took less than `TINY` and weren't launched by a graph.

    Cost: the gaps before them in the device's work, at least 1 %; those of `launch_bound` count
    here as well, others only up to `LONG_GAP` each.
    """
    activities = evidence.recording.activities
    kernels = activities["kind"] == KERNEL
    tiny = kernels & (activities["graph_id"] == 0)
    tiny &= activities["end"] - activities["start"] < TINY
    n_tiny, n_kernels = np.count_nonzero(tiny), np.count_nonzero(kernels)
    if n_tiny < 50 or 2 * n_tiny <= n_kernels:
        return None
    gaps = evidence.gaps_by("launch", "device")
    gaps = gaps[tiny[gaps["activity"]] & (gaps["end"] - gaps["start"] <= LONG_GAP)]
    loss, gaps = evidence.lost(gaps)
    if evidence.share(loss.cost) < 0.01:
        return None
    return evidence.finding(
        "tiny-kernels",
        f"{n_tiny:,} of {n_kernels:,} kernels took less than {format_time(TINY * 1e-9)} each, and "
        f"GPU-{loss.device} was idle before them for {evidence.figures(loss.cost)}."
        f"{loss.others}",
        "Capture a CUDA graph, whose kernels follow each other without the host, or fuse them.",
        cost=loss.cost,
        table="activities",
        rows=gaps["activity"],
        costs=gaps["lost"],
    )


def no_gpu_work(evidence: Evidence) -> Finding | None:
    """Activities of devices were recorded, and there are none."""
    recording = evidence.recording
    if len(recording.activities) or not set(recording.kinds) & set(ACTIVITY_KINDS):
        return None
    return Finding(
        "no-gpu-work",
        "No device did anything while the block ran.",
        "Check that it launches something.",
    )


def not_recorded(evidence: Evidence) -> Finding | None:
    """Kinds of records that rules look at were not recorded."""
    shown = {
        "kernel": "what kernels did",
        "memcpy": "copies",
        "memset": "what the device did in seeming gaps",
        "runtime": "launches and waits by the runtime",
        "driver": "launches and waits by the driver",
        "compilation": "compilations",
    }
    missing = [kind for kind in shown if kind not in evidence.recording.kinds]
    if not missing:
        return None
    return Finding(
        "not-recorded",
        f"Not recorded, so not looked at: {', '.join(shown[kind] for kind in missing)}.",
        f"Record these kinds as well: {', '.join(map(repr, missing))}.",
    )


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


RULES: tuple[Callable[[Evidence], Finding | None], ...] = (
    dropped_records,
    slow_recording,
    launch_bound,
    host_busy,
    synchronizing_copies,
    synchronizing_calls,
    pageable_copies,
    null_stream,
    compilation,
    tiny_kernels,
    no_gpu_work,
    not_recorded,
)
