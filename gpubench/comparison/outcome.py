"""The result of a comparison: what each arm measured, and how it was judged."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpubench.comparison.judgement import (
    Judgement,
    Resamples,
    judge,
    resample_pairs,
)
from gpubench.notes import Note
from gpubench.render import comparison as render
from gpubench.result import BenchmarkResult
from gpubench.stats import FloatArray

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArmOutcome:
    """What became of one arm.

    Attributes
    ----------
    name : str
        What it is called.
    status : str
        ``"ok"``, ``"failed"`` or ``"unavailable"``.
    reason : str
        Why it is not ok; empty if it is.
    result : BenchmarkResult or None
        All its samples in run order; None if it has none.
    block_ids : ndarray of int, shape (n,)
        The round in which each sample was taken.
    gpu, cpu : Judgement or None
        Its GPU and CPU time against the baseline's; None for the baseline, without a GPU, and
        where there is nothing to be judged.
    mismatch : str
        In what its return value differs from the baseline's; empty if it agrees or wasn't
        checked.
    kernels : tuple of str
        Names of the kernels that a call launched, as far as they are known.
    back_end : str
        Which of CuPy's back ends they belong to; empty if that isn't known.
    same_kernels : bool
        Whether it is known to launch the same kernels as the baseline, so that what
        distinguishes the arms doesn't matter for the function.
    """

    name: str
    status: str = "ok"
    reason: str = ""
    result: BenchmarkResult | None = None
    block_ids: npt.NDArray[np.int64] = dataclasses.field(
        default_factory=lambda: np.empty(0, np.int64), compare=False
    )
    gpu: Judgement | None = None
    cpu: Judgement | None = None
    mismatch: str = ""
    kernels: tuple[str, ...] = ()
    back_end: str = ""
    same_kernels: bool = False

    @property
    def judgement(self) -> Judgement | None:
        """The GPU's where there is one, else the CPU's."""
        return self.gpu or self.cpu

    @property
    def verdict(self) -> str:
        """What the arm is in comparison with the baseline.

        ``"MISMATCH"`` if it returns something else; the status if that isn't ok; ``"no effect"``
        if it launches the same kernels; else the judgement's verdict; ``"unclear"`` without one.
        """
        if self.mismatch:
            return "MISMATCH"
        if self.status != "ok":
            return self.status
        if self.same_kernels:
            return "no effect"
        return self.judgement.verdict if self.judgement else "unclear"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """What `compare` found out. Printed, it is a summary and a table.

    Attributes
    ----------
    baseline : str
        Name of the arm with which the others are compared.
    arms : tuple of ArmOutcome
        All arms, in the order in which they were given.
    margin : float
        Relative difference up to which times count as the same.
    seed : int
        Of the order of the blocks and the bootstrap.
    order : tuple of str
        Names of the arms in the order in which their blocks ran; empty if they didn't run by
        turns.
    notes : tuple of Note
        What a reader should know before trusting the verdicts.
    """

    baseline: str
    arms: tuple[ArmOutcome, ...]
    margin: float
    seed: int
    order: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def __getitem__(self, name: str) -> ArmOutcome:
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise KeyError(name)

    @cached_property
    def others(self) -> tuple[ArmOutcome, ...]:
        """All arms but the baseline."""
        return tuple(arm for arm in self.arms if arm.name != self.baseline)

    @property
    def results(self) -> dict[str, BenchmarkResult]:
        """Each arm's result, by name, without those that have none."""
        return {arm.name: arm.result for arm in self.arms if arm.result is not None}

    @property
    def ratio(self) -> dict[str, float | None]:
        """Time of each other arm over that of the baseline: GPU time, CPU time without a GPU."""
        return {arm.name: arm.judgement.ratio if arm.judgement else None for arm in self.others}

    @property
    def interval(self) -> dict[str, tuple[float, float] | None]:
        """Interval of each ratio."""
        return {arm.name: arm.judgement.interval if arm.judgement else None for arm in self.others}

    @property
    def verdict(self) -> dict[str, str]:
        """Verdict on each other arm, see `ArmOutcome.verdict`."""
        return {arm.name: arm.verdict for arm in self.others}

    def __str__(self) -> str:
        return render.text(self)

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{name}: {verdict}" for name, verdict in self.verdict.items())
        return f"<Comparison with {self.baseline}: {verdicts}>"

    def _repr_html_(self) -> str:
        return render.html(self)

    def table(self, tablefmt: str = "simple") -> str:
        """Return a row for each arm, in a format of the tabulate package."""
        return render.table(self, tablefmt)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; None where something is unknown."""
        return {
            "baseline": self.baseline,
            "margin": self.margin,
            "seed": self.seed,
            "order": list(self.order),
            "notes": [dataclasses.asdict(note) for note in self.notes],
            "arms": [_arm_dict(arm) for arm in self.arms],
        }

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)


def _arm_dict(arm: ArmOutcome) -> dict[str, Any]:
    values = {field.name: getattr(arm, field.name) for field in dataclasses.fields(arm)}
    return {
        **values,
        "result": arm.result.to_dict() if arm.result else None,
        "block_ids": arm.block_ids.tolist(),
        "gpu": _judgement_dict(arm.gpu),
        "cpu": _judgement_dict(arm.cpu),
        "kernels": list(arm.kernels),
        "verdict": arm.verdict,
    }


def _judgement_dict(judgement: Judgement | None) -> dict[str, Any] | None:
    if judgement is None:
        return None
    return {**dataclasses.asdict(judgement), "interval": list(judgement.interval)}


def judge_arms(
    arms: Sequence[ArmOutcome], baseline: str, margin: float, seed: int
) -> tuple[ArmOutcome, ...]:
    """Judge every arm with a result, each of its times, against the baseline, block by block.

    Parameters
    ----------
    arms : sequence of ArmOutcome
        All arms, not yet judged; they ran by turns, so that blocks of the same round are pairs.
        GPU times that different methods took differ by themselves, and aren't judged.
    baseline : str
        Name of the one with which the others are compared.
    margin : float
        Relative difference up to which times count as the same.
    seed : int
        Of the bootstrap.
    """
    reference = next(arm for arm in arms if arm.name == baseline)
    judged: dict[str, Mapping[str, Judgement | None]] = {}
    others = [arm for arm in arms if arm is not reference]
    for clock in CLOCKS:
        resamples: list[Resamples | None] = []
        for arm in others:
            theirs, mine = times_of(reference, arm, clock)
            is_apart = clock == "gpu" and _are_timed_apart(reference, arm)
            if theirs is None or mine is None or is_apart:
                resamples.append(None)
                continue
            blocks = _block_medians(theirs, reference), _block_medians(mine, arm)
            n = min(each.size for each in blocks)
            rng = np.random.default_rng(seed)
            resamples.append(resample_pairs(blocks[0][:n], blocks[1][:n], rng))
        verdicts = judge(resamples, margin)
        judged[clock] = dict(zip((arm.name for arm in others), verdicts, strict=True))
    return tuple(
        dataclasses.replace(arm, gpu=judged["gpu"].get(arm.name), cpu=judged["cpu"].get(arm.name))
        for arm in arms
    )


CLOCKS = ("gpu", "cpu")


def times_of(
    baseline: ArmOutcome, arm: ArmOutcome, clock: str
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the times by which two arms are compared, each of shape (n,).

    CPU times, or GPU times on the device that took longest in each call. None for an arm that has
    none, and for both if neither gave the GPU anything to do.
    """
    if clock == "gpu" and _is_idle(baseline) and _is_idle(arm):
        return None, None
    return _times(baseline, clock), _times(arm, clock)


def _are_timed_apart(baseline: ArmOutcome, arm: ArmOutcome) -> bool:
    results = baseline.result, arm.result
    return len({result.method for result in results if result is not None}) > 1


def _is_idle(arm: ArmOutcome) -> bool:
    """Whether the GPU was seen to do nothing, so that its times are the method's floor."""
    codes = {note.code for note in arm.result.notes} if arm.result else set()
    return not codes.isdisjoint({"no-gpu-work", "no-activity"})


def _times(arm: ArmOutcome, clock: str) -> FloatArray | None:
    if arm.result is None or (clock == "gpu" and not arm.result.devices):
        return None
    return arm.result.cpu_times if clock == "cpu" else arm.result.gpu_times.max(axis=0)


def _block_medians(times: FloatArray, arm: ArmOutcome) -> FloatArray:
    n_blocks = int(arm.block_ids.max(initial=-1)) + 1
    return np.array([np.median(times[arm.block_ids == block]) for block in range(n_blocks)])
