"""Measurements and sweeps to look at, made of round figures."""

import numpy as np
from example_results import make_result

from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.outcome import SweepResult


def spread(us, n=7):
    """`n` times around a median, in microseconds; the interval of seven is their range."""
    return us * (1 + 0.01 * (np.arange(n) - n // 2))


def measured(config, region="f", us=10.0, n=7, **changes):
    """One region whose GPU time has this median."""
    fields = {name: changes.pop(name) for name in list(changes) if name in RESULT_FIELDS}
    result = make_result(cpu_us=spread(5.0, n), gpu_us=[spread(us, n)], **fields)
    return Measurement(config=config, region=region, result=result, **changes)


def on_host(config, region="f", us=10.0, n=7):
    """The same without a GPU."""
    result = make_result(cpu_us=spread(us, n), gpu_us=[], method="host")
    return Measurement(config=config, region=region, result=result)


def failed(config, error="ValueError: too large"):
    return Measurement(config=config, region="f", status="failed", error=error)


RESULT_FIELDS = ("notes", "environment", "kernels", "busy_times", "method")


def swept(*measurements, **changes):
    """A sweep of these measurements; its parameters are those of the first configuration."""
    parameters = tuple(measurements[0].config) if measurements else ()
    fields = {"name": "f", "parameters": parameters, "measurements": measurements}
    return SweepResult(**{**fields, **changes})


def precision(**changes):
    """fp32 and fp16 at two sizes: 80 and 20, 640 and 80 microseconds."""
    return swept(
        measured({"n": 512}, "fp32", 80.0),
        measured({"n": 512}, "fp16", 20.0),
        measured({"n": 1024}, "fp32", 640.0),
        measured({"n": 1024}, "fp16", 80.0),
        **{"name": "precision", **changes},
    )


def metric(row, name):
    """The metric of that name."""
    (found,) = (each for each in row.metrics if each.name == name)
    return found
