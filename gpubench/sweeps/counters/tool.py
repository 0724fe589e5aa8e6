"""NVIDIA Nsight Compute's command line: where it is, which version, and what it is told.

Source: NVIDIA's documentation of the Nsight Compute CLI
(https://docs.nvidia.com/nsight-compute/NsightComputeCli/).
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from gpubench.sweeps.counters.faults import CounterError, not_found, too_old
from gpubench.sweeps.counters.marks import FILTER

MIN_VERSION = (2022, 3)
"""The oldest version that is known to have all options used here; it came with CUDA 11.8."""

_PLACES = (
    "$CUDA_PATH/bin/ncu",
    "$CUDA_HOME/bin/ncu",
    "/usr/local/cuda/bin/ncu",
    "/usr/local/cuda-*/bin/ncu",
    "/opt/nvidia/nsight-compute/*/ncu",
    "C:/Program Files/NVIDIA Corporation/Nsight Compute */ncu.bat",
)

_VERSION_TIMEOUT = 60.0


def find_ncu(name: str | PathLike[str] = "ncu") -> str:
    """Return the path of ncu, in a version that will do.

    Parameters
    ----------
    name : str or path-like
        Its name, to be found on PATH, or its path. ``"ncu"`` is also looked for where CUDA and
        Nsight Compute are usually installed, the newest first.

    Raises
    ------
    CounterError
        If there is none, or it can't be run or is too old.
    """
    name = os.fspath(name)
    path = shutil.which(name)
    if path is None and name == "ncu":
        path = next(filter(shutil.which, _usual_places()), None)
    if path is None:
        raise not_found(name)
    version = _version(path)
    if version < MIN_VERSION:
        raise too_old(path, _dotted(version), _dotted(MIN_VERSION))
    return path


def profile_command(
    ncu: str, metrics: Sequence[str], report: Path, log: Path, program: Sequence[str]
) -> list[str]:
    """Return the command that runs a program and reads the counters of what `marks` encloses.

    Clocks stay as they are; caches are flushed before each kernel, as ncu does by default.

    Parameters
    ----------
    ncu : str
        Its path.
    metrics : sequence of str
        What to read.
    report, log : Path
        Where the report (``.ncu-rep``) and ncu's own output go.
    program : sequence of str
        The program's command line.
    """
    return [
        ncu,
        *("--metrics", ",".join(metrics)),
        *("--nvtx", "--nvtx-include", FILTER),
        *("--clock-control", "none"),
        *("--replay-mode", "kernel"),
        *("--target-processes", "all"),
        "--disable-profiler-start-stop",  # or a profile() in the function would end it all
        # In a file's name, ncu takes % for the beginning of a macro.
        *("--export", str(report).replace("%", "%%"), "--force-overwrite"),
        *("--log-file", str(log)),
        *program,
    ]


def print_command(ncu: str, report: Path) -> list[str]:
    """Return the command that prints a report as CSV, one row for each kernel."""
    return [ncu, "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]


def _usual_places() -> Iterator[str]:
    for place in _PLACES:
        yield from sorted(glob.glob(os.path.expandvars(place)), key=_numbers, reverse=True)


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]


def _version(path: str) -> tuple[int, int]:
    try:
        said = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_VERSION_TIMEOUT,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise CounterError(f"{path} can't be run: {error}.", _REINSTALL) from error
    found = re.search(r"Version (\d+)\.(\d+)", said)
    if found is None:
        last = said.strip().splitlines()[-1:] or ["nothing"]
        raise CounterError(f"{path} --version doesn't tell its version: {last[0]}.", _REINSTALL)
    return int(found[1]), int(found[2])


_REINSTALL = "Name another one: ncu='/path/to/ncu'."


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
