"""What a report shows, in a few words."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpubench.render.content import visible
from gpubench.render.report.rows import Row, compared_arm
from gpubench.render.report.runs import Run
from gpubench.render.units import format_bytes


@dataclass(frozen=True)
class Written:
    """A report that was written. Printed, it is a line for the page and one for each comparison.

    Attributes
    ----------
    path : str
        The page.
    size_bytes : int
        How large it is.
    files : tuple of str
        The files of results; the first is the baseline.
    n_benchmarks : int
        How many different ones they hold.
    statuses : mapping of str to int
        How many benchmarks have each status, in any of the files.
    verdicts : tuple of mapping of str to int
        For each file but the first, how many benchmarks have each verdict.
    """

    path: str
    size_bytes: int
    files: tuple[str, ...]
    n_benchmarks: int
    statuses: Mapping[str, int]
    verdicts: tuple[Mapping[str, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        count = f"{self.n_benchmarks} benchmark{'s' if self.n_benchmarks != 1 else ''}"
        lines = [f"{visible(self.path)}: {count} ({format_bytes(self.size_bytes)})"]
        first, *others = map(visible, self.files)
        for file, counts in zip(others, self.verdicts, strict=True):
            found = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
            lines.append(f"{file} against {first}: {found or 'nothing to compare'}")
        return "\n".join(lines)


def written(
    path: str | os.PathLike[str], size_bytes: int, runs: Sequence[Run], rows: Sequence[Row]
) -> Written:
    """Count what a report shows."""
    return Written(
        path=os.fspath(path),
        size_bytes=size_bytes,
        files=tuple(run.saved.path or run.label for run in runs),
        n_benchmarks=len(rows),
        statuses=dict(Counter(status for row in rows for status in row.statuses)),
        verdicts=tuple(_verdicts(rows, place) for place in range(len(runs) - 1)),
    )


def _verdicts(rows: Sequence[Row], place: int) -> dict[str, int]:
    compared = (row.comparisons[place] for row in rows)
    return dict(Counter(compared_arm(each).verdict for each in compared if each is not None))
