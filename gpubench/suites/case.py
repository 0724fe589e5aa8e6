"""What is to be run, and what became of it: values that processes send each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.result import BenchmarkResult
from gpubench.storage import Record
from gpubench.storage.record import Status


@dataclass(frozen=True)
class SuiteFile:
    """A Python file of a suite.

    Attributes
    ----------
    root : str
        The suite's folder, which is imported as a package.
    module : str
        The file's dotted name below that package; empty for the package itself.
    path : str
        Where it is.
    """

    root: str
    module: str
    path: str


@dataclass(frozen=True)
class Effort:
    """How much time a run takes over each benchmark, unless the benchmark says it.

    Attributes
    ----------
    rounds : int
        How often the whole suite is gone over, in fresh processes each time.
    max_samples : int
        Samples of host times in a round.
    duration : float
        Seconds for the samples of a round.
    sample_time : float
        Seconds that a sample of host times should last: it makes several calls if one is shorter.
    warmup_time : float
        Seconds of warm-up for host times.
    is_quick : bool
        Whether these are limits, also where a benchmark asks for more.
    """

    rounds: int
    max_samples: int
    duration: float
    sample_time: float
    warmup_time: float
    is_quick: bool = False


FULL = Effort(rounds=6, max_samples=10, duration=0.15, sample_time=0.01, warmup_time=0.1)
"""Six rounds, since fewer can't bear a 95 % interval."""

QUICK = Effort(
    rounds=1, max_samples=3, duration=0.02, sample_time=1e-3, warmup_time=0.0, is_quick=True
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A benchmark with one set of parameters.

    Attributes
    ----------
    file : SuiteFile
        Where it stands.
    name : str
        Name of the benchmark, for example ``"bench_sort.Sort.time_sort"``.
    index : int
        Which combination of its parameters this is.
    params : mapping of str to object
        Their values by name, as `Record` keeps them.
    label : str
        What a reader is to see as its name.
    rounds : int or None
        In how many rounds it wants to run; None if it doesn't say.
    timeout : float
        Seconds that it may take in a round, its ``setup_cache`` included.
    runs_alone : bool
        Whether it needs a process of its own.
    key : str
        Name and parameters, unlike those of any other case of the suite.
    """

    file: SuiteFile
    name: str
    index: int
    params: Mapping[str, object]
    label: str
    rounds: int | None
    timeout: float
    runs_alone: bool = False
    key: str = ""

    def record(self, **values: Any) -> Record:
        """Return a record of this case."""
        return Record(name=self.name, params=self.params, **values)


@dataclass(frozen=True)
class Task:
    """Cases of one file that run one after the other, in one process if none of them ends it.

    Attributes
    ----------
    file : SuiteFile
        Where they stand.
    cases : sequence of Case
        In the order in which they are to run.
    round : int
        Which round this is of.
    effort : Effort
        How much time to take.
    """

    file: SuiteFile
    cases: Sequence[Case]
    round: int
    effort: Effort


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a case in one round.

    Attributes
    ----------
    key : str
        The case's.
    round : int
        Which round it was.
    status, reason, result, value, unit
        As in `Record`.
    """

    key: str
    round: int
    status: Status = "ok"
    reason: str = ""
    result: BenchmarkResult | None = None
    value: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Order:
    """What a child process is to do.

    Attributes
    ----------
    files : sequence of SuiteFile
        The files to import; that of the task, if there is one.
    load_timeout : float
        Seconds for each.
    task : Task or None
        What to run then; None to say what is in each file.
    scratch : str
        A folder for what benchmarks leave to each other.
    """

    files: Sequence[SuiteFile]
    load_timeout: float
    task: Task | None = None
    scratch: str = ""


@dataclass(frozen=True)
class Found:
    """A child's answer: the cases of a file.

    Attributes
    ----------
    cases : sequence of Case
        In the file's order, without keys.
    """

    cases: Sequence[Case]


@dataclass(frozen=True)
class Unloadable:
    """A child's answer: a file can't be imported.

    Attributes
    ----------
    reason : str
        Why not.
    """

    reason: str


@dataclass(frozen=True)
class Began:
    """A child's announcement: from now on whatever happens is a case's doing.

    Attributes
    ----------
    key : str
        The case's.
    """

    key: str


@dataclass(frozen=True)
class Finished:
    """A child's last words, when it has done all that it was to do."""


Event = Found | Unloadable | Began | Outcome | Finished
