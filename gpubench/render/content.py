"""What there is to say of a result, as values; text, HTML and tables lay it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpubench.render.histogram import Histogram, histogram
from gpubench.render.units import TimeUnit, common_unit, format_time

if TYPE_CHECKING:
    from gpubench.result import BenchmarkResult
    from gpubench.stats import FloatArray, Statistics


@dataclass(frozen=True)
class Series:
    """The samples of the CPU or of one device.

    Attributes
    ----------
    label : str
        ``"CPU"``, or ``"GPU-"`` and the device's id.
    times : ndarray, shape (n,)
        Seconds, in the order in which the calls ran.
    statistics : Statistics
        Of `times`.
    """

    label: str
    times: FloatArray
    statistics: Statistics


@dataclass(frozen=True)
class Panel:
    """The fuller view of one result.

    Attributes
    ----------
    name, facts : str
        What was timed, and how.
    labels : tuple of str
        The columns: the CPU, then each device.
    rows : dict of str to list of str
        The name of each row, and its cells, one for each label, all in one unit.
    chart_label : str
        Whose times the chart shows: the first device's, or the CPU's if there is none.
    chart : Histogram
        Those times.
    axis : (str, str)
        What stands at the ends of the chart's axis; the right one may be empty.
    kernels : tuple of str
        The kernels that the calls ran, each in one line.
    notes : tuple of str
        The notes, each in one line.
    """

    name: str
    facts: str
    labels: tuple[str, ...]
    rows: dict[str, list[str]]
    chart_label: str
    chart: Histogram
    axis: tuple[str, str]
    kernels: tuple[str, ...]
    notes: tuple[str, ...]


def panel(result: BenchmarkResult) -> Panel:
    """Return the fuller view of `result`."""
    every = series(result)
    statistics = [one.statistics for one in every]
    unit = common_unit(*(one.median for one in statistics))
    charted = every[1] if result.devices else every[0]
    chart = histogram(charted.times)
    return Panel(
        name=visible(result.name),
        facts=facts(result),
        labels=tuple(one.label for one in every),
        rows={
            "median": [median_text(one, unit) for one in statistics],
            **_busy_row(result, unit),
            "range": [_range_text(one, unit) for one in statistics],
            "mean ± std": [_mean_text(one, unit) for one in statistics],
        },
        chart_label=charted.label,
        chart=chart,
        axis=chart.ends(unit),
        kernels=kernel_texts(result),
        notes=note_texts(result),
    )


def series(result: BenchmarkResult) -> list[Series]:
    """Return the samples of the CPU, then of each device."""
    gpus = zip(result.devices, result.gpu_times, result.gpu, strict=True)
    return [
        Series("CPU", result.cpu_times, result.cpu),
        *(Series(f"GPU-{device}", times, statistics) for device, times, statistics in gpus),
    ]


def longest(result: BenchmarkResult) -> Series:
    """Return the samples of the busiest device; of the CPU where none was timed."""
    cpu, *gpus = series(result)
    return max(gpus, key=lambda one: one.statistics.median, default=cpu)


def kernel_texts(result: BenchmarkResult) -> tuple[str, ...]:
    """Return the kernels that the calls ran, each in one line."""
    return tuple(
        f"{each.calls:.3g} times {format_time(each.median_time)}: {visible(each.name)}"
        for each in result.kernels
    )


def note_texts(result: BenchmarkResult) -> tuple[str, ...]:
    """Return the notes of `result`, each in one line."""
    return tuple(visible(str(note)) for note in result.notes)


def median_text(statistics: Statistics, unit: TimeUnit) -> str:
    """Return the median and, if known, its 95 % interval: ``6.05 us [6.02, 6.08]``."""
    median = unit.text(statistics.median)
    if statistics.ci95 is None:
        return median
    low, high = map(unit.number, statistics.ci95)
    return f"{median} [{low}, {high}]"


def visible(text: str) -> str:
    """Return `text` in one line, what can't be printed replaced by its escape sequence."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _busy_row(result: BenchmarkResult, unit: TimeUnit) -> dict[str, list[str]]:
    """Return the row of the times that the devices were busy, if they are known."""
    if not result.busy:
        return {}
    return {"busy": ["", *(median_text(one, unit) for one in result.busy)]}


def facts(result: BenchmarkResult) -> str:
    """Return how a result was measured, in one line."""
    ended = "" if result.stopped_by == "n_repeat" else f" ({result.stopped_by})"
    said = [f"n={result.cpu.n}{ended}", result.method]
    if result.imbalance is not None:
        said.append(f"slowest of {len(result.ranks)} ranks (imbalance {result.imbalance:.1%})")
    if result.cache == "cold":
        said.append("cold cache")
    if result.samples_per_gate > 1:
        said.append(f"{result.samples_per_gate} samples a gate")
    if result.floor is not None:
        said.append(f"floor {format_time(result.floor)}")
    if result.clock_step is not None:
        said.append(f"clock step {format_time(result.clock_step)}")
    return ", ".join(said)


def _range_text(statistics: Statistics, unit: TimeUnit) -> str:
    return f"{unit.number(statistics.min)} … {unit.text(statistics.max)}"


def _mean_text(statistics: Statistics, unit: TimeUnit) -> str:
    if statistics.std is None:
        return unit.text(statistics.mean)
    return f"{unit.number(statistics.mean)} ± {unit.text(statistics.std)}"
