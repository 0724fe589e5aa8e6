"""One region of a function that is being measured."""

from __future__ import annotations

from dataclasses import dataclass

from gpubench.compilation import Compilation
from gpubench.notes import Note
from gpubench.sweeps.region_clock import Way


@dataclass
class Region:
    """What is known of one region, and its part in a result.

    The attributes that `Bench.result` reads of a session are the same here.
    """

    name: str
    way: Way
    method: str = ""
    usual_notes: tuple[Note, ...] = ()
    own_notes: tuple[Note, ...] = ()
    entry_floor: float = 0.0
    clock_step: float | None = None
    n_expired: int = 0
    n_warmup: int = 0
    first_call_time: None = None  # the function's isn't the region's
    first_call_compile_time: None = None
    first_compilations: tuple[Compilation, ...] | None = ()
    samples_per_gate: int = 1
    n_entries: int = 0
    n_inner: int = 0
    n_runs: int = 0
    is_crossed: bool = False

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the reader of its times should know."""
        return (*self.usual_notes, *self.own_notes)

    @property
    def entries(self) -> float:
        """How often a run entered it, on average."""
        return self.n_entries / self.n_runs if self.n_runs else 1.0

    @property
    def floor(self) -> float:
        """Seconds that its timing reports for as many empty entries, with those inside of it."""
        inner = self.n_inner / self.n_runs if self.n_runs else 0.0
        return self.entry_floor * (self.entries + 2 * inner)
