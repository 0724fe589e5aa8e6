"""The diagnoses: what makes a number hard to trust, and what to do about it.

Each function here is one kind of note: its rule, its threshold and its advice stand there and
nowhere else. Those in `RULES` look at the `Evidence` that every run leaves; the others are
made where a run meets the condition, for example when no gate can be had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.compilation import Compilation
from gpubench.devices.base import GATE_DEADLINE
from gpubench.devices.nvml import DeviceState
from gpubench.render.units import format_time
from gpubench.stats import Statistics


@dataclass(frozen=True)
class Note:
    """One thing that a reader of a result should know.

    Attributes
    ----------
    code : str
        Names the kind of note, for example ``"near-floor"``; stable.
    message : str
        What was seen, with its figures, in one sentence.
    advice : str
        What to do about it, in one sentence; may be empty.
    """

    code: str
    message: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.message} {self.advice}".rstrip()


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
    """Events on an idle stream were asked for, and the host takes over a third of their time."""
    if evidence.asked != "events" or not evidence.gpu:
        return None
    cpu, gpu = evidence.cpu.median, evidence.longest.median
    if cpu < gpu / 3:
        return None
    return Note(
        "launch-included",
        f"The stream was idle when each call began, so the GPU time {format_time(gpu)} includes "
        f"most of the {format_time(cpu)} that the host took to launch it.",
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


def no_gpu(reason: str) -> Note:
    """There is no GPU to be used."""
    return Note("no-gpu", f"No GPU found, so only the host's time was taken: {reason}.")


def no_gate(reason: str) -> Note:
    """Streams can't be held on this platform."""
    return Note(
        "no-gate",
        f"Streams can't be held here, so plain events are used, and the GPU times of short calls "
        f"include their launch: {reason}.",
    )


def not_probed(reason: str) -> Note:
    """Nothing is known about the call when the samples begin."""
    return Note(
        "not-probed",
        f"The call could not be looked at beforehand ({reason}), so plain events on all streams "
        "are used, which count the host's work too.",
        "Allow for a few calls ahead of the samples.",
    )


def no_context_events(reason: str) -> Note:
    """The driver can't record events on every stream at once."""
    return Note("no-context-events", f"Work on side streams can't be seen here: {reason}.", "")


def waits_inside() -> Note:
    """The call didn't return before the gate's deadline."""
    return Note(
        "waits-inside",
        f"Behind a gate the function did not return within {format_time(GATE_DEADLINE)}: it waits "
        "for the GPU, queues more launches than the GPU's queue holds, or keeps the host busy that "
        "long. So plain events are used, which count the host's work too.",
        "Take synchronizing calls (.get(), .item(), print, synchronize()) and long work on the "
        "host out of the function.",
    )


def gaps_included() -> Note:
    """Recorded calls aren't held by a gate."""
    return Note(
        "gaps-included",
        "No gate can hold the calls: they wait for the GPU, queue too much for it, or it can't be "
        "had here. So a GPU time includes gaps in which the GPU waited for the host.",
        "Read the busy times (result.busy), which don't; or take what waits out of the function.",
    )


def side_stream(device: int, context_time: float, stream_time: float) -> Note:
    """Streams other than the current one worked."""
    return Note(
        "side-stream",
        f"The function works on a stream of its own: events on all streams of GPU-{device} are "
        f"{format_time(context_time)} apart, those on the current one {format_time(stream_time)}.",
        "Where method='events' was asked for, its times miss that work; else events on all streams "
        "are used.",
    )


def other_stream(label: str) -> Note:
    """The work went to another framework's current stream than CuPy's."""
    return Note("other-stream", f"The work was timed on {label}, where it ran.")


def no_graph(reason: str) -> Note:
    """The call can't be captured."""
    return Note(
        "no-graph", f"The call can't be captured in a graph, so it is timed gated: {reason}."
    )


def cold_without_gpu() -> Note:
    """A cold cache was asked for where there is none to flush."""
    return Note("no-cold-cache", "There is no GPU cache to flush, so cache='cold' did nothing.")


def sweep_interrupted(n_done: int, n_configs: int) -> Note:
    """Ctrl-C ended a sweep."""
    return Note(
        "sweep-interrupted",
        f"Ctrl-C ended the sweep after {n_done} of {n_configs} configurations.",
        "With checkpoint=, a further run goes on from there.",
    )


def waited_for_heat(n_waits: int, waited_time: float, n_timed_out: int, reason: str) -> Note:
    """Samples waited for a hot GPU, or it couldn't be told whether they had to."""
    if not waited_time:
        return Note("thermal-wait", f"Whether the GPU was too hot can't be told: {reason}.")
    in_vain = f", {n_timed_out} times in vain" if n_timed_out else ""
    return Note(
        "thermal-wait",
        f"Before {n_waits} samples the GPU was let cool, for {format_time(waited_time)} "
        f"together{in_vain}; at last it was {reason}.",
        "Better cooling, or a lower power limit that its owner sets, makes such runs shorter.",
    )


def interrupted(n_samples: int) -> Note:
    """The keyboard ended the run."""
    return Note("interrupted", f"Interrupted by the keyboard; samples taken by then: {n_samples}.")


def methods_differ(methods: Mapping[str, str]) -> Note:
    """Arms of a comparison weren't timed alike."""
    listed = ", ".join(f"{name} {method}" for name, method in methods.items())
    return Note(
        "methods-differ",
        f"The arms were timed by different methods ({listed}), whose times differ by themselves.",
        "Give all of them method='events'.",
    )


def fewer_blocks(n_done: int, n_wanted: int) -> Note:
    """A comparison's time was over before all its blocks were done."""
    return Note(
        "fewer-blocks",
        f"The time was over after {n_done} of {n_wanted} blocks.",
        "Raise max_duration for narrower intervals.",
    )


def not_interleaved() -> Note:
    """Two saved results are compared."""
    return Note(
        "not-interleaved",
        "The two were measured one after the other, so what changed between them, such as a "
        "clock or a temperature, isn't cancelled.",
        "Run both by turns, with compare(), before acting on a small difference.",
    )


def repeated_settings(settings: Sequence[str]) -> Note:
    """Settings of a comparison come to the same."""
    listed = ", ".join(map(repr, settings))
    return Note(
        "repeated-setting", f"Settings that come to the same as another were left out: {listed}."
    )


def no_accelerators(reason: str) -> Note:
    """Settings of CuPy's back ends are compared where CuPy can't run."""
    return Note(
        "no-accelerators",
        f"No GPU found: {reason}. So none of CuPy's back ends runs, and the arms differ in "
        "CUPY_ACCELERATORS alone.",
    )


def kernels_unknown(reason: str) -> Note:
    """Which kernels a call ran could not be found out."""
    return Note(
        "kernels-unknown",
        f"Which kernels ran isn't known ({reason}); what CuPy compiled stands for it.",
        'Install "gpubench[activity]".',
    )


def not_checked(reasons: Mapping[str, str]) -> Note:
    """What arms return could not be brought together."""
    name, reason = next(iter(reasons.items()))
    return Note(
        "not-checked",
        f"What the arms return could not be compared: {name}'s {reason}.",
        "Return arrays or plain values.",
    )
