"""Measurements as multiples of a baseline: another region, or another configuration."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from gpubench.devices.place import places_of
from gpubench.errors import ArgumentError
from gpubench.sweeps.cells import cell
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.metrics import Metric

Against = str | Mapping[str, object] | None
"""A region's name; or parameters that the baseline's configuration has other values of."""


def checked_against(against: Against, parameters: Sequence[str]) -> Against:
    """Return what to normalize against.

    Raises
    ------
    ArgumentError
        If it is neither a string nor a mapping of parameters to values.
    """
    if against is None or isinstance(against, str):
        return against
    if not isinstance(against, Mapping) or not against:
        raise ArgumentError(
            "normalize_against must be a region's name, or a mapping of parameters to values such "
            f"as {{'dtype': 'float32'}}; got {against!r}"
        )
    unknown = [name for name in against if name not in parameters]
    if unknown:
        raise ArgumentError(
            f"normalize_against names {unknown[0]!r}, which is no parameter; there are "
            f"{', '.join(parameters) or 'none'}"
        )
    return dict(against)


def baseline_name(against: str | Mapping[str, object]) -> str:
    """Return how a baseline is called: ``"fp32"`` or ``"dtype=float32"``."""
    if isinstance(against, str):
        return against
    return ", ".join(f"{name}={cell(value)}" for name, value in against.items())


def normalized(
    measurements: Sequence[Measurement],
    metrics: Sequence[Sequence[Metric]],
    against: str | Mapping[str, object],
) -> list[tuple[Metric, ...]]:
    """Divide every statistic of each metric by the median of the baseline's.

    A region's baseline is the region of that name in the same configuration; or the same region
    in the configuration that differs in nothing but the parameters named.

    Parameters
    ----------
    measurements : sequence of Measurement
        All of a sweep.
    metrics : sequence of sequence of Metric
        What each of them says.
    against : str or mapping
        The baseline.

    Returns
    -------
    list of tuple of Metric
        Multiples without unit, which name their baseline. A metric stays as it is, in its unit,
        if it has no baseline, or one of another kind of device, of another unit, or whose median
        isn't above zero.
    """
    found: dict[Hashable, Sequence[Metric]] = {}
    for measurement, its_metrics in zip(measurements, metrics, strict=True):
        if its_metrics:
            key = _key(measurement.config, measurement.region)
            found.setdefault((key, device_kind(measurement)), its_metrics)
    name = baseline_name(against)
    result = []
    for measurement, its_metrics in zip(measurements, metrics, strict=True):
        if isinstance(against, str):
            key = _key(measurement.config, against)
        else:
            key = _key({**measurement.config, **against}, measurement.region)
        baseline = found.get((key, device_kind(measurement)), ())
        result.append(tuple(_divided(metric, baseline, name) for metric in its_metrics))
    return result


def device_kind(measurement: Measurement) -> Hashable:
    """Return what is the same if times differ by no more than two devices of one kind do."""
    if measurement.result is None:
        return ()
    environment = measurement.result.environment
    names = tuple(place.gpu_name for place in places_of(environment))
    return str(environment.get("cpu")), names


def ratio_interval(
    value: float,
    interval: tuple[float, float] | None,
    baseline: float,
    baseline_interval: tuple[float, float] | None,
) -> tuple[float, float] | None:
    """Return the interval of a ratio of two independent values.

    The logarithm of a ratio is a difference, and the distances of its limits are the roots of
    the summed squares of both values' distances, each towards the side that moves the ratio that
    way: with a in [l, u] over A in [L, U], the lower limit is ``a / A / exp(hypot(log(a / l),
    log(U / A)))``, the upper one ``a / A * exp(hypot(log(u / a), log(A / L)))`` (the "method of
    variance estimates recovery": Zou and Donner, Statistics in Medicine 27, 2008, pages
    1693-1702).

    Parameters
    ----------
    value, baseline : float
        Above zero.
    interval, baseline_interval : (float, float) or None
        The interval of each; None if unknown.

    Returns
    -------
    (float, float) or None
        None if one is unknown or reaches zero, or the ratio's can't be written as floats.
    """
    if interval is None or baseline_interval is None:
        return None
    (low, high), (bottom, top) = interval, baseline_interval
    if min(low, bottom, value, baseline) <= 0:
        return None
    center = math.log(value) - math.log(baseline)
    down = math.hypot(math.log(value / low), math.log(top / baseline))
    up = math.hypot(math.log(high / value), math.log(baseline / bottom))
    if max(abs(center - down), abs(center + up)) > _FLOAT_RANGE:
        return None
    return math.exp(center - down), math.exp(center + up)


_FLOAT_RANGE = 700.0
"""Logarithms up to this are those of floats."""


def _key(config: Mapping[str, object], region: str) -> Hashable:
    return region, frozenset((name, _hashable(value)) for name, value in config.items())


def _hashable(value: object) -> Hashable:
    """Return the value itself, or what is the same for the same object only."""
    try:
        hash(value)
    except TypeError:
        return type(value), id(value)
    return value


def _divided(metric: Metric, baseline: Sequence[Metric], name: str) -> Metric:
    same = [each for each in baseline if each.name == metric.name and each.unit == metric.unit]
    # A metric of one device goes against that of the same device, if there is one.
    reference = min(same, key=lambda each: each.device != metric.device, default=None)
    if not metric.statistics or not reference or not reference.statistics:
        return metric
    divisor = reference.statistics.median
    if divisor <= 0:
        return metric
    with np.errstate(over="ignore"):
        samples = metric.samples / divisor
    divided = Metric.of(metric.name, "", samples, metric.device, metric.problem)
    if divided.statistics is None:
        return metric
    if metric is reference:
        interval = metric.statistics.ci95 and (1.0, 1.0)
    else:
        interval = ratio_interval(
            metric.statistics.median, metric.statistics.ci95, divisor, reference.statistics.ci95
        )
    statistics = dataclasses.replace(divided.statistics, ci95=interval)
    return dataclasses.replace(divided, statistics=statistics, baseline=name)
