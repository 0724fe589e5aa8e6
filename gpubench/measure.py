"""`benchmark`: checks arguments, warms up, takes samples, makes the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpubench import arguments
from gpubench.bench import Bench
from gpubench.integrations.mpi import Communicator, together
from gpubench.progress import progress_bar
from gpubench.result import BenchmarkResult
from gpubench.sampling import MIN_ADAPTIVE_SAMPLES, Goal, collect, collection_off
from gpubench.session import Budget

MANY_SAMPLES = 1000
"""From how many samples on gates are shared, so that a sample costs less wall time."""

ADAPTIVE_DURATION = 1.0
"""Seconds for the samples of an adaptive run whose duration the caller left open."""


def benchmark(
    func: Callable[..., object],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    n_repeat: int | None = None,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = math.inf,
    devices: int | Sequence[int] | None = None,
    method: str = "auto",
    setup: Callable[[], object] | None = None,
    cache: str = "warm",
    progress: bool | None = None,
    comm: Communicator | None = None,
) -> BenchmarkResult:
    """Measure what a call costs the host and each GPU.

    Accepts what ``cupyx.profiler.benchmark`` accepts. GPU time is taken on the stream on which
    the call works, whichever framework it is written in, while a gate holds the stream until the
    call is queued; so it is the time that the GPU worked, not the time that the host launched.

    Parameters
    ----------
    func : callable
        What to time. It should not wait for the GPU; the result's notes say if it does.
    args : tuple or list
        Positional arguments of each call.
    kwargs : mapping, optional
        Keyword arguments of each call.
    n_repeat : int, optional
        How many samples to take. Left out, at least 10 are taken, until the 95 % interval of the
        median is within 0.5 % of it or the time is up.
    name : str, optional
        What the result is called; by default the function's name.
    n_warmup : int, optional
        How many calls go ahead of the samples, untimed. The call is looked at during the last
        of them, which may take a few more; the result says how many were made. With 0 the first
        call is itself a sample, and GPU times are taken by plain events.
    max_duration : float, optional
        Seconds of wall time for the whole run, warm-up and waiting for the GPU included; at
        least one sample is taken. An adaptive run without it takes samples for at most 1 s.
    devices : int or sequence of int, optional
        Which GPUs to time; by default the current one.
    method : {"auto", "host", "events", "gated", "graph", "cupti"}, optional
        How to time: ``"gated"`` (which ``"auto"`` takes where there is a GPU) by events behind a
        gate; ``"graph"`` by replays of a CUDA graph of 20 calls; ``"cupti"`` by the GPU's own
        records of what it did for the call (extra ``activity``), which tells its kernels, too, and
        has no floor; ``"events"`` by events around each call on an idle stream, as CuPy does;
        ``"host"`` by the host's clock alone.
    setup : callable, optional
        Called before each call, untimed. If it returns a tuple, that becomes the call's args.
    cache : {"warm", "cold"}, optional
        Whether to flush the GPU's L2 cache before each call, untimed.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal, if the run takes over 2 s.
    comm : mpi4py.MPI.Intracomm, optional
        Measure on all ranks of this communicator at once; each of them makes this call. They wait
        for each other before each call of `func`, and take equally many samples. All get the same
        result: the slowest rank's times, the imbalance, and each rank's own result as `ranks`.

    Returns
    -------
    BenchmarkResult
        All samples in run order, their statistics, and notes on what makes them hard to trust.
        Ctrl-C ends a run early with the samples taken so far.

    Raises
    ------
    ArgumentError
        If an argument can't be used; it is a `ValueError` and a `TypeError`.
    UnsupportedError
        If a GPU is asked for, by `devices` or `method`, and there is none; if ``"cupti"`` is, and
        nothing can be recorded.
    GpubenchError
        With `comm`, if another rank failed.
    Exception
        Whatever `func` or `setup` raises.

    Examples
    --------
    >>> import gpubench
    >>> result = gpubench.benchmark(sorted, ([3, 1, 2],), n_repeat=100)
    >>> result.cpu_times.shape
    (100,)
    """
    with together(comm) as ranks:
        arguments.synchronous("func", func)
        args = arguments.positional(args)
        kwargs = arguments.keywords(kwargs)
        if n_repeat is not None:
            n_repeat = arguments.whole_number("n_repeat", n_repeat, at_least=1)
        n_warmup = arguments.whole_number("n_warmup", n_warmup, at_least=0)
        max_duration = arguments.real_number("max_duration", max_duration, at_least=0)
        name = arguments.text("name", name) if name is not None else arguments.callable_name(func)
        if setup is not None:
            arguments.synchronous("setup", setup)
        whole = Budget(max_duration)
        shows = progress if ranks.rank == 0 else False

        with Bench(devices, method, cache) as bench, progress_bar(shows, n_repeat, name) as advance:
            ranks.check_alike(
                n_repeat=n_repeat, max_duration=max_duration, **{"len(devices)": len(bench.devices)}
            )
            session = bench.session(func, args, kwargs, setup, ranks.meet)
            with ranks.in_step(session):
                session.warm_up(n_warmup, whole)
                if n_repeat is None and n_warmup:
                    session.settle(whole)
                many = n_repeat is not None and n_repeat >= MANY_SAMPLES
                session.choose(method, whole, many=many)
            if n_repeat is None and math.isinf(max_duration):
                budget = Budget(ADAPTIVE_DURATION)
                goal = Goal(None, budget, MIN_ADAPTIVE_SAMPLES, anywhere=ranks.anywhere)
            else:
                goal = Goal(n_repeat, whole, anywhere=ranks.anywhere)
            with bench.watched() as seen, collection_off():
                collected = collect(session, goal, advance)
        return ranks.joined(bench.result(name, session, collected, seen))
