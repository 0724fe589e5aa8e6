"""Benchmarks of the time that GPUs work."""

import re
import sys
from collections.abc import Callable
from typing import Any

from asv_runner.benchmarks._base import _get_first_attr
from asv_runner.benchmarks.time import TimeBenchmark

import gpubench
from asv_bench_gpubench.clock import SynchronizedClock

_WARMUP_TIME = 0.1
_REPEAT = (5, 100, 5.0)


class GpuTimeBenchmark(TimeBenchmark):
    """What gpubench's `benchmark` measures, as the samples of one of asv's time benchmarks.

    A sample is the time of the busiest device; where there is no GPU, it is the host's, and what is
    printed on standard error says so, beside gpubench's other notes.

    asv's attributes mean what they mean for ``time_*``, but for `repeat`, which is 5 to 100 samples
    in 5 seconds by default, `number`, which is 1 by default and wherever there is a `setup` or a
    `teardown`, and `timer`, `sample_time` and `min_run_count`, which mean nothing.

    Attributes
    ----------
    gpu_method : str
        `benchmark`'s `method`, ``"auto"`` by default.
    gpu_devices : int, list of int or None
        Its `devices`: by default, the current one.
    gpu_cache : str
        Its `cache`, ``"warm"`` by default.
    """

    name_regex = re.compile("^(GpuTime[A-Z_].+|gputime_.+)$")

    def _load_vars(self) -> None:
        super()._load_vars()
        self.gpu_method = _get_first_attr(self._attr_sources, "gpu_method", "auto")
        self.gpu_devices = _get_first_attr(self._attr_sources, "gpu_devices", None)
        self.gpu_cache = _get_first_attr(self._attr_sources, "gpu_cache", "warm")

    def run(self, *param: object) -> dict[str, Any]:
        """Take samples.

        Returns
        -------
        dict
            ``"samples"``, a list of seconds a call, and ``"number"``, how many calls are behind
            each; asv takes the median and its interval from them.
        """
        call = self._param_bound_func(*param)
        has_hooks = bool(self._setups or self._teardowns)
        number = 1 if has_hooks else max(self.number, 1)
        renew = self.redo_setup if has_hooks else None
        self._warm_up(call, renew)
        at_least, at_most, max_duration = self._samples_wanted()
        samples = self._samples(call, number, renew, at_most, max_duration)
        if len(samples) < at_least:
            samples += self._samples(call, number, renew, at_least - len(samples))
        return {"samples": samples, "number": number}

    def _warm_up(self, call: Callable[[], object], renew: Callable[[], None] | None) -> None:
        """Call for as long as asv would, so that the clocks of the GPUs have risen."""
        clock = SynchronizedClock()
        begin = clock()
        duration = _WARMUP_TIME if self.warmup_time < 0 else self.warmup_time
        while clock() < begin + duration:
            if renew is not None:
                renew()
            call()

    def _samples_wanted(self) -> tuple[int, int, float]:
        """Return the least and the greatest number of samples, and the seconds for them."""
        try:
            at_least, at_most, max_duration = self.repeat
        except TypeError:
            if not self.repeat:
                return _REPEAT
            return int(self.repeat), int(self.repeat), float("inf")
        return int(at_least), int(at_most), float(max_duration)

    def _samples(
        self,
        call: Callable[[], object],
        number: int,
        renew: Callable[[], None] | None,
        n_repeat: int,
        max_duration: float = float("inf"),
    ) -> list[float]:
        def calls() -> None:
            for _ in range(number):
                call()

        result = gpubench.benchmark(
            call if number == 1 else calls,
            n_repeat=n_repeat,
            name=self.name,
            n_warmup=10 if self.warmup_time else 0,
            max_duration=max_duration,
            devices=self.gpu_devices,
            method=self.gpu_method,
            setup=renew,
            cache=self.gpu_cache,
            progress=False,
        )
        if result.interrupted:
            raise KeyboardInterrupt
        for note in result.notes:
            print(f"gpubench: {note}", file=sys.stderr)
        times = result.gpu_times.max(axis=0) if result.devices else result.cpu_times
        return (times / number).tolist()


export_as_benchmark = [GpuTimeBenchmark]
