"""The kinds of benchmarks: by which names they are known, and how each is measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gpubench.suites.execution import Execution, Reading
from gpubench.suites.gpu_time import gpu_time
from gpubench.suites.host_time import host_time, raw_time
from gpubench.suites.value import copied_bytes, peak_bytes, returned_value


@dataclass(frozen=True)
class Kind:
    """A kind of benchmark.

    Attributes
    ----------
    pattern : re.Pattern
        Matches the function's name.
    measure : callable
        Measures one that is set up.
    repeats : bool
        Whether it has samples, so that it is measured in several rounds.
    runs_alone : bool
        Whether other benchmarks in the same process would be measured with it.
    """

    pattern: re.Pattern[str]
    measure: Callable[[Execution], Reading]
    repeats: bool = False
    runs_alone: bool = False


KINDS = (
    Kind(re.compile(r"time_.|Time[A-Z_]."), host_time, repeats=True),
    Kind(re.compile(r"gputime_.|GpuTime[A-Z_]."), gpu_time, repeats=True),
    Kind(re.compile(r"timeraw_.|Timeraw[A-Z_]."), raw_time, repeats=True),
    Kind(re.compile(r"track_.|Track[A-Z_]."), returned_value),
    Kind(re.compile(r"peakmem_.|PeakMem[A-Z_]."), peak_bytes, runs_alone=True),
    Kind(re.compile(r"mem_.|Mem[A-Z_]."), copied_bytes),
)


def kind_of(name: str) -> Kind | None:
    """Return what kind of benchmark has this name, None if it is none's."""
    last = name.rpartition(".")[2]
    return next((kind for kind in KINDS if kind.pattern.match(last)), None)
