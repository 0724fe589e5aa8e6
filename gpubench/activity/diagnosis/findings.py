"""One thing that keeps a GPU from its work: what was seen, its cost, and the records of it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

import numpy as np

from gpubench.activity.intervals import Integers
from gpubench.notes import Note

_WIDTH = 80


@dataclass(frozen=True, kw_only=True)
class Finding(Note):
    """A note on a recording, with what it costs and the records that show it.

    Printed, it is the note, wrapped, with the costliest of its records below.

    Attributes
    ----------
    share : float
        The cost in relation to the recording's time, 0 to 1; 0 where it isn't about time.
    cost_time : float
        The same in seconds.
    table : str
        Where the records are: ``"activities"``, ``"calls"`` or ``"compilations"`` of the
        recording; empty if none show it.
    rows : ndarray of int, shape (n,)
        Which rows of that table they are, the costliest first. Read-only.
    examples : tuple of str
        The first few of them, a line each: milliseconds from the beginning, name, duration.
    """

    share: float = 0.0
    cost_time: float = 0.0
    table: str = ""
    rows: Integers = field(default_factory=lambda: np.empty(0, np.int64), compare=False, repr=False)
    examples: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows = np.array(self.rows, np.int64)
        rows.flags.writeable = False
        object.__setattr__(self, "rows", rows)

    def __str__(self) -> str:
        note = textwrap.fill(
            super().__str__(),
            width=_WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n    ".join([note, *self.examples])
