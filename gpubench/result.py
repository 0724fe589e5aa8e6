"""The result of a benchmark: the raw samples, how they were taken, and what they say."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpubench.arguments import finite_number, whole_number
from gpubench.compilation import Compilation
from gpubench.errors import ArgumentError, MissingExtraError
from gpubench.kernel_time import KernelTime
from gpubench.notes import Note
from gpubench.reading import result_fields, values_of
from gpubench.render import html, text
from gpubench.stats import FloatArray, Statistics, finite_array, summarize

if TYPE_CHECKING:
    import pandas as pd
    from IPython.lib.pretty import RepresentationPrinter

StoppedBy = Literal["n_repeat", "converged", "max_duration", "interrupted"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BenchmarkResult:
    """What `benchmark` measured: every sample in run order, and the conditions.

    Printed, it is the line of ``cupyx.profiler.benchmark`` followed by the notes. Its `repr` is a
    short form, `summary` the fuller view that IPython and Jupyter show. Results are equal if all
    their attributes are.

    Attributes
    ----------
    name : str
        What was timed.
    cpu_times : ndarray, shape (n,)
        Seconds that the host spent in each call. Read-only.
    gpu_times : ndarray, shape (n_devices, n)
        Seconds that each device spent on each call; no rows without a GPU. Read-only.
    busy_times : ndarray, shape (n_devices, n) or (0, n)
        Seconds of each call in which each device did something for it; without rows if the method
        can't tell. `gpu_times` last from the first thing to the last. Read-only.
    kernels : tuple of KernelTime
        The kernels that the calls ran; empty if the method can't tell.
    devices : tuple of int
        Ids of the devices, one for each row of `gpu_times`.
    method : str
        How the times were taken: ``"host"``, ``"events"``, ``"gated"``, ``"graph"`` or
        ``"cupti"``.
    cache : str
        ``"warm"``, or ``"cold"`` if the GPU's L2 cache was flushed before each call.
    samples_per_gate : int
        How many calls were queued behind one gate; 1 if each had its own, or there is none.
    floor : float or None
        Seconds that the method reports for an empty call, not subtracted; None if unknown.
    clock_step : float or None
        Seconds between two values that the device's clock can show; None if unknown.
    n_warmup : int
        Calls that went ahead of the samples.
    first_call_time : float or None
        Seconds of the very first call, with whatever it compiled and loaded; None if it was not
        timed.
    first_call_compile_time : float or None
        Seconds of it that CuPy spent on compiling or reading its cache; None if unknown.
    compilations : tuple of Compilation
        What CuPy compiled, or read from its cache, in the first call and while samples were taken.
    stopped_by : str
        What ended the run: ``"n_repeat"``, ``"converged"`` (the median is known well enough),
        ``"max_duration"`` or ``"interrupted"``.
    notes : tuple of Note
        What a reader should know before trusting the numbers.
    environment : mapping
        The machine and the software, as plain JSON values. Read-only.
    ranks : tuple of BenchmarkResult
        What each rank measured, where several processes did so together (`benchmark`'s `comm`);
        then each of the times above is that of the slowest rank, and what can't be the slowest's
        is the first's. Empty otherwise.

    Raises
    ------
    ArgumentError
        If the arrays' shapes disagree with each other or with `devices`, or a value is of the
        wrong kind.
    """

    name: str
    cpu_times: FloatArray
    gpu_times: FloatArray
    busy_times: FloatArray
    kernels: tuple[KernelTime, ...]
    devices: tuple[int, ...]
    method: str
    cache: str
    samples_per_gate: int
    floor: float | None
    clock_step: float | None
    n_warmup: int
    first_call_time: float | None
    first_call_compile_time: float | None
    compilations: tuple[Compilation, ...]
    stopped_by: StoppedBy
    notes: tuple[Note, ...]
    environment: Mapping[str, object]
    ranks: tuple[BenchmarkResult, ...] = ()

    def __post_init__(self) -> None:
        devices = _device_ids(self.devices)
        cpu_times = finite_array(self.cpu_times, "cpu_times")
        gpu_times = finite_array(self.gpu_times, "gpu_times")
        if cpu_times.ndim != 1 or cpu_times.size == 0:
            raise ArgumentError(
                f"cpu_times must be one-dimensional with a sample, got shape {cpu_times.shape}"
            )
        shape = (len(devices), cpu_times.size)
        if gpu_times.shape != shape:
            raise ArgumentError(
                f"gpu_times must have shape {shape} for {shape[0]} devices and {shape[1]} CPU"
                f" times, got {gpu_times.shape}"
            )
        busy_times = finite_array(self.busy_times, "busy_times")
        if busy_times.shape not in (shape, (0, cpu_times.size)):
            raise ArgumentError(
                f"busy_times must have shape {shape}, like gpu_times, or no rows, "
                f"got {busy_times.shape}"
            )
        values = {
            "busy_times": _frozen(busy_times),
            "kernels": tuple(self.kernels),
            "devices": devices,
            "cpu_times": _frozen(cpu_times),
            "gpu_times": _frozen(gpu_times),
            "samples_per_gate": whole_number("samples_per_gate", self.samples_per_gate, at_least=1),
            "n_warmup": whole_number("n_warmup", self.n_warmup, at_least=0),
            "floor": _time_or_none("floor", self.floor),
            "clock_step": _time_or_none("clock_step", self.clock_step),
            "first_call_time": _time_or_none("first_call_time", self.first_call_time),
            "first_call_compile_time": _time_or_none(
                "first_call_compile_time", self.first_call_compile_time
            ),
            "compilations": tuple(self.compilations),
            "notes": tuple(self.notes),
            "environment": _json_copy(self.environment),
            "ranks": tuple(self.ranks),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @cached_property
    def cpu(self) -> Statistics:
        """Statistics of `cpu_times`, in seconds."""
        return summarize(self.cpu_times)

    @cached_property
    def gpu(self) -> tuple[Statistics, ...]:
        """Statistics of each row of `gpu_times`, in seconds."""
        return tuple(summarize(row) for row in self.gpu_times)

    @cached_property
    def busy(self) -> tuple[Statistics, ...]:
        """Statistics of each row of `busy_times`, in seconds."""
        return tuple(summarize(row) for row in self.busy_times)

    @cached_property
    def rank_medians(self) -> FloatArray:
        """Median seconds on each rank's busiest device, or of its host; shape (n_ranks,)."""
        return np.array(
            [max((s.median for s in rank.gpu), default=rank.cpu.median) for rank in self.ranks]
        )

    @property
    def imbalance(self) -> float | None:
        """The largest of `rank_medians` over their mean, less 1; None without ranks."""
        mean = float(self.rank_medians.mean()) if self.ranks else 0.0
        return float(self.rank_medians.max()) / mean - 1 if mean else None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run before it was done."""
        return self.stopped_by == "interrupted"

    def to_str(self, show_gpu: bool = False) -> str:
        """Return the line of ``cupyx.profiler.benchmark``, without the notes.

        Parameters
        ----------
        show_gpu : bool
            Whether the devices follow the CPU.
        """
        return text.cupy_line(self, show_gpu)

    def __str__(self) -> str:
        return text.line_and_notes(self)

    def __repr__(self) -> str:
        return text.short_form(self)

    def summary(self) -> str:
        """Return a panel of several lines to print.

        It shows how the call was timed, the median and its 95 % interval, range, mean and standard
        deviation of the CPU beside each device, a histogram of the first device's times (the CPU's
        if there is none), and the notes.
        """
        return text.summary(self)

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        for number, line in enumerate(self.summary().splitlines()):
            if number:
                printer.break_()
            printer.text(line)

    def _repr_html_(self) -> str:
        return html.fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, under the same keys whatever was measured.

        Returns
        -------
        dict
            Strings, numbers, lists and dicts; None where something is unknown. Keys end in ``_s``
            where the values are seconds. ``cpu`` and each entry of ``gpu`` hold the statistics.
        """
        return {
            "name": self.name,
            "method": self.method,
            "cache": self.cache,
            "samples_per_gate": self.samples_per_gate,
            "floor_s": self.floor,
            "clock_step_s": self.clock_step,
            "n_warmup": self.n_warmup,
            "first_call_time_s": self.first_call_time,
            "first_call_compile_time_s": self.first_call_compile_time,
            "compilations": [
                {"names": list(each.names), "source": each.source, "wall_time_s": each.wall_time}
                for each in self.compilations
            ],
            "stopped_by": self.stopped_by,
            "interrupted": self.interrupted,
            "devices": list(self.devices),
            "cpu_times_s": self.cpu_times.tolist(),
            "gpu_times_s": self.gpu_times.tolist(),
            "busy_times_s": self.busy_times.tolist(),
            "kernels": [
                {"name": each.name, "calls": each.calls, "median_time_s": each.median_time}
                for each in self.kernels
            ],
            "cpu": self.cpu.to_dict("s"),
            "gpu": [statistics.to_dict("s") for statistics in self.gpu],
            "busy": [statistics.to_dict("s") for statistics in self.busy],
            "notes": [dataclasses.asdict(note) for note in self.notes],
            "environment": copy.deepcopy(dict(self.environment)),
            "imbalance": self.imbalance,
            "ranks": [rank.to_dict() for rank in self.ranks],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BenchmarkResult:
        """Return the result of which `to_dict` made these values.

        Parameters
        ----------
        values : mapping
            As `to_dict` makes them; after a trip through JSON they still give an equal result.
            Keys that it doesn't know are ignored. Of those that it does, only ``name`` and
            ``cpu_times_s`` have to be there: what an older release didn't write is unknown.

        Raises
        ------
        ArgumentError
            If one of those two is missing, or a value is of the wrong kind; the message names
            the key.
        """
        fields = result_fields(values)
        return cls(**fields, ranks=tuple(map(cls.from_dict, values_of(values, "ranks"))))

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON: what is unknown is null, never NaN."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_dataframe(self) -> pd.DataFrame:
        """Return the samples as a table, one row each, in run order.

        Returns
        -------
        pandas.DataFrame
            Columns: ``sample`` (from 0), ``cpu_time_s``, ``gpu_<id>_time_s`` for each device and,
            if they are known, ``gpu_<id>_busy_time_s``.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("to_dataframe()", "pandas", "dataframe") from error
        gpus = zip(self.devices, self.gpu_times, strict=True)
        busy = zip(self.devices, self.busy_times, strict=False)
        return pd.DataFrame(
            {
                "sample": np.arange(self.cpu_times.size),
                "cpu_time_s": self.cpu_times,
                **{f"gpu_{device}_time_s": times for device, times in gpus},
                **{f"gpu_{device}_busy_time_s": times for device, times in busy},
            }
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BenchmarkResult):
            return NotImplemented
        mine, theirs = self._fields(), other._fields()
        return all(np.array_equal(mine.pop(key), theirs.pop(key)) for key in _ARRAYS) and (
            mine == theirs
        )

    def __hash__(self) -> int:
        return hash((self.name, self.method, self.devices, float(self.cpu_times[0])))

    def __reduce__(self) -> tuple[partial[BenchmarkResult], tuple[()]]:
        # Through __init__, since pickling by attributes would make the arrays writable again.
        return partial(type(self), **self._fields()), ()

    def _fields(self) -> dict[str, Any]:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**fields, "environment": dict(self.environment)}


_ARRAYS = ("cpu_times", "gpu_times", "busy_times")


def _frozen(times: FloatArray) -> FloatArray:
    # Bytes can't be made writable again.
    return np.frombuffer(times.tobytes()).reshape(times.shape)


def _device_ids(devices: tuple[int, ...]) -> tuple[int, ...]:
    ids = tuple(whole_number("devices", device, at_least=0) for device in devices)
    if len(set(ids)) < len(ids):
        raise ArgumentError(f"devices must not repeat an id, got {devices!r}")
    return ids


def _time_or_none(argument: str, seconds: float | None) -> float | None:
    return None if seconds is None else finite_number(argument, seconds, at_least=0)


def _json_copy(environment: Mapping[str, object]) -> Mapping[str, object]:
    try:
        values = json.loads(json.dumps(dict(environment), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"environment must hold plain JSON values: {error}") from error
    return MappingProxyType(values)
