"""What a reader should know before trusting a number: notes, each kind of them once.

The functions here make those that a run states where it meets their condition, for example when
no gate can be had. What can be told from the evidence that every run leaves, `gpubench.rules` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.devices.base import GATE_DEADLINE
from gpubench.render.units import format_time


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


def overlapping_regions(name: str, other: str) -> Note:
    """A region was open at once with another, neither inside the other."""
    return Note(
        "overlapping-regions",
        f"The regions {name} and {other} were open at the same time, in two threads or tasks, so "
        "the time of each may include work of the other, and waiting for it.",
        "Enter them one after the other, or let each work on a stream of its own.",
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


def imbalanced(rank: int, slowest_time: float, imbalance: float) -> Note:
    """One rank takes well longer than the ranks' mean."""
    return Note(
        "imbalanced",
        f"Rank {rank} takes {format_time(slowest_time)}, {imbalance:.0%} more than the mean of the "
        "ranks, and a program that waits for all of them takes as long.",
        "Give the ranks equal work; result.ranks tells how each of them fared.",
    )


def shared_gpu(ranks: Sequence[int], gpu: str) -> Note:
    """Ranks time the same GPU, so they slow each other down."""
    return Note(
        "shared-gpu",
        f"Ranks {', '.join(map(str, ranks))} use the same GPU ({gpu}), so each was timed while the "
        "others worked there.",
        "Let each rank use a GPU of its own: cupy.cuda.Device(local_rank).use().",
    )


def methods_differ(methods: Mapping[str, str]) -> Note:
    """Arms of a comparison weren't timed alike."""
    listed = ", ".join(f"{name} {method}" for name, method in methods.items())
    return Note(
        "methods-differ",
        f"The arms were timed by different methods ({listed}), whose times differ by themselves.",
        "Give all of them method='events'.",
    )


def rounds_differ(methods: Sequence[str]) -> Note:
    """Rounds of a suite didn't time a benchmark alike."""
    return Note(
        "rounds-differ",
        f"The rounds were timed by different methods ({', '.join(methods)}), whose times differ by "
        "themselves.",
        "Look at the other notes for why, or give the benchmark gpu_method = 'events'.",
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
