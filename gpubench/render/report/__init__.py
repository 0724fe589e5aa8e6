"""A report: results of one or several runs as one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from gpubench import arguments
from gpubench.comparison.judgement import MARGIN
from gpubench.errors import ArgumentError
from gpubench.files import replacing
from gpubench.render.report.page import page_of
from gpubench.render.report.rows import compare_with_first, rows_of
from gpubench.render.report.runs import Run, read_runs
from gpubench.render.report.written import Written, written

__all__ = ["Run", "Written", "read_runs", "write"]


def write(runs: Sequence[Run], path: str | PathLike[str], *, margin: float = MARGIN) -> Written:
    """Write a report of one or several runs.

    Parameters
    ----------
    runs : sequence of Run
        As `read_runs` returns them. The others are compared with the first.
    path : str or path-like
        A file that is there is replaced once the new one is whole.
    margin : float
        Relative difference up to which times count as the same.

    Returns
    -------
    Written
        What the page shows.

    Raises
    ------
    ArgumentError
        If there is no run.
    MissingExtraError
        If the extra ``report`` isn't installed.
    OSError
        If the file can't be written; what was there stays.
    """
    margin = arguments.finite_number("margin", margin, above=0)
    if not runs:
        raise ArgumentError("runs must hold a run")
    compared = compare_with_first(runs, margin)
    rows = rows_of(runs, compared)
    content = page_of(runs, rows, compared, margin).encode()
    with replacing(path) as file:
        file.write(content)
    return written(path, len(content), runs, rows)
