"""The rows of a sweep: each measurement and what follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gpubench.devices.place import places_of
from gpubench.notes import Note
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.metrics import (
    BANDWIDTH,
    FLOP_RATE,
    PEAK_SHARE,
    Metric,
    amount,
    base_metrics,
    decisive,
    derived,
    rate,
)
from gpubench.sweeps.normalization import baseline_name, device_kind, normalized
from gpubench.sweeps.roofline import ABOVE, Roofline, peaks_of, roofline

if TYPE_CHECKING:
    from gpubench.sweeps.outcome import SweepResult


_N_LISTED = 4


@dataclass(frozen=True, eq=False)
class Row:
    """A measurement and what follows from it.

    Attributes
    ----------
    measurement : Measurement
        What was measured.
    metrics : tuple of Metric
        GPU and busy time of each device, CPU time, what was derived and declared, as multiples of
        a baseline where there is one, and the share of the peak. Empty if there is no sample.
    roofline : Roofline or None
        The ceiling that it comes nearest to; None if nothing was declared or no peak is known.
    """

    measurement: Measurement
    metrics: tuple[Metric, ...]
    roofline: Roofline | None

    @property
    def time(self) -> Metric | None:
        """The busiest GPU's time, the CPU's if none was timed; None if there is no sample."""
        return decisive(self.metrics) if self.metrics else None


def rows_of(result: SweepResult) -> tuple[Row, ...]:
    """Return a row for each measurement, in their order."""
    metrics = [_metrics(result, measurement) for measurement in result.measurements]
    rooflines = [
        _roofline(result, measurement, each)
        for measurement, each in zip(result.measurements, metrics, strict=True)
    ]
    if result.normalize_against is not None:
        metrics = normalized(result.measurements, metrics, result.normalize_against)
    return tuple(
        # The share of a peak is a multiple of something already.
        Row(measurement, (*its_metrics, *((roof.share,) if roof else ())), roof)
        for measurement, its_metrics, roof in zip(
            result.measurements, metrics, rooflines, strict=True
        )
    )


def _metrics(result: SweepResult, measurement: Measurement) -> tuple[Metric, ...]:
    if measurement.result is None:
        return ()
    config, region = measurement.config, measurement.region
    base = base_metrics(measurement.result)
    time = decisive(base)
    rates = (
        rate(name, partial(amount, argument, declared, region, config), time)
        for name, argument, declared in (
            (FLOP_RATE, "flops", result.flops),
            (BANDWIDTH, "bytes", result.bytes),
        )
    )
    return (
        *base,
        *(derived(name, function, time, config) for name, function in result.derive.items()),
        *(each for each in rates if each),
    )


def _roofline(
    result: SweepResult, measurement: Measurement, metrics: Sequence[Metric]
) -> Roofline | None:
    rates = {each.name: each for each in metrics}
    peaks = peaks_of(measurement.region, result.peaks)
    return roofline(rates.get(FLOP_RATE), rates.get(BANDWIDTH), peaks)


def remarks(result: SweepResult) -> tuple[Note, ...]:
    """Return what a reader should know of the metrics of a sweep: each kind once."""
    candidates = (
        _several_devices(result),
        *_missing(result.rows),
        _no_baseline(result),
        _no_peak(result),
        _above_peak(result),
    )
    return tuple(note for note in candidates if note)


def _several_devices(result: SweepResult) -> Note | None:
    """Configurations were measured on different devices."""
    places = Counter(
        " and ".join(map(str, places_of(each.result.environment)))
        for each in result.measurements
        if each.result is not None
    )
    if len(places) < 2:
        return None
    listed = [f"{n} on {place}" for place, n in places.most_common(_N_LISTED)]
    listed += [f"the rest on {len(places) - _N_LISTED} others"] * (len(places) > _N_LISTED)
    multiples = result.normalize_against is not None
    return Note(
        "several-devices",
        f"Measurements were taken on different devices: {'; '.join(listed)}.",
        "Don't take a small difference between them for the configurations' doing"
        f"{', nor a multiple of a baseline' * multiples}; the columns host and device_uuid tell "
        "them apart.",
    )


def _missing(rows: Sequence[Row]) -> list[Note]:
    """Metrics that couldn't be computed everywhere, each with its first reason."""
    problems: dict[str, list[str]] = {}
    for row in rows:
        for metric in row.metrics:
            if metric.problem and metric.name != PEAK_SHARE:
                problems.setdefault(metric.name, []).append(metric.problem)
    n_rows = sum(bool(row.metrics) for row in rows)
    return [
        Note(
            "metric-missing",
            f"{name} lacks values in {len(reasons)} of {n_rows} measurements: {reasons[0]}.",
        )
        for name, reasons in problems.items()
    ]


def _no_baseline(result: SweepResult) -> Note | None:
    """Measurements that there was nothing to normalize against for."""
    if result.normalize_against is None:
        return None
    measured = [row for row in result.rows if row.metrics]
    without = [row for row in measured if not any(each.baseline for each in row.metrics)]
    if not without:
        return None
    name = baseline_name(result.normalize_against)
    regions = ", ".join(dict.fromkeys(each.region for each in result.measurements))
    advice = f"Regions are {regions}." if len(without) == len(measured) else ""
    if len({device_kind(row.measurement) for row in measured}) > 1:
        advice = f"One that another kind of device was measured on doesn't count. {advice}".rstrip()
    return Note(
        "no-baseline",
        f"There is no baseline {name} for {len(without)} of {len(measured)} measurements, which "
        "are shown as they were measured.",
        advice,
    )


def _no_peak(result: SweepResult) -> Note | None:
    """Operations or bytes were declared, and the device's peak isn't known."""
    sources = []
    for row in result.rows:
        peaks = peaks_of(row.measurement.region, result.peaks)
        known = {FLOP_RATE: peaks.flops_per_second, BANDWIDTH: peaks.bytes_per_second}
        if any(metric.name in known and not known[metric.name] for metric in row.metrics):
            sources.append(peaks.source)
    if not sources:
        return None
    return Note(
        "no-peak",
        f"The share of the device's peak isn't known for {len(sources)} of {len(result.rows)} "
        f"measurements: {sources[0]}.",
        "Give peaks=Peaks(flops_per_second, bytes_per_second).",
    )


def _above_peak(result: SweepResult) -> Note | None:
    """Measurements that did more than the device can."""
    above = [row for row in result.rows if row.roofline and row.roofline.percent > ABOVE]
    if not above:
        return None
    source = peaks_of(above[0].measurement.region, result.peaks).source
    return Note(
        "above-peak",
        f"{len(above)} of {len(result.rows)} measurements did more than the peak ({source}).",
        "Give peaks=Peaks(...) of the units that did the work, such as tensor cores, and count "
        "only bytes that the memory has to move.",
    )
