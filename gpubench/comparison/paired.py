"""`compare`: several functions by turns, and a verdict on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpubench import arguments, notes
from gpubench.bench import Bench
from gpubench.comparison.arms import Arm, ArmError, LocalArm
from gpubench.comparison.interleave import Check, Failure, Plan, Run, interleave, make_plan
from gpubench.comparison.judgement import MARGIN
from gpubench.comparison.outcome import ArmOutcome, Comparison, judge_arms
from gpubench.comparison.unpaired import compare_unpaired
from gpubench.errors import ArgumentError
from gpubench.notes import Note
from gpubench.progress import progress_bar
from gpubench.result import BenchmarkResult
from gpubench.session import Budget

N_BLOCKS = 20
MAX_DURATION = 10.0

Functions = Mapping[str, Callable[..., object]] | Sequence[Callable[..., object]]


def compare(
    functions: Functions | BenchmarkResult,
    args: Sequence[Any] | BenchmarkResult = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    baseline: str | None = None,
    n_blocks: int = N_BLOCKS,
    margin: float = MARGIN,
    max_duration: float = MAX_DURATION,
    check: bool | Check = True,
    n_warmup: int = 10,
    devices: int | Sequence[int] | None = None,
    method: str = "auto",
    setup: Callable[[], object] | None = None,
    cache: str = "warm",
    seed: int = 0,
    progress: bool | None = None,
) -> Comparison:
    """Measure several functions by turns and judge which is faster, slower or the same.

    Each is warmed up by itself. Then in each round every function has one block of samples, in
    random order, so that drift meets all alike. A round gives one ratio of block medians for
    each function; the median of the ratios and its bootstrap interval are held against the
    margin. CPU and GPU time are judged each for itself.

    Parameters
    ----------
    functions : mapping of str to callable, or sequence of callable
        Two or more, with their names; a sequence takes the functions' own.
    args, kwargs : tuple or list, mapping, optional
        Arguments of every call.
    baseline : str, optional
        Name of the function with which the others are compared; by default the first.
    n_blocks : int
        Blocks of each function, 2 or more.
    margin : float
        Relative difference up to which times count as the same.
    max_duration : float
        Seconds of wall time for all; when they are over, no further round begins.
    check : bool or callable
        Whether to compare what the functions return with what the baseline returns: floating
        point within a tolerance of its precision, all else exactly. A callable
        ``check(expected, actual)`` decides instead; it gets copies on the host.
    n_warmup, devices, method, setup, cache, progress
        As in `benchmark`.
    seed : int
        Of the order of the blocks and the bootstrap.

    Returns
    -------
    Comparison
        Verdicts, ratios and all samples in run order. Two results of `benchmark` given as
        ``compare(a, b)`` are compared as they are, with `a` as baseline, and a note says that
        drift isn't cancelled.

    Raises
    ------
    ArgumentError, UnsupportedError
        As in `benchmark`.
    Exception
        Whatever one of the functions raises.

    Examples
    --------
    >>> import gpubench
    >>> with gpubench.simulated_gpu() as gpu:
    ...     comparison = gpubench.compare(
    ...         {"long": lambda: gpu.launch(20e-6), "short": lambda: gpu.launch(10e-6)}
    ...     )
    >>> comparison.verdict
    {'short': 'faster'}
    """
    margin = arguments.finite_number("margin", margin, above=0)
    seed = arguments.whole_number("seed", seed, at_least=0)
    if isinstance(functions, BenchmarkResult):
        if not isinstance(args, BenchmarkResult):
            raise ArgumentError(
                f"a result can only be compared with another result, got {arguments.shown(args)}"
            )
        if kwargs is not None or baseline is not None:
            raise ArgumentError("two results leave no use for kwargs or baseline; the first is it")
        return compare_unpaired(functions, args, margin=margin, seed=seed)
    named = _named(functions)
    first = _baseline(baseline, named)
    args = arguments.positional(args)  # type: ignore[arg-type]  # checked there
    kwargs = arguments.keywords(kwargs)
    plan = make_plan(n_blocks, n_warmup, seed, check)
    budget = Budget(arguments.real_number("max_duration", max_duration, at_least=0))
    if setup is not None:
        arguments.synchronous("setup", setup)
    with (
        Bench(devices, method, cache) as bench,
        progress_bar(progress, plan.n_blocks * len(named), "compare", "block") as advance,
    ):
        arms = [
            LocalArm(name, bench, bench.session(func, args, kwargs, setup))
            for name, func in named.items()
        ]
        arms.sort(key=lambda arm: arm.name != first)
        run = interleave(arms, plan, budget, advance)
        outcomes = gather(arms, run)
    by_name = {outcome.name: outcome for outcome in outcomes}
    return conclude([by_name[name] for name in named], first, margin, run, plan)


def _named(functions: Functions) -> dict[str, Callable[..., object]]:
    if isinstance(functions, Mapping):
        named = {arguments.text("a name in functions", k): f for k, f in functions.items()}
    elif isinstance(functions, Sequence) and not isinstance(functions, (str, bytes)):
        named = {}
        for func in functions:
            name = arguments.unique_name(arguments.callable_name(func), named)
            named[name] = func
    else:
        raise ArgumentError(
            f"functions must be a mapping of names to callables or a list of callables, "
            f"got {arguments.shown(functions)}"
        )
    if len(named) < 2:
        raise ArgumentError(f"functions must be two or more, got {len(named)}")
    for name, func in named.items():
        arguments.synchronous(f"functions[{name!r}]", func)
    return named


def _baseline(baseline: str | None, named: Mapping[str, object]) -> str:
    if baseline is None:
        return next(iter(named))
    if baseline not in named:
        raise ArgumentError(
            f"baseline must be one of {list(named)}, got {arguments.shown(baseline)}"
        )
    return baseline


def gather(arms: Sequence[Arm], run: Run) -> list[ArmOutcome]:
    """Make each arm's outcome, not yet judged."""
    outcomes = []
    for arm in arms:
        failure = run.failures.get(arm.name)
        if failure is None:
            try:
                result = arm.finish()
            except ArmError as error:
                failure = Failure.of(error)
        if failure is not None:
            outcomes.append(ArmOutcome(name=arm.name, status=failure.status, reason=failure.reason))
            continue
        ids = np.arange(result.cpu_times.size) // run.samples_per_block
        outcomes.append(
            ArmOutcome(
                name=arm.name,
                result=result,
                block_ids=ids,
                mismatch=run.mismatches.get(arm.name, ""),
            )
        )
    return outcomes


def conclude(
    outcomes: Sequence[ArmOutcome],
    baseline: str,
    margin: float,
    run: Run,
    plan: Plan,
    found: Sequence[Note] = (),
) -> Comparison:
    """Judge the arms and make the comparison."""
    methods = {arm.name: arm.result.method for arm in outcomes if arm.result}
    all_notes = list(found)
    if len(set(methods.values())) > 1:
        all_notes.append(notes.methods_differ(methods))
    if run.unchecked:
        all_notes.append(notes.not_checked(run.unchecked))
    if run.was_interrupted:
        all_notes.append(notes.interrupted(run.n_rounds * run.samples_per_block))
    elif run.order and run.n_rounds < plan.n_blocks:
        all_notes.append(notes.fewer_blocks(run.n_rounds, plan.n_blocks))
    return Comparison(
        baseline=baseline,
        arms=judge_arms(outcomes, baseline, margin, plan.seed),
        margin=margin,
        seed=plan.seed,
        order=tuple(run.order),
        notes=tuple(all_notes),
    )
