"""`sweep`: a decorator that has a function measured in many configurations."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpubench import arguments
from gpubench.bench import CACHES
from gpubench.errors import ArgumentError
from gpubench.sweeps.collectors import Collector, chosen_collectors
from gpubench.sweeps.configurations import signature_of
from gpubench.sweeps.counters import metric_names
from gpubench.sweeps.counters.collect import TIMEOUT, report_path
from gpubench.sweeps.counters.metrics import UserReduction, reductions
from gpubench.sweeps.execution import Options, Run
from gpubench.sweeps.metrics import Declared, Derive
from gpubench.sweeps.normalization import Against
from gpubench.sweeps.outcome import SweepResult
from gpubench.sweeps.roofline import GivenPeaks
from gpubench.sweeps.runner import ORDERS
from gpubench.sweeps.subject import Goal
from gpubench.sweeps.thermal import Mode, ThermalPolicy
from gpubench.timers import METHODS

if TYPE_CHECKING:
    from distributed import Client


class sweep:  # noqa: N801  # a decorator
    """Have a function, or regions of it, measured in many configurations.

    The decorated function, called, returns a `SweepResult`. ``sweep.run(function, configs, ...)``
    does the same without decorating. Regions are marked by `annotate`; a function without any is
    measured as a whole, as `benchmark` does.

    Parameters
    ----------
    configs : iterable, optional
        What to call the function with, one element for each configuration: a tuple holds
        positional arguments, a mapping keyword arguments, anything else is the only argument;
        `product` makes all combinations. May be given at the call instead.
    n_repeat : int, optional
        How many samples to take of each configuration, one for each run of the function. Left
        out, at least 10 are taken, until the 95 % interval of every region's median is within
        0.5 % of it or the time is up.
    n_warmup : int
        How many runs go ahead; at least one does, and looking at the regions takes some more.
    max_duration : float
        Seconds for each configuration, with its warm-up; at least one sample is taken. An adaptive
        sweep without it takes samples for at most 1 s each.
    devices, method, cache, progress
        As in `benchmark`. ``"graph"`` is for functions without regions.
    order : {"given", "random"}
        Whether configurations are measured one after the other, or all are prepared and then
        sampled by turns in random order, so that drift doesn't look like an effect of size.
    seed : int
        Of the random order.
    derive : mapping of str to callable, optional
        Metrics to compute from each sample's seconds and the configuration, for example
        ``{"rate": lambda t, n: (2 * n**3 / t / 1e12, "TFLOP/s")}``; see `SweepResult`.
    flops, bytes : float, callable or mapping, optional
        Operations and bytes of a run, see `SweepResult`; they give TFLOP/s and GB/s, and the share
        of the device's peak.
    peaks : Peaks or mapping of str to Peaks, optional
        What the device can do, in all regions or in each by its name; by default what it says of
        itself.
    normalize_against : str or mapping, optional
        The region or the configuration that is the baseline, see `SweepResult`.
    collect : str, Collector or iterable of them
        Functions, made by `collect`, and names of ready ones, whose values become columns.
    thermal : {"off", "wait"} or ThermalPolicy
        Whether to wait, before a sample, while the GPU is too hot.
    discard_throttled : bool
        Whether samples that the GPU was slowed down in are taken anew; at most as many as are
        kept, and ten.
    client : distributed.Client, optional
        Connected with a Dask cluster, on whose workers each configuration is measured as a task of
        its own, never two at once on a GPU. What a worker that dies was at is measured elsewhere.
        The function has to be one that cloudpickle can send.
    checkpoint : str or path-like, optional
        A file that each configuration is written to when it has ended, and from which a later
        run of the same sweep goes on.
    counters : str or iterable of str, optional
        Hardware counters, or sets of them (``"memory"``, ``"compute"``, ``"roofline"``), to be read
        by NVIDIA Nsight Compute in a second pass, in a process of its own.
    ncu : str or path-like
        Where Nsight Compute's ``ncu`` is, or its name on PATH.
    keep_report : str or path-like, optional
        Where to keep Nsight Compute's report.
    reduce : callable or mapping, optional
        Makes one value of a counter of a region's several kernels, from an array, for all counters
        or for those named; by default sums, maxima and means as the counters' names demand.
    ncu_timeout : float
        Seconds after which Nsight Compute's pass is ended.
    name : str, optional
        What the sweep is called; by default the function's name.

    Raises
    ------
    ArgumentError
        If an argument can't be used.

    Examples
    --------
    >>> import gpubench
    >>> with gpubench.simulated_gpu() as gpu:
    ...     @gpubench.sweep([10e-6, 20e-6], n_repeat=5)
    ...     def kernels(duration):
    ...         gpu.launch(duration)
    ...     result = kernels()
    >>> [measurement.config for measurement in result.measurements]
    [{'duration': 1e-05}, {'duration': 2e-05}]
    """

    def __init__(
        self,
        configs: Iterable[object] | None = None,
        *,
        n_repeat: int | None = None,
        n_warmup: int = 3,
        max_duration: float = math.inf,
        devices: int | Sequence[int] | None = None,
        method: str = "auto",
        cache: str = "warm",
        order: str = "given",
        seed: int = 0,
        derive: Derive | None = None,
        flops: Declared = None,
        bytes: Declared = None,  # noqa: A002
        peaks: GivenPeaks = None,
        normalize_against: Against = None,
        collect: str | Collector | Iterable[str | Collector] = (),
        thermal: Mode | ThermalPolicy = "off",
        discard_throttled: bool = False,
        client: Client | None = None,
        checkpoint: str | PathLike[str] | None = None,
        counters: str | Iterable[str] | None = None,
        ncu: str | PathLike[str] = "ncu",
        keep_report: str | PathLike[str] | None = None,
        reduce: UserReduction | Mapping[str, UserReduction] | None = None,
        ncu_timeout: float = TIMEOUT,
        progress: bool | None = None,
        name: str | None = None,
    ) -> None:
        arguments.one_of("method", method, METHODS)
        arguments.one_of("cache", cache, CACHES)
        if checkpoint is not None and not isinstance(checkpoint, (str, PathLike)):
            raise ArgumentError(f"checkpoint must be a path, got {checkpoint!r}")
        if not isinstance(ncu, (str, PathLike)):
            raise ArgumentError(f"ncu must be a path or a name, got {ncu!r}")
        if callable(configs):
            raise ArgumentError(
                f"configs must be configurations, got the function {configs!r}: write @sweep()"
            )
        if n_repeat is not None:
            n_repeat = arguments.whole_number("n_repeat", n_repeat, at_least=1)
        if counters is not None:  # before anything runs
            reductions(metric_names(counters), reduce)
            if keep_report is not None:
                report_path(keep_report)
        if client is not None:
            _check_client(client, order, devices, counters)
        if not isinstance(discard_throttled, bool):
            raise ArgumentError(f"discard_throttled must be a bool, got {discard_throttled!r}")
        self._options = Options(
            configs=configs,
            goal=Goal(
                n_repeat,
                arguments.whole_number("n_warmup", n_warmup, at_least=0),
                arguments.real_number("max_duration", max_duration, at_least=0),
            ),
            bench={"devices": devices, "method": method, "cache": cache},
            order=arguments.one_of("order", order, ORDERS),
            seed=arguments.whole_number("seed", seed, at_least=0),
            view={
                "derive": derive or {},
                "flops": flops,
                "bytes": bytes,
                "peaks": peaks,
                "normalize_against": normalize_against,
            },
            collectors=chosen_collectors(collect),
            thermal=thermal if isinstance(thermal, ThermalPolicy) else ThermalPolicy(thermal),
            discard_throttled=discard_throttled,
            checkpoint=checkpoint,
            counters=None if counters is None else metric_names(counters),
            counting={
                "ncu": ncu,
                "keep_report": keep_report,
                "reduce": reduce,
                "timeout": ncu_timeout,
            },
            client=client,
            progress=progress,
            name=None if name is None else arguments.text("name", name),
        )

    def __call__(self, func: Callable[..., object]) -> SweptFunction:
        """Return a function that, called, runs the sweep."""
        arguments.synchronous("func", func)
        return SweptFunction(self._options, func)

    @classmethod
    def run(
        cls,
        func: Callable[..., object],
        configs: Iterable[object] | None = None,
        **options: Any,
    ) -> SweepResult:
        """Run a sweep of a function that isn't decorated; `options` are those of `sweep`."""
        return cls(configs, **options)(func)()


def _check_client(
    client: object, order: str, devices: int | Sequence[int] | None, counters: object
) -> None:
    """Refuse what is no client of Dask, and what can't be done on its workers."""
    distributed = sys.modules.get("distributed")
    if distributed is None or not isinstance(client, distributed.Client) or client.asynchronous:
        raise ArgumentError(
            f"client must be a distributed.Client that isn't asynchronous, got {client!r}"
        )
    if order != "given":
        raise ArgumentError(
            f"order={order!r} takes samples of all configurations by turns in one process; with "
            "client, each is a task of its own: leave order out"
        )
    if devices is not None:
        raise ArgumentError(
            f"devices={devices!r}: with client, each worker measures on its own GPU; leave it out"
        )
    if counters is not None:
        raise ArgumentError(
            "counters are read on this machine, and client has the function measured on others; "
            "leave one of them out"
        )


class SweptFunction:
    """A function that, called, is measured in the configurations of a sweep.

    Attributes
    ----------
    results : SweepResult or None
        What the last call measured; if Ctrl-C or an error ended it, as far as it came.
    """

    def __init__(self, options: Options, func: Callable[..., object]) -> None:
        self._options = options
        self._func = func
        self.results: SweepResult | None = None
        with suppress(AttributeError):  # not everything callable has all that is copied
            functools.update_wrapper(self, func)

    def __call__(self, configs: Iterable[object] | None = None, **fixed: Any) -> SweepResult:
        """Measure the function in each configuration.

        Parameters
        ----------
        configs : iterable, optional
            Instead of those that the sweep was made with.
        **fixed
            Arguments that are the same in all configurations.

        Raises
        ------
        ArgumentError, UnsupportedError
            As `sweep` and `benchmark`.
        KeyboardInterrupt
            When Ctrl-C is pressed. What was measured until then is in `results`, here and as an
            attribute of the exception.
        """
        try:
            signature_of(self._func).bind_partial(**fixed)
        except TypeError as error:
            name = arguments.callable_name(self._func)
            raise ArgumentError(f"{name} can't be called with {fixed!r}: {error}") from None
        func = functools.partial(self._func, **fixed) if fixed else self._func
        run = Run(self._options, func, arguments.callable_name(self._func), configs)
        try:
            run.count()
            run.measure()
        except KeyboardInterrupt as interrupt:
            interrupt.results = run.result()  # type: ignore[attr-defined]
            raise
        finally:
            self.results = run.result()
        return self.results

    def __get__(self, instance: object, owner: type | None = None) -> SweptFunction:
        """Bind a method to its object."""
        if instance is None or not hasattr(self._func, "__get__"):
            return self
        return SweptFunction(self._options, self._func.__get__(instance, owner))
