"""Other tools that time GPU work, each by its own defaults, under one signature."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import cupy as cp
import numpy as np
from work import Work, cover, works

import gpubench
from gpubench.devices.records import ACTIVITY_KINDS

N_SAMPLES = 100
MANY_SAMPLES = 1000
"""So many that gpubench shares gates."""

MAX_DURATION = 1.0


@dataclass(frozen=True)
class Reading:
    """What a tool says of a work.

    Attributes
    ----------
    time, std : float or None
        Seconds: the median (or whatever the tool gives instead) and the standard deviation.
    wall_time : float or None
        Seconds that a sample cost, all included.
    notes : tuple of str
        What the tool itself says against the number.
    error : str
        Why it has none.
    """

    time: float | None = None
    std: float | None = None
    wall_time: float | None = None
    notes: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Tool:
    """Something that times a work.

    Attributes
    ----------
    name : str
        What it is called.
    read : callable
        Maps a `Work` to its `Reading`.
    cache : str
        The state of the L2 cache in which it times: ``"warm"``, ``"cold"``, or ``"any"``, which
        is the work's.
    is_busy : bool
        Whether it reports how long kernels ran, without the gaps between them.
    """

    name: str
    read: Callable[[Work], Reading]
    cache: str = "warm"
    is_busy: bool = False

    def cache_for(self, work):
        """Return the state of the cache in which it times a work; None if that isn't the work's."""
        if self.cache == "warm" and work.cache == "cold":
            return None
        return work.cache if self.cache == "any" else self.cache


def _summary(times, wall_time, notes=()):
    times = np.asarray(times)
    return Reading(
        float(np.median(times)), float(times.std()), wall_time / len(times), tuple(notes)
    )


def _gpubench(method, n_repeat=N_SAMPLES):
    def read(work):
        begin = time.perf_counter()
        result = gpubench.benchmark(
            work.func,
            work.args,
            n_repeat=n_repeat,
            method=method,
            cache=work.cache,
            max_duration=MAX_DURATION,
        )
        wall_time = time.perf_counter() - begin
        refused = next((note.message for note in result.notes if note.code == "no-graph"), None)
        if refused:
            return Reading(error=refused)
        times = result.busy_times if len(result.busy_times) else result.gpu_times
        return _summary(times[0], wall_time, (note.code for note in result.notes))

    return read


def _cupyx(work):
    from cupyx.profiler import benchmark

    begin = time.perf_counter()
    result = benchmark(work.func, work.args, n_repeat=N_SAMPLES, max_duration=MAX_DURATION)
    return _summary(result.gpu_times[0], time.perf_counter() - begin)


def _torch_timer(work):
    from torch.utils.benchmark import Timer

    timer = Timer("func(*args)", globals={"func": work.func, "args": work.args})
    begin = time.perf_counter()
    taken = timer.blocked_autorange(min_run_time=0.2)
    wall_time = time.perf_counter() - begin
    n_calls = taken.number_per_run * len(taken.times)
    notes = ("high-variation",) if taken.has_warnings else ()
    return Reading(taken.median, float(np.std(taken.times)), wall_time / n_calls, notes)


def _do_bench(name):
    def read(work):
        from triton import testing

        def call():
            with _on_torch_stream():
                work.func(*work.args)

        begin = time.perf_counter()
        times = getattr(testing, name)(call, return_mode="all")
        return _summary(np.atleast_1d(times) / 1e3, time.perf_counter() - begin)

    return read


def _on_torch_stream():
    import torch

    return cp.cuda.Stream.from_external(torch.cuda.current_stream())


class Nvbench:
    """NVIDIA's NVBench, in processes of its own, since it ends the process if a call blocks."""

    def __init__(self):
        self._readings = {}

    def cold(self, work):
        """By events around single calls, with the cache flushed."""
        return self._reading(work, "cold")

    def batch(self, work):
        """By many calls in a row."""
        return self._reading(work, "batch")

    def _reading(self, work, which):
        if work.name not in self._readings:
            group = [w.name for w in works() if w.can_queue] if work.can_queue else [work.name]
            self._readings |= _run_nvbench(group)
        return Reading(**self._readings[work.name][which])


def _run_nvbench(names):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nvbench.json"
        try:
            done = subprocess.run(
                [sys.executable, __file__, str(path), *names],
                capture_output=True,
                text=True,
                timeout=15 + 3 * len(names),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return dict.fromkeys(names, _without_reading("hangs"))
        if done.returncode or not path.exists():
            lines = (done.stderr + done.stdout).strip().splitlines()
            words = next((line for line in reversed(lines) if "rror" in line), "no result")
            return dict.fromkeys(names, _without_reading(words.strip()))
        return _from_nvbench(path)


def _without_reading(error):
    return {which: {"error": error} for which in ("cold", "batch")}


def _from_nvbench(path):
    from cuda.bench.results import BenchmarkResult

    return {
        state.point["work"]: _nvbench_readings(state)
        for benchmark in BenchmarkResult.from_json(path).values()
        for state in benchmark.states
    }


def _nvbench_readings(state):
    if state.is_skipped:
        return _without_reading(str(state.skip_reason))
    found = _without_reading("no result")
    wall_time = state.summaries.get("nv/cold/walltime")
    if state.samples:
        found["cold"] = {
            "time": float(np.median(state.samples)),
            "std": float(np.std(state.samples)),
            "wall_time": wall_time and wall_time.value / len(state.samples),
        }
    batch = state.summaries.get("nv/batch/time/gpu/mean")
    if batch is not None:
        found["batch"] = {"time": float(batch.value)}
    return found


def run_nvbench(path, *names):
    """Time works by NVBench: the child's end."""
    from cuda import bench

    by_name = {work.name: work for work in works()}

    def measured(state):
        work = by_name[state.get_string("work")]

        def call(launch):
            stream = launch.get_stream()
            with ExitStack() as stack:
                stack.enter_context(cp.cuda.Stream.from_external(stream))
                if "torch" in sys.modules:
                    import torch

                    external = torch.cuda.ExternalStream(stream.addressof())
                    stack.enter_context(torch.cuda.stream(external))
                work.func(*work.args)

        for _ in range(3):
            work.func(*work.args)
        cp.cuda.runtime.deviceSynchronize()
        state.exec(call)

    benchmark = bench.register(measured).add_string_axis("work", list(names))
    benchmark.set_timeout(0.5).set_min_samples(N_SAMPLES)
    bench.run_all_benchmarks(["accuracy", "--jsonbin", path])


def tools():
    """Return gpubench's methods and whichever peers are installed."""
    found = [
        Tool("gated", _gpubench("gated"), "any"),
        Tool("gated, bursts", _gpubench("gated", n_repeat=MANY_SAMPLES)),
        Tool("graph", _gpubench("graph")),
        Tool("cupti", _gpubench("cupti"), "any", is_busy=True),
        Tool("events", _gpubench("events")),
        Tool("cupyx.profiler", _cupyx),
    ]
    try:
        import torch  # noqa: F401
        import triton  # noqa: F401
    except ImportError:
        pass
    else:
        found += [
            Tool("torch Timer", _torch_timer),
            Tool("do_bench", _do_bench("do_bench"), "cold"),
            Tool("do_bench_cudagraph", _do_bench("do_bench_cudagraph")),
        ]
    try:
        import cuda.bench  # noqa: F401
    except ImportError:
        pass
    else:
        nvbench = Nvbench()
        found += [
            Tool("NVBench, cold", nvbench.cold, "cold"),
            Tool("NVBench, batch", nvbench.batch),
        ]
    return found


def truth(work, cache):
    """Return what a work takes by CUPTI's records of it, behind a kernel that covers its launch.

    Parameters
    ----------
    work : Work
        What is done.
    cache : str
        Whether the L2 cache is ``"warm"`` or ``"cold"``.

    Returns
    -------
    busy, span : float
        Seconds of its kernels, and from the start of the first to the end of the last.
    """
    flush = cp.empty(2 * cp.cuda.Device().attributes["L2CacheSize"], "u1")
    for _ in range(3):
        work.func(*work.args)
    with gpubench.record_activity(["kernel", "memcpy", "memset"]) as trace:
        for _ in range(20):
            if cache == "cold":
                flush.data.memset_async(1, flush.nbytes)
            cover(2e-4 if work.can_queue else 0)
            work.func(*work.args)
            cp.cuda.runtime.deviceSynchronize()
    busy, span = np.median(_after_covers(trace.recording), axis=0)
    return float(busy), float(span)


def _after_covers(recording):
    """Return busy and whole seconds of what was launched after each cover, without the flush."""
    records = np.sort(recording.activities, order="correlation_id")
    is_cover = np.array([recording.names[name] == "cover" for name in records["name"]])
    is_flush = np.append(is_cover[1:], False) & (records["kind"] == ACTIVITY_KINDS.index("memset"))
    times = []
    for mine in np.split(records[~is_flush], np.flatnonzero(is_cover[~is_flush]))[1:]:
        work = mine[1:]
        busy = (work["end"] - work["start"]).sum()
        span = work["end"].max() - work["start"].min() if len(work) else 0
        times.append((busy / 1e9, span / 1e9))
    return times


if __name__ == "__main__":
    run_nvbench(*sys.argv[1:])
