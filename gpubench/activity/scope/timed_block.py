"""One run of a timer's block: its clocks, what is recorded meanwhile, and what is printed of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter_ns

from gpubench.activity.scope.gpu_clock import Moment, current_clock, wait_for_gpus
from gpubench.activity.scope.host_profile import HostProfile
from gpubench.activity.scope.timing import TimingResult, asked_for, timed_activities, timing_print
from gpubench.errors import UnsupportedError
from gpubench.ranges.annotation import time_range


@dataclass(frozen=True)
class Settings:
    """What a timer was asked for; see `ScopedTimer`, whose arguments these are, in their order."""

    name: str
    active: bool
    print: bool
    detailed: bool
    dict: MutableMapping[str, list[float]] | None
    use_nvtx: bool
    color: str | int
    synchronize: bool
    activity_filter: int
    report_func: Callable[[list[TimingResult], str], object] | None


@dataclass(frozen=True)
class Reading:
    """Both clocks at one moment.

    Attributes
    ----------
    host : int
        Nanoseconds.
    gpu : Moment or None
        None where the GPU's clock can't be read.
    """

    host: int
    gpu: Moment | None = None


@dataclass(frozen=True)
class Lap:
    """What lies between two readings of a timer's clocks.

    Attributes
    ----------
    label : str
        What it was given as.
    begin, end : Reading
        The two.
    elapsed : float
        The host's milliseconds.
    gpu_elapsed : float or None
        The GPU's milliseconds, as `ScopedTimer` explains them; waits, the first time, until the
        GPU is done with what it has been given. None if the GPU wasn't timed.
    """

    label: str
    begin: Reading = field(repr=False)
    end: Reading = field(repr=False)

    def __repr__(self) -> str:
        return f"<Lap {self.label!r}: {self.elapsed:.3f} ms>"

    @property
    def elapsed(self) -> float:
        """The host's milliseconds."""
        return (self.end.host - self.begin.host) * 1e-6

    @cached_property
    def gpu_elapsed(self) -> float | None:
        """The GPU's milliseconds, if it was timed."""
        if self.begin.gpu is None or self.end.gpu is None:
            return None
        return self.end.gpu.seconds_since(self.begin.gpu) * 1e3


class Block:
    """One run of a timer's block, from `begin` to `end`.

    Attributes
    ----------
    owner : int
        Who is in it, as `gpubench.ranges.suspension` tells them apart.
    is_open : bool
        Whether it has begun and not ended.
    indent : str
        What its lines begin with.
    extra_msg : str
        What its last line ends with.
    whole : Lap
        All of it, once it has ended.
    splits : list of Lap
        Its parts, as far as they were asked for.
    results : list of TimingResult
        What ran on the GPUs, once it has ended.
    """

    def __init__(self, settings: Settings, owner: int, indent: str, extra_msg: str) -> None:
        self._settings = settings
        self.owner = owner
        self.indent = indent
        self.extra_msg = extra_msg
        self.is_open = False
        self.splits: list[Lap] = []
        self.results: list[TimingResult] = []
        self._unlisted = ""  # why there are no results
        self._profile: HostProfile | None = None
        self._is_gpu_done = settings.synchronize

    @property
    def prints(self) -> bool:
        """Whether it will print lines, which those inside are indented against."""
        return self._settings.print

    def begin(self) -> None:
        """Open what is to be open meanwhile, and read the clocks."""
        settings = self._settings
        self._clock = current_clock()
        with ExitStack() as stack:
            if settings.synchronize or settings.activity_filter:
                wait_for_gpus()
            if settings.activity_filter:
                self._begin_recording()
                stack.callback(self._end_recording)
            if settings.use_nvtx:
                stack.enter_context(_process_range(settings.name, settings.color))
            if settings.detailed:
                self._profile = HostProfile()
                self._profile.start()
                stack.callback(self._profile.stop)
            gpu = self._clock.now() if self._clock else None
            self._opened = stack.pop_all()
        self.is_open = True
        self._begin = self._latest = Reading(perf_counter_ns(), gpu)

    def split(self, label: str) -> None:
        """End a part, and print its time."""
        now = self._reading(perf_counter_ns())
        lap = Lap(label, self._latest, now)
        self._latest = now
        self.splits.append(lap)
        if self.prints:
            print(f"{self.indent}{self._settings.name}: {self._line(lap)}")

    def end(self) -> None:
        """Read the clocks, and close what `begin` opened."""
        host = perf_counter_ns()
        self.is_open = False
        name = self._settings.name
        self.whole = Lap(name, self._begin, Reading(host))  # which stands if the GPU fails
        with self._opened:
            self.whole = Lap(name, self._begin, self._reading(host))

    def report(self) -> None:
        """Print what was asked for."""
        settings = self._settings
        if self._profile and not self._profile.reason:
            self._profile.show()
        if not settings.print:
            return
        if self._profile and self._profile.reason:
            print(f"{self.indent}there is no profile: {self._profile.reason}")
        if self.results:
            (settings.report_func or timing_print)(self.results, self.indent)
        elif self._unlisted:
            what = asked_for(settings.activity_filter)
            print(f"{self.indent}{what} aren't listed: {self._unlisted}")
        extra = f" {self.extra_msg}" if self.extra_msg else ""
        print(f"{self.indent}{self._line(self.whole)}{extra}")

    def _line(self, lap: Lap) -> str:
        gpu_elapsed = lap.gpu_elapsed if self._is_gpu_done else None
        gpu = "" if gpu_elapsed is None else f" (GPU {gpu_elapsed:.2f} ms)"
        return f"{lap.label} took {lap.elapsed:.2f} ms{gpu}"

    def _reading(self, host: int) -> Reading:
        """Read the GPU's clock too; if that is to be waited for, the host's once more."""
        gpu = self._clock.now() if self._clock else None
        if self._settings.synchronize:
            wait_for_gpus()
            host = perf_counter_ns()
        return Reading(host, gpu)

    def _begin_recording(self) -> None:
        self._recording = ExitStack()
        try:
            activities = timed_activities(self._settings.activity_filter)
            self.results = self._recording.enter_context(activities)
        except UnsupportedError as error:
            self._unlisted = str(error)

    def _end_recording(self) -> None:
        try:
            with self._recording:
                wait_for_gpus()
        except UnsupportedError as error:
            self._unlisted = str(error)
        self._is_gpu_done = True


@contextmanager
def _process_range(name: str, color: str | int) -> Iterator[None]:
    # A range that a generator opens may overlap others, as the blocks of tasks do.
    with time_range(name, color=color):
        yield
