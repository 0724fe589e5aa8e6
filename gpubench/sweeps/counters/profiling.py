"""Running a sweep's configurations under Nsight Compute, and finding out how that went."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpubench.processes import kill
from gpubench.sweeps.counters import faults
from gpubench.sweeps.counters.child import Progress, Sweep, prepared, progress
from gpubench.sweeps.counters.faults import CounterError
from gpubench.sweeps.counters.tool import profile_command

_REPORT, _LOG, _OUTPUT = "report.ncu-rep", "ncu.log", "output.txt"


@dataclass(frozen=True)
class Profile:
    """What a pass left.

    Attributes
    ----------
    report : Path
        ncu's report.
    progress : Progress
        How far the configurations came.
    problems : tuple of CounterError
        Why the report may lack something.
    """

    report: Path
    progress: Progress
    problems: tuple[CounterError, ...] = ()


def profile(
    ncu: str, name: str, sweep: Sweep, metrics: Sequence[str], folder: Path, timeout: float
) -> Profile:
    """Run configurations under ncu.

    Parameters
    ----------
    ncu : str
        Its path.
    name : str
        The function's name.
    sweep : (callable, sequence of mapping)
        The function and its configurations.
    metrics : sequence of str
        What to read.
    folder : Path
        An empty folder, where everything goes.
    timeout : float
        Seconds after which it is ended.

    Raises
    ------
    CounterError
        If there is no report.
    ArgumentError
        If the function can't be sent to another process.
    MissingExtraError
        If cloudpickle isn't installed.
    OSError
        If ncu can't be started, or the folder not be written to.
    """
    report, log, output = (folder / each for each in (_REPORT, _LOG, _OUTPUT))
    program = prepared(folder, name, sweep)
    try:
        _run(profile_command(ncu, metrics, report, log, program), output, timeout)
    except subprocess.TimeoutExpired:
        raise faults.timed_out(timeout) from None
    said, words = progress(folder), _read(output)
    if said.failure:
        raise CounterError(f"The function couldn't be run under ncu: {said.failure}.")
    problems = _problems(said, len(sweep[1]), faults.errors_in(f"{_read(log)}\n{words}"), words)
    if not report.exists():
        raise next(problems, faults.no_kernels())
    return Profile(report, said, tuple(problems))


def _problems(
    said: Progress, n_configs: int, errors: Sequence[str], words: str
) -> Iterator[CounterError]:
    """Yield what went wrong, what explains the most first."""
    known = faults.explained(errors)
    if known is not None:
        yield known
    elif not said.has_begun:
        yield faults.failed([*errors, *words.splitlines()] or ["it said nothing"])
    elif said.n_done < n_configs:
        yield faults.died(said.n_done, errors, words)
    elif errors:
        yield faults.failed(errors)
    if said.errors:
        yield faults.raised(said.errors)


def _run(command: Sequence[str], output: Path, timeout: float) -> None:
    """Run a command to its end; end it, and what it started, at a timeout or Ctrl-C."""
    environment = os.environ.copy()
    environment.pop("NVTX_DISABLE", None)  # ncu sees regions by NVTX alone
    with output.open("wb") as file:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the parent alone
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        try:
            process.wait(timeout)
        finally:
            if process.poll() is None:
                kill(process)
                process.wait()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
