"""Arms run by turns: in each round every arm has one block of samples, in random order.

What changes slowly, such as a clock or a temperature, then meets all arms alike and cancels in
the ratio of the blocks of a round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpubench import arguments
from gpubench.comparison.agreement import disagreement
from gpubench.comparison.arms import Arm, ArmError, Unsent
from gpubench.errors import ArgumentError, UnsupportedError
from gpubench.session import Budget

Check = Callable[[object, object], bool]
"""Tells whether the second value will do where the first was expected."""

_BLOCK_TIME = 0.01
_MIN_SAMPLES, _MAX_SAMPLES = 5, 100


@dataclass(frozen=True)
class Failure:
    """Why an arm ended early.

    Attributes
    ----------
    status : str
        ``"unavailable"`` if the machine can't do what it needs, else ``"failed"``.
    reason : str
        What happened.
    """

    status: str
    reason: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Make it of what was raised."""
        if isinstance(error, UnsupportedError):
            return cls("unavailable", str(error))
        kind = "" if isinstance(error, ArmError) else f"{type(error).__name__}: "
        return cls("failed", f"{kind}{error}")


@dataclass
class Run:
    """What running the arms by turns left.

    Attributes
    ----------
    samples_per_block : int
        How many samples a block has.
    order : list of str
        The arms' names in the order in which their blocks ran.
    n_rounds : int
        How many rounds are complete.
    failures : dict of str to Failure
        Arms that ended early.
    mismatches : dict of str to str
        Arms that returned something else than the baseline, and in what they differ.
    unchecked : dict of str to str
        Arms whose return value could not be had, and why.
    was_interrupted : bool
        Whether Ctrl-C ended it.
    """

    samples_per_block: int = 0
    order: list[str] = field(default_factory=list)
    n_rounds: int = 0
    failures: dict[str, Failure] = field(default_factory=dict)
    mismatches: dict[str, str] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)
    was_interrupted: bool = False


@dataclass(frozen=True)
class Plan:
    """How the arms are to run.

    Attributes
    ----------
    n_blocks : int
        Blocks of each arm.
    n_warmup : int
        Calls of each arm ahead of its blocks.
    seed : int
        Seeds the order.
    check : bool or callable
        Whether to compare what the arms return; a callable does so instead of `disagreement`.
    tolerated : type
        Exceptions that end the arm that raises them, but not the others.
    """

    n_blocks: int
    n_warmup: int
    seed: int
    check: bool | Check
    tolerated: type[Exception]


def make_plan(
    n_blocks: int,
    n_warmup: int,
    seed: int,
    check: bool | Check,
    tolerated: type[Exception] = ArmError,
) -> Plan:
    """Make a plan of a caller's arguments.

    Raises
    ------
    ArgumentError
        If one can't be used.
    """
    if not (isinstance(check, (bool, np.bool_)) or callable(check)):
        raise ArgumentError(
            f"check must be True, False or a callable, got {arguments.shown(check)}"
        )
    return Plan(
        n_blocks=arguments.whole_number("n_blocks", n_blocks, at_least=2),
        n_warmup=arguments.whole_number("n_warmup", n_warmup, at_least=1),
        seed=arguments.whole_number("seed", seed, at_least=0),
        check=check,
        tolerated=tolerated,
    )


def interleave(
    arms: Sequence[Arm], plan: Plan, budget: Budget, advance: Callable[[int], object]
) -> Run:
    """Run arms by turns.

    Parameters
    ----------
    arms : sequence of Arm
        The first is the baseline. One that raises what is tolerated is left out from then on.
    plan : Plan
        How.
    budget : Budget
        When it is spent no further round begins, but for the first.
    advance : callable
        Told when a block is done.

    Raises
    ------
    KeyboardInterrupt
        If no round was complete.
    """
    run = Run()
    sample_times: dict[str, float] = {}

    def prepare(arm: Arm) -> None:
        sample_times[arm.name] = arm.prepare(plan.n_warmup, budget)

    running = _each(arms, prepare, plan, run)
    if plan.check and arms[0].name not in run.failures:
        _check(running, plan.check, plan, run)
        running = [arm for arm in running if arm.name not in run.failures]
    run.samples_per_block = _block_size([sample_times[a.name] for a in running], plan, budget)
    rng = np.random.default_rng(plan.seed)

    def take(arm: Arm) -> None:
        arm.take_block(run.samples_per_block)
        run.order.append(arm.name)
        advance(1)

    try:
        while running and run.n_rounds < plan.n_blocks:
            if budget.is_spent() and run.n_rounds:
                break
            running = _each([running[i] for i in rng.permutation(len(running))], take, plan, run)
            run.n_rounds += 1
    except KeyboardInterrupt:
        if not run.n_rounds:
            raise
        run.was_interrupted = True
    return run


def _each(arms: Sequence[Arm], act: Callable[[Arm], None], plan: Plan, run: Run) -> list[Arm]:
    """Act on each arm and return those that didn't fail, in their order."""
    left = []
    for arm in arms:
        try:
            act(arm)
        except plan.tolerated as error:
            run.failures[arm.name] = Failure.of(error)
        else:
            left.append(arm)
    return left


def _check(arms: Sequence[Arm], check: bool | Check, plan: Plan, run: Run) -> None:
    values: dict[str, object] = {}

    def keep(arm: Arm) -> None:
        values[arm.name] = arm.returned()

    checked = _each(arms, keep, plan, run)
    if not checked or checked[0] is not arms[0]:
        return  # without the baseline there is nothing to agree with
    for name, value in values.items():
        if isinstance(value, Unsent):
            run.unchecked[name] = value.reason
    expected = values[arms[0].name]
    for arm in checked[1:]:
        actual = values[arm.name]
        if isinstance(expected, Unsent) or isinstance(actual, Unsent):
            continue
        if not callable(check):
            difference = disagreement(expected, actual)
        else:
            difference = "" if check(expected, actual) else "check(expected, actual) is false"
        if difference:
            run.mismatches[arm.name] = difference


def _block_size(sample_times: Sequence[float], plan: Plan, budget: Budget) -> int:
    """Choose the samples of a block: 10 ms of them and 5 to 100, or what the budget allows."""
    if not sample_times:
        return 0
    wanted = min(max(_BLOCK_TIME / max(sample_times), _MIN_SAMPLES), _MAX_SAMPLES)
    # one call of each block isn't timed
    affordable = budget.left() / (plan.n_blocks * sum(sample_times)) - 1
    return max(1, int(min(wanted, affordable)))
