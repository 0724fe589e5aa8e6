"""Reading a report of Nsight Compute: by the package ncu-report, or as the CSV that ncu prints."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from gpubench.sweeps.counters.faults import CounterError, errors_in, failed
from gpubench.sweeps.counters.marks import DOMAIN, read_marks
from gpubench.sweeps.counters.tool import print_command

_FIRST_COLUMN = "ID"
_SHORT_UNITS = {"nsecond": "ns"}  # as the package says


@dataclass(frozen=True)
class Kernel:
    """One kernel of a report.

    Attributes
    ----------
    name : str
        The kernel's name.
    config : int
        Index of the configuration that launched it.
    regions : frozenset of int
        Numbers of the regions that it was launched in.
    values : mapping of str to float
        Its metrics, in ncu's base units; those that ncu couldn't read are left out.
    """

    name: str
    config: int
    regions: frozenset[int] = frozenset()
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """What a report says.

    Attributes
    ----------
    kernels : tuple of Kernel
        Those of the configurations, in the order of their launch.
    units : mapping of str to str
        The metrics' units, for example ``"byte"``, ``"%"`` or ``"ns"``.
    """

    kernels: tuple[Kernel, ...]
    units: Mapping[str, str]


def read_report(path: Path, metrics: Sequence[str], ncu: str, timeout: float) -> Report:
    """Read a report, by the package ncu-report if it is installed and can read it.

    Parameters
    ----------
    path : Path
        The report.
    metrics : sequence of str
        What is wanted of it.
    ncu : str
        Path of the ncu that made it.
    timeout : float
        Seconds that ncu may take to print it.

    Raises
    ------
    CounterError
        If neither can read it.
    """
    try:
        return _from_package(path, metrics)
    except Exception:  # noqa: BLE001  # not installed, too old for the report, or not for this system
        return parse_csv(_printed(path, ncu, timeout), metrics)


def _from_package(path: Path, metrics: Sequence[str]) -> Report:
    context = import_module("ncu_report").load_report(str(path))
    kernels = []
    units: dict[str, str] = {}
    for run in map(context.range_by_idx, range(context.num_ranges())):
        for action in map(run.action_by_idx, range(run.num_actions())):
            config, regions = read_marks(_own_ranges(action))
            if config is None:
                continue
            read = {name: action.metric_by_name(name) for name in metrics}
            read = {name: each for name, each in read.items() if each and each.has_value()}
            units |= {name: metric.unit() for name, metric in read.items()}
            values = _finite({name: metric.as_double() for name, metric in read.items()})
            kernels.append(Kernel(action.name(), config, regions, values))
    return Report(tuple(kernels), units)


def _own_ranges(action: Any) -> Iterator[str]:
    """Yield the names of the ranges of `DOMAIN` in which a kernel was launched."""
    state = action.nvtx_state()
    for number in state.domains() if state else ():
        domain = state.domain_by_id(number)
        if domain.name() == DOMAIN:
            yield from domain.push_pop_ranges()
            yield from domain.start_end_ranges()


def _printed(path: Path, ncu: str, timeout: float) -> str:
    try:
        done = subprocess.run(
            print_command(ncu, path),
            env=os.environ | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CounterError(f"{ncu} can't print its report: {error}.") from error
    return done.stdout


def parse_csv(text: str, metrics: Sequence[str]) -> Report:
    """Read what ``ncu --csv --page raw`` prints: a row for each kernel, below names and units.

    Parameters
    ----------
    text : str
        The output. Lines that are not of the table are skipped.
    metrics : sequence of str
        What is wanted of it.

    Raises
    ------
    CounterError
        If there is no table.
    """
    kernels = []
    units: dict[str, str] = {}
    for row in _table(text):
        wanted = {name: row[name] for name in metrics if name in row}
        if not row[_FIRST_COLUMN]:
            units = {name: _SHORT_UNITS.get(unit, unit) for name, unit in wanted.items()}
            continue
        config, regions = read_marks(_ranges(row))
        if config is not None:
            values = _finite({name: _number(cell) for name, cell in wanted.items()})
            kernels.append(Kernel(row.get("Kernel Name", ""), config, regions, values))
    return Report(tuple(kernels), units)


def _table(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the table, each by its columns."""
    start = re.search(f'^"{_FIRST_COLUMN}",', text, re.MULTILINE)
    if start is None:
        raise failed(errors_in(text) or ["it printed no table of its report"])
    table = csv.reader(io.StringIO(text[start.start() :], newline=""))
    header = next(table)
    for row in table:
        if len(row) == len(header):
            yield dict(zip(header, row, strict=True))


def _ranges(row: Mapping[str, str]) -> Iterator[str]:
    """Yield what a row says of each range of `DOMAIN` in which its kernel was launched.

    Two columns, of the ranges that nest and of process ranges, have entries in quotes, such as
    ``"gpubench-counters:region 3:none:..."`` and ``"7:gpubench-counters:configuration 0:..."``:
    the domain, the name, and what else NVTX knows of the range.
    """
    for column, cell in row.items():
        if "_Range:" in column:
            for entry in cell.split(DOMAIN)[1:]:
                yield entry.partition('"')[0]


def _number(cell: str) -> float:
    """Return a cell's number, without the commas between thousands; NaN if it has none."""
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return math.nan  # n/a


def _finite(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}
