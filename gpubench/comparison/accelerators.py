"""`compare_accelerators`: one function under several settings of ``CUPY_ACCELERATORS``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Literal

from gpubench import arguments, notes
from gpubench.accelerator import accelerators, parse_accelerators, use_accelerators
from gpubench.activity.kernels import KernelNames, back_end_of
from gpubench.bench import Bench
from gpubench.comparison.arms import Arm, LocalArm
from gpubench.comparison.interleave import Check, Run, interleave, make_plan
from gpubench.comparison.judgement import MARGIN
from gpubench.comparison.outcome import ArmOutcome, Comparison
from gpubench.comparison.paired import (
    MAX_DURATION,
    N_BLOCKS,
    conclude,
    gather,
)
from gpubench.comparison.worker import Order, WorkerArm
from gpubench.cutensor import cutensor_is_installed, preload_cutensor
from gpubench.devices import current_platform
from gpubench.devices.host import HostPlatform
from gpubench.errors import ArgumentError
from gpubench.notes import Note
from gpubench.processes import pickled
from gpubench.progress import progress_bar
from gpubench.session import Budget

SETTINGS = ("", "cub", "cub,cutensor")


def compare_accelerators(
    func: Callable[..., object],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    settings: Sequence[str] = SETTINGS,
    isolate: bool | Literal["auto"] = "auto",
    n_blocks: int = N_BLOCKS,
    margin: float = MARGIN,
    max_duration: float = MAX_DURATION,
    check: bool | Check = True,
    n_warmup: int = 10,
    method: str = "auto",
    setup: Callable[[], object] | None = None,
    cache: str = "warm",
    seed: int = 0,
    progress: bool | None = None,
) -> Comparison:
    """Measure one function with several of CuPy's back ends by turns, and judge each.

    Parameters
    ----------
    func : callable
        What to time.
    args, kwargs : tuple or list, mapping, optional
        Arguments of every call.
    settings : sequence of str
        Values of ``CUPY_ACCELERATORS``, two or more; the first is the baseline. The empty string
        is CuPy without accelerators; the variable left unset would mean cub.
    isolate : bool or "auto"
        Whether each setting has a worker process of its own, which needs cloudpickle and copies
        the arguments. Workers are kept and driven by turns, so that blocks interleave there,
        too, and a crash ends one arm only. ``"auto"`` does so where a setting needs it: without
        a GPU in use, and where cuTENSOR is installed but came too late for this process's CuPy.
    n_blocks, margin, max_duration, check, n_warmup, method, setup, cache, seed, progress
        As in `compare`.

    Returns
    -------
    Comparison
        An arm for each setting, named by it (``"none"`` for the empty one), with the back end
        that really ran. A setting whose back end CuPy can't use has the status
        ``"unavailable"``, one that raises or crashes ``"failed"``.

    Raises
    ------
    ArgumentError
        If an argument can't be used, or a setting has a name that CuPy doesn't know; before
        anything runs.
    MissingExtraError
        If worker processes are needed and cloudpickle isn't installed.

    Examples
    --------
    >>> print(compare_accelerators(cupy.sum, (a,)))  # doctest: +SKIP
    """
    arguments.synchronous("func", func)
    args, kwargs = arguments.positional(args), arguments.keywords(kwargs)
    margin = arguments.finite_number("margin", margin, above=0)
    plan = make_plan(n_blocks, n_warmup, seed, check, tolerated=Exception)
    if setup is not None:
        arguments.synchronous("setup", setup)
    named, found = _named(settings)
    apart = _must_isolate(isolate, named)
    max_duration = arguments.real_number("max_duration", max_duration, at_least=0)
    name = arguments.callable_name(func)
    with (
        Bench(method=method, cache=cache) as bench,
        progress_bar(progress, plan.n_blocks * len(named), name, "block") as advance,
        ExitStack() as stack,
    ):
        arms: list[Arm] = []
        if apart:
            call = pickled("compare_accelerators()", name, (func, args, kwargs, setup))
            workers = []
            for arm_name, wanted in named.items():
                workers.append(WorkerArm(Order(arm_name, ",".join(wanted), call, method, cache)))
                stack.callback(workers[-1].close)
            for worker in workers:
                worker.load()
            arms += workers
        else:
            for arm_name, wanted in named.items():
                session = bench.session(func, args, kwargs, setup)
                switch = functools.partial(use_accelerators, *wanted)
                arms.append(LocalArm(arm_name, bench, session, switch))
        run = interleave(arms, plan, Budget(max_duration), advance)
        ran = _kernels(arms, run)
        baseline = ran.get(arms[0].name, KernelNames())
        outcomes = [_with_names(each, ran.get(each.name), baseline) for each in gather(arms, run)]
    if isinstance(bench.platform, HostPlatform):
        outcomes = [outcomes[0], *(_unavailable(each, bench.platform) for each in outcomes[1:])]
        found = (*found, notes.no_accelerators(bench.platform.reason))
    elif baseline.reason:
        found = (*found, notes.kernels_unknown(baseline.reason))
    return conclude(outcomes, next(iter(named)), margin, run, plan, found)


def _named(settings: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], tuple[Note, ...]]:
    """Return the names of the arms with what each sets; repeats are left out, with a note."""
    if isinstance(settings, (str, bytes)) or not isinstance(settings, Sequence):
        raise ArgumentError(f"settings must be a list of strings, got {settings!r}")
    named: dict[str, tuple[str, ...]] = {}
    repeated = []
    for setting in settings:
        wanted = parse_accelerators(setting)
        name = ",".join(wanted) or "none"
        if name in named:
            repeated.append(setting)
        named[name] = wanted
    if len(named) < 2:
        raise ArgumentError(f"settings must differ in at least two values, got {settings!r}")
    return named, (notes.repeated_settings(repeated),) if repeated else ()


def _must_isolate(isolate: object, named: Mapping[str, tuple[str, ...]]) -> bool:
    if isinstance(isolate, bool):
        return isolate
    if isolate != "auto":
        raise ArgumentError(f"isolate must be True, False or 'auto', got {isolate!r}")
    preload_cutensor()  # before CuPy is imported to see what there is
    if current_platform().name != "cuda":
        return isinstance(current_platform(), HostPlatform)
    wants_cutensor = any("cutensor" in wanted for wanted in named.values())
    return wants_cutensor and "cutensor" in accelerators().unavailable and cutensor_is_installed()


def _kernels(arms: Sequence[Arm], run: Run) -> dict[str, KernelNames]:
    """Find out which kernels each arm runs that has come to its end."""
    ran = {}
    for arm in arms:
        if arm.name not in run.failures:
            try:
                ran[arm.name] = arm.kernels()
            except Exception as error:  # noqa: BLE001  # the measurement is done, and stands
                ran[arm.name] = KernelNames(reason=f"{type(error).__name__}: {error}")
    return ran


def _unavailable(outcome: ArmOutcome, platform: HostPlatform) -> ArmOutcome:
    if outcome.status != "ok":
        return outcome
    reason = f"no GPU found: {platform.reason}"
    return dataclasses.replace(outcome, status="unavailable", reason=reason)


def _with_names(outcome: ArmOutcome, ran: KernelNames | None, baseline: KernelNames) -> ArmOutcome:
    if ran is None or outcome.result is None:
        return outcome
    names = ran.names or tuple(name for each in outcome.result.compilations for name in each.names)
    return dataclasses.replace(
        outcome,
        kernels=names,
        back_end=back_end_of(names),
        same_kernels=ran is not baseline and bool(ran.names) and ran.names == baseline.names,
    )
