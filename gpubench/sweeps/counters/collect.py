"""`collect_counters`: a second pass over a sweep's configurations, under Nsight Compute."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from gpubench.arguments import callable_name, finite_number
from gpubench.errors import ArgumentError, GpubenchError
from gpubench.files import replacing
from gpubench.notes import Note
from gpubench.sweeps.counters import faults
from gpubench.sweeps.counters.join import Place, join
from gpubench.sweeps.counters.metrics import (
    TIME,
    Reduction,
    UserReduction,
    metric_names,
    reductions,
)
from gpubench.sweeps.counters.parse import read_report
from gpubench.sweeps.counters.profiling import Profile, profile
from gpubench.sweeps.counters.tool import find_ncu

TIMEOUT = 600.0

_SUFFIX = ".ncu-rep"


@dataclass(frozen=True)
class CounterReport:
    """Hardware counters of a sweep.

    Attributes
    ----------
    values : mapping of (int, str or None) to mapping of str to float
        Counters by metric, for one run of the function: by the index of the configuration and
        the region's name; None is the whole run, whatever its regions. A metric that ncu
        couldn't read there is left out, and so is a place where nothing was launched.
    units : mapping of str to str
        The metrics' units as ncu calls them, for example ``"byte"``, ``"%"`` or ``"ns"``.
    notes : tuple of Note
        Why there are none (code ``"no-counters"``) or some are missing (``"some-counters"``),
        and what to do about it.
    """

    values: Mapping[Place, Mapping[str, float]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def collect_counters(
    func: Callable[..., object],
    configs: Sequence[Mapping[str, object]],
    metrics: str | Iterable[str],
    *,
    ncu: str | PathLike[str] = "ncu",
    keep_report: str | PathLike[str] | None = None,
    reduce: UserReduction | Mapping[str, UserReduction] | None = None,
    timeout: float = TIMEOUT,
) -> CounterReport:
    """Read hardware counters of each configuration of a function, region by region.

    The function runs in a fresh process under NVIDIA Nsight Compute, twice in each
    configuration: the counters are those of the second run. ncu repeats each kernel until it has
    them all, with the GPU's caches flushed before each time; clocks are left alone.

    Parameters
    ----------
    func : callable
        Anything that cloudpickle can send to another process.
    configs : sequence of mapping
        What `configurations` returned for it.
    metrics : str or iterable of str
        Names of metrics and of sets, as `metric_names` takes them.
    ncu : str or path-like
        The program's name, to be found on PATH or where CUDA is, or its path.
    keep_report : str or path-like, optional
        Where to keep ncu's report; ``.ncu-rep`` is appended if it isn't there.
    reduce : callable or mapping of str to callable, optional
        Makes one value of those of a region's kernels, a float array of shape (n,) in the order
        of their launch, for all metrics or for some. By default, as each name demands; see
        `reduction`.
    timeout : float
        Seconds after which the pass is ended.

    Returns
    -------
    CounterReport
        With notes instead of values if ncu is absent, too old, not permitted to read counters or
        fails, if the process dies or is too slow, or if `func` can't be sent there or `reduce`
        fails: none of that is raised.

    Raises
    ------
    ArgumentError
        If `metrics`, `reduce`, `timeout` or `keep_report` can't be used; before anything runs.
    """
    reduce_by = reductions(metric_names(metrics), reduce)
    timeout = finite_number("timeout", timeout, above=0)
    kept = None if keep_report is None else report_path(keep_report)
    wanted = tuple(dict.fromkeys((*reduce_by, TIME)))
    name = callable_name(func)
    with TemporaryDirectory(prefix="gpubench-", ignore_cleanup_errors=True) as folder:
        try:
            path = find_ncu(ncu)
            run = profile(path, name, (func, list(configs)), wanted, Path(folder), timeout)
            if kept is not None:
                with run.report.open("rb") as source, replacing(kept) as target:
                    shutil.copyfileobj(source, target)
            return _joined(run, path, wanted, reduce_by, timeout)
        except (GpubenchError, OSError) as error:
            return CounterReport(notes=(faults.no_counters(error),))


def report_path(keep_report: str | PathLike[str]) -> Path:
    """Return where a report is to be kept.

    Raises
    ------
    ArgumentError
        If there is no such folder.
    """
    path = Path(keep_report)
    if path.suffix != _SUFFIX:
        path = path.with_name(path.name + _SUFFIX)
    if not path.parent.is_dir():
        raise ArgumentError(f"keep_report={str(path)!r} is in a folder that doesn't exist")
    return path


def _joined(
    run: Profile,
    ncu: str,
    wanted: Sequence[str],
    reduce_by: Mapping[str, Reduction],
    timeout: float,
) -> CounterReport:
    report = read_report(run.report, wanted, ncu, timeout)
    if not report.kernels:
        raise faults.unmarked()
    # The counters of a run that came to no end would be those of a part of it.
    whole = [each for each in report.kernels if run.progress.is_whole(each.config)]
    try:
        joined = join(whole, run.progress.regions, reduce_by)
    except Exception as error:  # the caller's function may raise anything
        raise faults.unreduced(error) from error
    notes = [faults.some_counters(problem) for problem in run.problems]
    if joined.missing:
        notes.append(faults.some_counters(faults.unavailable(joined.missing)))
    units = {name: unit for name, unit in report.units.items() if name in reduce_by}
    return CounterReport(joined.values, units, tuple(notes))
