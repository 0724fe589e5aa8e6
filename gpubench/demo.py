"""What `gpubench demo` shows: one small computation, timed in every way that works here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gpubench.devices import current_platform
from gpubench.devices.host import HostPlatform
from gpubench.devices.simulated import SimulatedGpu
from gpubench.measure import benchmark
from gpubench.render.table import table
from gpubench.result import BenchmarkResult

_SHAPE = (256, 1024)
_KERNEL_TIMES = (1.6e-6, 2.2e-6, 1.2e-6)
"""Seconds of the three kernels of the computation on an H200, rounded."""

_METHODS = {
    "gated": "GPU time behind a gate, which holds the stream until the call is queued",
    "graph": "GPU time of a call among 20 in a CUDA graph, launched at once",
    "events": "GPU time on an idle stream, launches included, as cupyx.profiler takes it",
    "host": "the host's time until the call returns; the GPU may still work",
}
_N_REPEAT = 500
"""Enough for a histogram that shows something, and few enough for one sample a gate."""


def row_norms(array_module: Any, a: Any) -> Any:
    """Euclidean norm of each row, by three elementary operations."""
    return array_module.sqrt(array_module.sum(a**2, axis=-1))


Measure = Callable[[], list[BenchmarkResult]]
"""Times the computation, by the best method first."""


def demo() -> Iterator[str]:
    """Time the computation by every method and yield what is worth printing.

    Yields
    ------
    str
        Paragraphs: what is timed, and for each of `parts` its heading, a table of all methods and
        the panel of the best one.
    """
    yield f"sqrt(sum(a**2, axis=-1)) on a {_SHAPE[0]} x {_SHAPE[1]} array of float32"
    for heading, measure in parts():
        yield heading
        yield from _show(measure())


def parts() -> Iterator[tuple[str, Measure]]:
    """Yield where the computation can be timed on this machine, and a function that does."""
    platform = current_platform()
    if isinstance(platform, HostPlatform):
        yield f"No GPU found: {platform.reason}. On the host, with NumPy:", _on_the_host
        yield (
            "On a SIMULATED GPU: its kernels take the time that they take on an H200; nothing is "
            "computed.",
            _on_a_simulated_gpu,
        )
        return
    name = platform.device(platform.current_device()).properties.name
    yield f"On {name}, with CuPy:", _on_a_gpu


def _on_the_host() -> list[BenchmarkResult]:
    a = np.random.default_rng(0).random(_SHAPE, dtype=np.float32)
    return [benchmark(row_norms, (np, a), n_repeat=_N_REPEAT, name="NumPy")]


def _on_a_simulated_gpu() -> list[BenchmarkResult]:
    with SimulatedGpu() as gpu:
        return _by_every_method(partial(_simulated_row_norms, gpu), "simulated")


def _on_a_gpu() -> list[BenchmarkResult]:
    import cupy

    a = cupy.random.default_rng(0).random(_SHAPE, dtype=np.float32)
    return _by_every_method(partial(row_norms, cupy, a), "CuPy")


def _simulated_row_norms(gpu: SimulatedGpu) -> None:
    for seconds in _KERNEL_TIMES:
        gpu.launch(seconds)


def _by_every_method(call: Any, name: str) -> list[BenchmarkResult]:
    return [benchmark(call, n_repeat=_N_REPEAT, name=name, method=each) for each in _METHODS]


def _show(results: list[BenchmarkResult]) -> Iterator[str]:
    yield table(results)
    if len(results) > 1:
        yield "\n".join(f"  {method:<8}{meaning}" for method, meaning in _METHODS.items())
    yield results[0].summary()
