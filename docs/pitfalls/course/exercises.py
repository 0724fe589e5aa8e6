"""The exercises of the lessons: each is a function that looks for a fault in an answer."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import gpubench
from course.place import current


@dataclass(frozen=True)
class Verdict:
    """What is to be said of an answer.

    Attributes
    ----------
    right : bool
        Whether it is right.
    message : str
        Why, or what to look at.
    """

    right: bool
    message: str

    def __repr__(self):
        return f"{'Right' if self.right else 'Not yet'}: {self.message}"


_EXERCISES = {}


def check(lesson, answer):
    """Judge the answer to the exercise of a lesson.

    Parameters
    ----------
    lesson : int
        Its number.
    answer : object
        A function or a value, as the lesson asks for.

    Returns
    -------
    Verdict
        What is to be said of it; a notebook shows it.
    """
    find_fault, praise = _EXERCISES[lesson]
    fault = find_fault(answer)
    return Verdict(not fault, fault or praise)


def _exercise(lesson, praise):
    def register(find_fault: Callable[[object], str]):
        _EXERCISES[lesson] = find_fault, praise
        return find_fault

    return register


@_exercise(1, "it begins with an idle GPU, and ends when the GPU is done.")
def _stopwatch(answer):
    gpu = current()
    gpu.synchronize()
    gpu.launch(0.2, "earlier work")
    seconds = answer(lambda: gpu.launch(5e-3, "mine"))
    gpu.synchronize()
    if not seconds:
        return "it returns no time."
    if seconds < 4.5e-3:
        return "a kernel of 5 ms read less. The GPU still worked when you looked at the clock."
    if seconds > 0.1:
        return "a kernel of 5 ms read over 100 ms. The GPU was busy with earlier work: wait first."
    return ""


@_exercise(2, "the first call counts once, whatever the number of calls.")
def _program_time(answer):
    result = gpubench.benchmark(current().launch, (1e-3, "filter"), n_repeat=20)
    result = dataclasses.replace(result, first_call_time=80e-3)
    usual = result.gpu[0].median
    for n in (1, 10, 10_000):
        expected = 80e-3 + (n - 1) * usual
        if not math.isclose(answer(result, n), expected, rel_tol=0.1):
            return (
                f"a first call of 80 ms and then {n - 1} of {1e3 * usual:.1f} ms make "
                f"{1e3 * expected:.0f} ms, yours is {1e3 * answer(result, n):.0f} ms."
            )
    return ""


@_exercise(3, "trends are found, and outliers aren't mistaken for one.")
def _is_settled(answer):
    rng = np.random.default_rng(3)
    steady = 20e-6 * (1 + 0.01 * rng.standard_normal(300))
    spiky = steady.copy()
    spiky[[0, 40, 41, 200, 299]] *= 30
    cases = (
        (steady, True, "samples with 1 % of noise"),
        (spiky, True, "steady samples with five outliers"),
        (steady * np.linspace(3, 1, 300).clip(1), False, "a clock that rises"),
        (steady * np.linspace(1, 1.06, 300), False, "a GPU that gets slowly hotter"),
        (spiky * np.linspace(1, 1.06, 300), False, "the same with outliers"),
    )
    for samples, expected, what in cases:
        if bool(answer(samples)) is not expected:
            return f"{what} {'are settled' if expected else 'is not settled'}; you say otherwise."
    return ""


@_exercise(4, "the GPU's own records know of no floor.")
def _kernel_time(answer):
    gpu = current()
    for seconds in (1e-6, 4e-6):

        def call(seconds=seconds):
            gpu.launch(seconds, "tiny")

        truth = gpubench.benchmark(call, n_repeat=50, method="cupti").gpu[0].median
        time = answer(call)
        if not math.isclose(time, truth, rel_tol=0.1):
            return f"a kernel of {1e6 * truth:.2f} us reads {1e6 * time:.2f} us with yours."
    return ""


@_exercise(5, "streams work beside each other, so the call takes as long as the longer one.")
def _two_streams(answer):
    gpu = current()
    left, right = gpu.stream(), gpu.stream()

    def call():
        with left:
            gpu.launch(100e-6, "left")
        with right:
            gpu.launch(60e-6, "right")

    measured = gpubench.benchmark(call, n_repeat=30).gpu[0].median
    if abs(answer - measured) > 15e-6:
        return "measured, it is something else. Draw both kernels along one axis of time."
    return ""


@dataclass
class _Witness:
    """Stands in for a GPU, and notes what is asked of it."""

    asked: list = field(default_factory=list)

    def launch(self, *_work):
        self.asked.append("launch")

    def synchronize(self):
        self.asked.append("synchronize")


@_exercise(6, "all steps are queued before the host waits, once.")
def _training(answer):
    witness, n = _Witness(), 20
    answer(witness, n)
    n_launches, n_waits = (witness.asked.count(what) for what in ("launch", "synchronize"))
    if n_launches != n:
        return f"{n} steps were wanted, and {n_launches} launched."
    if n_waits != 1:
        return f"the host waits {n_waits} times; once is enough, and needed for the result."
    if witness.asked[-1] != "synchronize":
        return "something is launched after the host has waited, so it may not be done."
    return ""


@_exercise(7, "what fits in the cache gains from it, and nothing else does.")
def _cached_sizes(answer):
    gpu, changed = current(), set()
    for megabytes in (20, 40, 200, 400):
        buffer = gpu.buffer(megabytes * 10**6)
        warm, cold = (
            gpubench.benchmark(gpu.read, (buffer,), n_repeat=30, cache=state).gpu[0].median
            for state in ("warm", "cold")
        )
        if cold > 1.1 * warm:
            changed.add(megabytes)
    if set(answer) != changed:
        return (
            f"measured, it matters for {len(changed)} of the four. Which of them fit in the cache?"
        )
    return ""


@_exercise(8, "it stays the same with outliers, and with more samples.")
def _typical(answer):
    rng = np.random.default_rng(8)
    for n, share in ((50, 0.0), (50, 0.1), (5000, 0.0), (5000, 0.1)):
        samples = 50e-6 * (1 + 0.03 * rng.standard_normal(n))
        samples[rng.random(n) < share] *= 20
        if not math.isclose(answer(samples), 50e-6, rel_tol=0.02):
            return (
                f"of {n} samples around 50 us, {share:.0%} of them outliers, yours makes "
                f"{1e6 * answer(samples):.1f} us."
            )
    return ""


@_exercise(9, "the more the samples resemble each other, the fewer they are worth.")
def _effective_samples(answer):
    for n, correlation in ((100, 0.0), (100, 0.5), (1000, 0.98)):
        expected = n * (1 - correlation) / (1 + correlation)
        if not math.isclose(answer(n, correlation), expected, rel_tol=0.02):
            return (
                f"{n} samples with a lag-1 correlation of {correlation} are worth {expected:.0f} "
                f"independent ones, not {answer(n, correlation):.0f}."
            )
    return ""


@_exercise(10, "it is as random as what a program works on.")
def _matrix(answer):
    matrix = answer(512)
    matrix = np.asarray(getattr(matrix, "get", lambda: matrix)())
    if matrix.shape != (512, 512) or matrix.dtype != np.float16:
        return f"a (512, 512) array of float16 was wanted, not {matrix.shape} of {matrix.dtype}."
    if not np.isfinite(matrix).all():
        return "it holds infinities or NaN: float16 ends at 65,504."
    if len(np.unique(matrix)) < 1000:
        return f"there are but {len(np.unique(matrix))} different values in it."
    if len(np.unique(matrix, axis=0)) < 512 or len(np.unique(matrix, axis=1)) < 512:
        return "rows or columns repeat."
    if np.mean(np.diff(matrix.astype(np.float32)) >= 0) > 0.9:
        return "its values are sorted, so neighbours share most of their bits."
    return ""


@_exercise(11, "the variable replaces the default, so it has to name cub again.")
def _variable(answer):
    names = [name.strip() for name in answer.split(",")]
    if "cutensor" not in names:
        return "that leaves cuTENSOR off."
    if "cub" not in names:
        return "that turns cub off. The variable replaces the default, it doesn't add to it."
    if len(names) != 2:
        return "name the two, and nothing else."
    return ""


@_exercise(12, "what the anchor lost, the machine lost.")
def _corrected_ratio(answer):
    for old, new, anchor_then, anchor_now in (
        (100e-6, 102e-6, 50e-6, 52.5e-6),
        (100e-6, 102e-6, 50e-6, 50e-6),
        (30e-6, 30e-6, 1e-3, 0.9e-3),
    ):
        expected = new / old * anchor_then / anchor_now
        if not math.isclose(answer(old, new, anchor_then, anchor_now), expected, rel_tol=1e-3):
            return (
                f"old {1e6 * old:.0f} us, new {1e6 * new:.0f} us; the anchor then "
                f"{1e6 * anchor_then:.0f} us, now {1e6 * anchor_now:.1f} us: the code's own ratio "
                f"is {expected:.3f}."
            )
    return ""
