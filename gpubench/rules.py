"""The diagnoses: rules that look at the evidence of a run for what makes its numbers hard to trust.

Each function in `RULES` is one kind of note: its rule, its threshold and its advice stand there
and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.compilation import Compilation
from gpubench.devices.nvml import DeviceState
from gpubench.notes import Note
from gpubench.render.units import format_time
from gpubench.stats import Statistics


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a run leaves for the rules to look at.

    Attributes
    ----------
    method : str
        How the samples were taken.
    asked : str
        The `method` that the caller asked for.
    cpu : Statistics
        Of the host's times, in seconds.
    gpu : sequence of Statistics
        Of each device's times, in seconds.
    devices : sequence of int
        Ids of the devices, in the order of `gpu`.
    floor, clock_step, first_call_time, first_call_compile_time : float or None
        Seconds, as in `BenchmarkResult`.
    compilations : sequence of Compilation
        What CuPy compiled while samples were taken.
    n_expired : int
        How many samples were taken behind a gate that its deadline opened.
    pool_growth_bytes : int
        By how much the frameworks' memory pools grew while samples were taken.
    states : sequence of (DeviceState or None, DeviceState or None)
        Each device's state before and after the samples.
    n_unattributed : int
        How much the devices did meanwhile for threads that made none of the calls.
    n_dropped : int
        How many records of what the devices did were lost.
    """

    method: str
    asked: str
    cpu: Statistics
    gpu: Sequence[Statistics]
    devices: Sequence[int] = ()
    floor: float | None = None
    clock_step: float | None = None
    first_call_time: float | None = None
    first_call_compile_time: float | None = None
    compilations: Sequence[Compilation] = ()
    n_expired: int = 0
    pool_growth_bytes: int = 0
    states: Sequence[tuple[DeviceState | None, DeviceState | None]] = ()
    n_unattributed: int = 0
    n_dropped: int = 0

    @property
    def longest(self) -> Statistics:
        """The times of the busiest device; of the host where there is none."""
        return max(self.gpu, key=lambda s: s.median) if self.gpu else self.cpu


def no_gpu_work(evidence: Evidence) -> Note | None:
    """Behind a gate, no device's median is over the floor by more than a tenth of it."""
    floor = evidence.floor
    if evidence.method != "gated" or not evidence.gpu or floor is None:
        return None
    if evidence.longest.median > 1.1 * floor:
        return None
    return Note(
        "no-gpu-work",
        f"The GPU time {format_time(evidence.longest.median)} is what an empty call reads "
        f"({format_time(floor)}): no work on the GPU was seen.",
        "Check that the function launches something on the devices that are timed.",
    )


def no_activity(evidence: Evidence) -> Note | None:
    """Nothing that a device did is recorded for any of the calls."""
    if evidence.method != "cupti" or evidence.longest.max > 0:
        return None
    return Note(
        "no-activity",
        "No kernel, copy or set was recorded for any of the calls.",
        "Check that the function works on the devices that are timed, and launches from the "
        "thread that calls it.",
    )


def other_threads(evidence: Evidence) -> Note | None:
    """The devices worked for threads other than the one that made the calls."""
    if not evidence.n_unattributed:
        return None
    return Note(
        "other-threads",
        f"The devices did {evidence.n_unattributed} things for other threads, which no call can "
        "be credited with.",
        "If the function launches from threads of its own, use method='gated'.",
    )


def dropped_records(evidence: Evidence) -> Note | None:
    """Records were lost for want of room."""
    if not evidence.n_dropped:
        return None
    return Note(
        "dropped-records",
        f"Records of what the devices did were lost, {evidence.n_dropped:,} of them, so some calls "
        "seem to have taken less time than they did.",
        "Use method='gated', or calls that launch less.",
    )


def near_floor(evidence: Evidence) -> Note | None:
    """The busiest device's median is under ten floors."""
    floor = evidence.floor
    if not evidence.gpu or floor is None or no_gpu_work(evidence):
        return None
    median = evidence.longest.median
    if median >= 10 * floor:
        return None
    if evidence.asked == "events":
        advice = "Use method='gated' (the default), whose floor is lower and steadier."
    elif evidence.method == "gated" and evidence.asked != "graph":
        advice = (
            "Use method='cupti', which has no floor, or method='graph', which shares the events "
            "between twenty calls."
        )
    elif evidence.asked == "graph":
        advice = "Use method='cupti', which has no floor, or time several calls in one function."
    else:
        advice = "Time several calls in one function."
    return Note(
        "near-floor",
        f"The GPU time {format_time(median)} is near the {format_time(floor)} that an empty call "
        "reads; the difference is part of it and is not subtracted.",
        advice,
    )


def coarse_clock(evidence: Evidence) -> Note | None:
    """The busiest device's median is under fifty steps of the event clock."""
    step = evidence.clock_step
    if not evidence.gpu or step is None or no_gpu_work(evidence):
        return None
    if evidence.longest.median >= 50 * step:
        return None
    return Note(
        "coarse-clock",
        f"The event clock moves in steps of {format_time(step)}, which is "
        f"{step / max(evidence.longest.median, step):.1%} of the GPU time.",
        "Use method='graph', or time several calls in one function.",
    )


def launch_bound(evidence: Evidence) -> Note | None:
    """The host needs more than twice the GPU's time to queue the call."""
    if evidence.method != "gated" or not evidence.gpu or no_gpu_work(evidence):
        return None
    cpu, gpu = evidence.cpu.median, evidence.longest.median
    if cpu <= 2 * gpu:
        return None
    return Note(
        "launch-bound",
        f"The host takes {format_time(cpu)} to queue {format_time(gpu)} of GPU work: in a loop "
        "of such calls the GPU would mostly wait.",
        "Fuse kernels, capture a CUDA graph, or give each call more work.",
    )


def launch_included(evidence: Evidence) -> Note | None:
    """Events on an idle stream were asked for, and the host takes over 2 % of their time.

    Such events read about twice as much too long as the launch of one kernel takes.
    """
    if evidence.asked != "events" or not evidence.gpu:
        return None
    cpu, gpu = evidence.cpu.median, evidence.longest.median
    if cpu < 0.02 * gpu:
        return None
    return Note(
        "launch-included",
        f"The stream was idle when each call began, so the GPU time {format_time(gpu)} includes "
        f"much of the {format_time(cpu)} that the host took to launch it, or more.",
        "Use method='gated' (the default) where the function allows it.",
    )


def unstable(evidence: Evidence) -> Note | None:
    """The middle half of the samples spreads over more than a tenth of the median."""
    times = evidence.longest
    if times.n < 4 or times.median <= 0:
        return None
    spread = (times.q3 - times.q1) / times.median
    step = (evidence.clock_step or 0.0) if evidence.gpu else 0.0
    if spread <= 0.1 or times.q3 - times.q1 <= 2 * step:
        return None
    return Note(
        "unstable",
        f"The middle half of the samples spreads over {spread:.0%} of the median.",
        "Close what else uses the machine, warm up longer, or take more samples.",
    )


def drifting(evidence: Evidence) -> Note | None:
    """The thirds' medians differ by over 2 %, and by over twice the width of the interval."""
    times = evidence.longest
    if times.n < 30 or times.drift is None or times.ci95 is None or times.median <= 0:
        return None
    width = (times.ci95[1] - times.ci95[0]) / times.median
    if abs(times.drift) <= max(0.02, 2 * width):
        return None
    return Note(
        "drifting",
        f"The last third of the samples is {abs(times.drift):.1%} "
        f"{'slower' if times.drift > 0 else 'faster'} than the first.",
        "Warm up longer; compare with compare(), which interleaves.",
    )


def autocorrelated(evidence: Evidence) -> Note | None:
    """The lag-1 autocorrelation of at least 30 samples is over one half."""
    times = evidence.longest
    if times.n < 30 or times.autocorrelation is None or times.autocorrelation <= 0.5:
        return None
    return Note(
        "autocorrelated",
        f"Successive samples resemble each other (lag-1 correlation "
        f"{times.autocorrelation:.2f}), so the interval of the median is too narrow.",
        "Compare blocks of samples, as compare() does.",
    )


def slow_first_call(evidence: Evidence) -> Note | None:
    """The first call took over 10 ms, and over fifty times a later one."""
    first = evidence.first_call_time
    usual = evidence.cpu.median + (evidence.longest.median if evidence.gpu else 0.0)
    if first is None or first <= max(10e-3, 50 * usual):
        return None
    compiling = evidence.first_call_compile_time
    share = f", {format_time(compiling)} of it to compile" if compiling else ""
    return Note(
        "slow-first-call",
        f"The first call took {format_time(first)}{share}, against {format_time(usual)} later; "
        "it compiled, loaded or allocated, and is not in the samples.",
    )


def compiled_late(evidence: Evidence) -> Note | None:
    """CuPy compiled something while samples were taken."""
    if not evidence.compilations:
        return None
    names = dict.fromkeys(name for each in evidence.compilations for name in each.names)
    listed = f" ({', '.join(names)})" if names else ""
    total = sum(each.wall_time for each in evidence.compilations)
    return Note(
        "compiled-late",
        f"CuPy spent {format_time(total)} on compiling{listed} while samples were taken.",
        "Warm up longer, and keep shapes, dtypes and the kernels' source the same in each call.",
    )


def expired_gate(evidence: Evidence) -> Note | None:
    """A gate's deadline passed while samples were taken."""
    if not evidence.n_expired:
        return None
    return Note(
        "expired-gate",
        f"Up to {evidence.n_expired} of {evidence.cpu.n} samples were queued too slowly for their "
        "gate, and may include launch time.",
        "Look whether the function sometimes waits for the GPU.",
    )


def pool_growth(evidence: Evidence) -> Note | None:
    """A memory pool grew while samples were taken."""
    if evidence.pool_growth_bytes <= 0:
        return None
    return Note(
        "pool-growth",
        f"The memory pool grew by {evidence.pool_growth_bytes / 2**20:.1f} MiB while samples "
        "were taken; new device memory makes calls slow.",
        "Warm up longer, or reuse output arrays.",
    )


def throttled(evidence: Evidence) -> Note | None:
    """A device says that something slows it down."""
    for device, states in zip(evidence.devices, evidence.states, strict=False):
        reasons = sorted({r for state in states if state for r in state.throttle_reasons})
        if reasons:
            return Note(
                "throttled",
                f"GPU-{device} was slowed down ({', '.join(reasons)}).",
                "Let it cool, or compare only with runs under the same limit.",
            )
    return None


def clock_changed(evidence: Evidence) -> Note | None:
    """A device's clock differs by over 5 % between the start and the end of the samples."""
    for device, (before, after) in zip(evidence.devices, evidence.states, strict=False):
        if before is None or after is None or not before.sm_clock:
            continue
        if abs(after.sm_clock / before.sm_clock - 1) > 0.05:
            return Note(
                "clock-changed",
                f"GPU-{device}'s clock went from {before.sm_clock / 1e6:.0f} to "
                f"{after.sm_clock / 1e6:.0f} MHz while samples were taken.",
                "Warm up longer (n_repeat=None does so by itself).",
            )
    return None


RULES = (
    no_gpu_work,
    no_activity,
    other_threads,
    dropped_records,
    near_floor,
    coarse_clock,
    launch_bound,
    launch_included,
    unstable,
    drifting,
    autocorrelated,
    slow_first_call,
    compiled_late,
    expired_gate,
    pool_growth,
    throttled,
    clock_changed,
)


def diagnose(evidence: Evidence) -> tuple[Note, ...]:
    """Apply every rule in `RULES`, in that order."""
    return tuple(note for rule in RULES if (note := rule(evidence)) is not None)
