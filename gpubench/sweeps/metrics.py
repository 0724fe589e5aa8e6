"""What a measurement says: its times, and what is computed from each of their samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import numpy as np

from gpubench.arguments import finite_number, shown
from gpubench.errors import ArgumentError
from gpubench.result import BenchmarkResult
from gpubench.stats import FloatArray, Statistics, summarize
from gpubench.sweeps.configurations import signature_of

GPU_TIME, BUSY_TIME, CPU_TIME = "gpu_time", "busy_time", "cpu_time"
FLOP_RATE, BANDWIDTH, PEAK_SHARE = "flop_rate", "bandwidth", "peak_share"
RESERVED = (GPU_TIME, BUSY_TIME, CPU_TIME, FLOP_RATE, BANDWIDTH, PEAK_SHARE)
"""Names that a derived metric can't have."""

SECONDS = "s"
"""The unit of times."""

Derive = Mapping[str, Callable[..., object]]
"""Functions of seconds and the configuration that return a number or (number, unit), by name."""

Amount = float | Callable[..., float]
"""A number, or a function of the configuration that returns one."""

Declared = Amount | Mapping[str, Amount] | None
"""An amount for all regions, or one for each by its name."""


@dataclass(frozen=True, eq=False)
class Metric:
    """One figure of a measurement.

    Attributes
    ----------
    name : str
        For example ``"gpu_time"``.
    unit : str
        For example ``"s"``; empty if it has none.
    samples : ndarray, shape (n,)
        One value for each sample, in the order in which they were taken; NaN where missing.
    statistics : Statistics or None
        Of those that aren't missing; None if all are.
    device : int or None
        Id of the device whose time it is, or is computed from; None if that is the host's.
    baseline : str
        Of what it is a multiple; empty if it is none.
    problem : str
        Why values are missing; empty if none is.
    """

    name: str
    unit: str
    samples: FloatArray
    statistics: Statistics | None
    device: int | None = None
    baseline: str = ""
    problem: str = ""

    @classmethod
    def of(
        cls, name: str, unit: str, values: FloatArray, device: int | None = None, problem: str = ""
    ) -> Metric:
        """Return a metric with the statistics of its samples; what they can't hold is missing."""
        with np.errstate(invalid="ignore"):
            samples = np.where(np.abs(values) <= _LARGEST, values, np.nan)
        samples.setflags(write=False)
        known = samples[~np.isnan(samples)]
        statistics = summarize(known) if known.size else None
        return cls(name, unit, samples, statistics, device, problem=problem)


def base_metrics(result: BenchmarkResult) -> tuple[Metric, ...]:
    """Return GPU and busy time of each device, and the CPU time, in seconds."""
    gpu = zip(result.gpu_times, result.gpu, result.devices, strict=True)
    busy = zip(result.busy_times, result.busy, result.devices, strict=False)
    return (
        *(Metric(GPU_TIME, SECONDS, *each) for each in gpu),
        *(Metric(BUSY_TIME, SECONDS, *each) for each in busy),
        Metric(CPU_TIME, SECONDS, result.cpu_times, result.cpu),
    )


def decisive(metrics: Sequence[Metric]) -> Metric:
    """Return the time that others are computed from: the busiest GPU's, the CPU's without one."""
    on_gpu = [metric for metric in metrics if metric.name == GPU_TIME]
    if not on_gpu:
        return next(metric for metric in metrics if metric.name == CPU_TIME)
    return max(on_gpu, key=lambda each: each.statistics.median if each.statistics else 0.0)


def derived(
    name: str, function: Callable[..., object], time: Metric, config: Mapping[str, object]
) -> Metric:
    """Apply a function to every sample of a time.

    Parameters
    ----------
    name : str
        Of the metric.
    function : callable
        Gets seconds and the configuration, see `with_config`, and returns a number or
        (number, unit).
    time : Metric
        In seconds. What takes no time has no value.
    config : mapping
        The configuration that was measured.

    Returns
    -------
    Metric
        Missing where the function raised or returned something else; `problem` says the first
        reason.
    """
    values = np.full(time.samples.shape, np.nan)
    call = with_config(function, config, n_leading=1)
    units: list[str] = []
    problems: list[str] = []
    for index in np.flatnonzero(time.samples > 0):
        try:
            value, unit = _value_and_unit(name, call(float(time.samples[index])))
        except Exception as error:  # noqa: BLE001  # a user's function may raise anything
            problems.append(reason(error))
            continue
        units.append(unit)
        if unit == units[0]:
            values[index] = value
        else:
            problems.append(f"one sample has the unit {units[0]!r}, another {unit!r}")
    if not np.all(time.samples > 0):
        problems.append(_NO_TIME)
    return Metric.of(name, "".join(units[:1]), values, time.device, "".join(problems[:1]))


def rate(name: str, declared: Callable[[], float | None], time: Metric) -> Metric | None:
    """Divide a declared amount by every sample of a time.

    Parameters
    ----------
    name : str
        `FLOP_RATE` or `BANDWIDTH`.
    declared : callable
        Returns the amount of operations or bytes, None if there is none.
    time : Metric
        In seconds. What takes no time has no rate.

    Returns
    -------
    Metric or None
        In TFLOP/s or GB/s; None if nothing was declared; missing values if `declared` raised.
    """
    unit, scale = RATE_UNITS[name]
    values = np.full(time.samples.shape, np.nan)
    try:
        amount = declared()
    except Exception as error:  # noqa: BLE001  # a user's function may raise anything
        return Metric.of(name, unit, values, time.device, reason(error))
    if amount is None:
        return None
    took_time = time.samples > 0
    with np.errstate(over="ignore"):
        np.divide(amount / scale, time.samples, out=values, where=took_time)
    return Metric.of(name, unit, values, time.device, "" if took_time.all() else _NO_TIME)


RATE_UNITS = {FLOP_RATE: ("TFLOP/s", 1e12), BANDWIDTH: ("GB/s", 1e9)}
"""Units of rates, and what they are in operations or bytes per second."""

_NO_TIME = "no time passed"


def amount(
    argument: str, declared: Declared, region: str, config: Mapping[str, object]
) -> float | None:
    """Return what was declared of a region in a configuration, None if nothing was.

    Raises
    ------
    ArgumentError
        If it isn't a number from zero on.
    """
    its_own = declared.get(region) if isinstance(declared, Mapping) else declared
    if its_own is None:
        return None
    value = with_config(its_own, config, n_leading=0)() if callable(its_own) else its_own
    return finite_number(argument, value, at_least=0)


def with_config(
    function: Callable[..., Any], config: Mapping[str, object], n_leading: int
) -> Callable[..., Any]:
    """Give a user's function the values of a configuration behind its first arguments.

    Parameters
    ----------
    function : callable
        Parameters that are named like the configuration's get its values, and ``**kwargs`` gets
        all of them. If one that has no default is named otherwise, or there is ``*args``, it
        gets all values by position.
    config : mapping
        The configuration.
    n_leading : int
        How many arguments come first.

    Returns
    -------
    callable
        Takes those.
    """
    every = list(signature_of(function).parameters.values())
    taken = [each for each in every if each.kind in _BY_PLACE][:n_leading]
    parameters = [each for each in every if each not in taken]
    wanted = [
        each
        for each in parameters
        if each.kind is not Parameter.VAR_KEYWORD
        and (each.name in config or each.default is Parameter.empty)
    ]
    if any(each.name not in config or each.kind not in _BY_NAME for each in wanted):
        return lambda *leading: function(*leading, *config.values())
    takes_all = len(parameters) > 0 and parameters[-1].kind is Parameter.VAR_KEYWORD
    named = config if takes_all else {each.name: config[each.name] for each in wanted}
    return lambda *leading: function(*leading, **named)


_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def checked_derive(derive: Derive) -> dict[str, Callable[..., object]]:
    """Return what is to be derived, as a dict.

    Raises
    ------
    ArgumentError
        If it isn't a mapping of names to callables, or a name is one of `RESERVED`.
    """
    if not isinstance(derive, Mapping):
        raise ArgumentError(
            f"derive must be a mapping of names to functions, such as "
            f'{{"tflops": lambda t, n: 2 * n**3 / t / 1e12}}; got {shown(derive)}'
        )
    for name, function in derive.items():
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"derive must have names as keys, got {name!r}")
        if name in RESERVED:
            raise ArgumentError(
                f"derive must not redefine {name!r}; names of gpubench's own metrics are "
                f"{', '.join(RESERVED)}"
            )
        if not callable(function):
            raise ArgumentError(f"derive[{name!r}] must be a function, got {shown(function)}")
    return dict(derive)


def checked_declared(argument: str, declared: Declared) -> Declared:
    """Return what was declared.

    Raises
    ------
    ArgumentError
        If it is none of the forms, or a number below zero.
    """
    if declared is None or callable(declared):
        return declared
    if not isinstance(declared, Mapping):
        return finite_number(argument, declared, at_least=0)
    for region, each in declared.items():
        if not isinstance(region, str):
            raise ArgumentError(f"{argument} must have names of regions as keys, got {region!r}")
        if not callable(each):
            finite_number(f"{argument}[{region!r}]", each, at_least=0)
    return dict(declared)


def reason(error: Exception) -> str:
    """Return what was raised, in one line."""
    if isinstance(error, ArgumentError):
        return str(error)
    return f"{type(error).__name__}: {error}".partition("\n")[0].removesuffix(": ")


_LARGEST = 1e150
"""Squares of more overflow in a variance."""


def _value_and_unit(name: str, returned: object) -> tuple[float, str]:
    value, unit = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, "")
    if not isinstance(unit, str):
        raise ArgumentError(f"{name} must return a number or (number, unit), got {shown(returned)}")
    number = finite_number(f"the value of {name}", value)  # type: ignore[arg-type]
    if abs(number) > _LARGEST:
        raise ArgumentError(f"the value of {name} must be below {_LARGEST:g}, got {number:g}")
    return number, unit
