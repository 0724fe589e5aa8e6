"""A fresh process that imports files and runs benchmarks of one: the child's end.

It reads an `Order` from its standard input and answers with events on what was its standard
output. What the file prints goes to standard error, whose end is quoted if the process dies.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from gpubench.arguments import unique_name
from gpubench.errors import GpubenchError, UnsupportedError
from gpubench.plain import canonical
from gpubench.storage import Record
from gpubench.suites.benchmark import TIMEOUT
from gpubench.suites.case import (
    Began,
    Case,
    Effort,
    Event,
    Finished,
    Found,
    Order,
    Outcome,
    SuiteFile,
    Task,
    Unloadable,
)
from gpubench.suites.execution import Execution, Reading, SkippedError
from gpubench.suites.loading import load
from gpubench.suites.members import Member, members
from gpubench.suites.setup_cache import cached, folder_of


def serve() -> None:
    """Do what the parent orders."""
    answers = os.fdopen(os.dup(1), "wb")
    order: Order = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, args=(os.dup(0),), daemon=True).start()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.path[:] = map(os.path.abspath, sys.path)  # benchmarks run in other folders

    def say(event: Event) -> None:
        pickle.dump(event, answers)
        answers.flush()

    for file in order.files:
        found = _loaded(file, order.load_timeout)
        if isinstance(found, Unloadable):
            say(found)
        elif order.task is None:
            say(Found([case for member in found.values() for case in _cases(member, file)]))
        else:
            _run(order.task, order.scratch, found, say)
    say(Finished())


def _end_with_parent(orders: int) -> None:
    """End this process when its parent has, so that it uses no GPU that others are given then."""
    while os.read(orders, 1):
        pass
    os._exit(1)


def _loaded(file: SuiteFile, timeout: float) -> dict[str, Member] | Unloadable:
    """Import a file, and return its benchmarks by name."""
    try:
        with _deadline(timeout):
            found: dict[str, Member] = {}
            for member in members(load(file), file.module):
                name = unique_name(member.name, found)
                found[name] = replace(member, name=name)
            return found
    except BaseException as error:  # noqa: BLE001  # a file may raise anything
        return Unloadable(_reason(error, file.root))


_STDERR = 2


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """End the process, saying where it was, if the block takes longer, whatever it does."""
    # The number, since a benchmark before may have closed or replaced sys.stderr.
    faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _cases(member: Member, file: SuiteFile) -> Iterator[Case]:
    """Yield a case for each combination of a benchmark's parameters."""
    try:
        benchmark = member.instance()
        names, combinations = member.parameters
        rounds = benchmark.rounds if member.kind.repeats else 1
        timeouts = benchmark.timeout, benchmark.setup_cache_timeout
        pretty_name = str(benchmark.get("pretty_name", ""))
    except BaseException:  # noqa: BLE001  # it is raised again where it is run, and told of there
        names, combinations, rounds, timeouts, pretty_name = (), [()], 1, (TIMEOUT, 0.0), ""
    for index, values in enumerate(combinations):
        record = Record(name=member.name, params=dict(zip(names, values, strict=True)))
        yield Case(
            file=file,
            name=record.name,
            index=index,
            params=dict(record.params),
            label=pretty_name or record.key,
            rounds=rounds,
            timeout=sum(timeouts),
            runs_alone=member.kind.runs_alone,
        )


def _run(
    task: Task, scratch: str, found: Mapping[str, Member], say: Callable[[Event], None]
) -> None:
    for case in task.cases:
        say(Began(case.key))
        outcome = _outcome(found[case.name], case, task, scratch)
        _release_memory()
        say(outcome)


def _outcome(member: Member, case: Case, task: Task, scratch: str) -> Outcome:
    outcome = Outcome(key=case.key, round=task.round)
    try:
        reading = _measure(member, case, task.effort, scratch)
    except SkippedError as skip:
        return replace(outcome, status="skipped", reason=str(skip))
    except UnsupportedError as error:
        return replace(outcome, status="unavailable", reason=str(error))
    except BaseException as error:  # noqa: BLE001  # a benchmark may raise anything
        return replace(outcome, status="failed", reason=_reason(error, case.file.root))
    return replace(outcome, result=reading.result, value=reading.value, unit=reading.unit)


def _measure(member: Member, case: Case, effort: Effort, scratch: str) -> Reading:
    benchmark = member.instance()
    args = _arguments(member, case)
    if benchmark.get("skip_benchmark", False):
        raise SkippedError("it is marked with skip_benchmark")
    if args in map(tuple, benchmark.get("skip_params", ())):
        raise SkippedError("these parameters are in its skip_params")
    folder = folder_of(benchmark, scratch)
    os.chdir(folder)
    if benchmark.setup_cache is not None:
        with _deadline(benchmark.setup_cache_timeout):
            made = cached(benchmark.setup_cache, folder)
        args = args if made is None else (made, *args)
    execution = Execution(case.label, benchmark, args, effort)
    with _deadline(benchmark.timeout), execution.ready():
        return member.kind.measure(execution)


def _arguments(member: Member, case: Case) -> tuple[object, ...]:
    """Return the values of a case's parameters.

    Raises
    ------
    GpubenchError
        If they have others in this process than in the one that told of the case.
    """
    names, combinations = member.parameters
    for args in combinations[case.index :][:1]:
        here = Record(name=case.name, params=dict(zip(names, args, strict=True)))
        if canonical(here.params) == canonical(case.params):
            return args
    raise GpubenchError(f"its parameters are others here: there is no {case.key}")


def _release_memory() -> None:
    """Give back the memory that CuPy's pools keep, so that the next benchmark finds none there."""
    gc.collect()
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        with suppress(Exception):  # no driver, or no device
            cupy.get_default_memory_pool().free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()


def _reason(error: BaseException, root: str) -> str:
    """Return what was raised, and where in the suite."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        f" ({Path(frame.filename).name}:{frame.lineno}, in {frame.name})"
        for frame in frames
        if frame.filename.startswith(root)
    ]
    words = ": ".join(filter(None, (type(error).__name__, str(error))))
    return f"{words}{places[-1] if places else ''}"
