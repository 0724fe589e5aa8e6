"""Sweeps on the workers of a Dask cluster: ``sweep.run(..., client=...)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from gpubench.devices.place import Place
from gpubench.environment import shared
from gpubench.integrations.dask.cluster import Answer, Cluster, Job
from gpubench.processes import pickled, unpickled
from gpubench.render.content import visible
from gpubench.sweeps.engine import Here, Keep, Site
from gpubench.sweeps.execution import Options
from gpubench.sweeps.measurement import Measurement, Status
from gpubench.sweeps.roofline import Peaks


@dataclass(frozen=True)
class Errand:
    """One configuration, as a worker is sent it.

    Attributes
    ----------
    sweep : bytes
        What all configurations have in common: the arguments of `Here`.
    config : bytes
        The function's arguments.
    """

    sweep: bytes
    config: bytes

    def run(self) -> tuple[tuple[Measurement, ...], Site]:
        """Measure it here."""
        arguments: Any = unpickled(self.sweep)
        config: Any = unpickled(self.config)
        measured: list[Measurement] = []
        with Here(*arguments) as engine:
            engine.measure({0: config}, lambda _, found: measured.extend(found), lambda _: None)
            # The values themselves stay where they come from.
            return tuple(replace(each, config={}) for each in measured), engine.site


class OnDask:
    """Measures on the workers of a Dask cluster, a configuration at a time at each place.

    Parameters
    ----------
    options, func, name, parameters
        As of `gpubench.sweeps.engine.Here`.

    Raises
    ------
    ArgumentError
        If the function can't be sent to workers.
    """

    def __init__(
        self, options: Options, func: Callable[..., object], name: str, parameters: Sequence[str]
    ) -> None:
        self._client = options.client
        self._n_samples = options.goal.n_repeat or 1
        self._name = name
        there = replace(
            options, configs=None, view={}, checkpoint=None, counters=None, counting={}, client=None
        )
        self._sweep = pickled("client", name, (there, func, name, parameters))
        self._sites: list[Site] = []
        self.interrupted: Mapping[int, tuple[Measurement, ...]] = {}

    def __enter__(self) -> OnDask:
        self._cluster = Cluster(self._client)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    @property
    def gpu_names(self) -> Sequence[str]:
        """The name of each kind of GPU that there is."""
        return sorted({place.gpu_name for place in self._cluster.places} - {""})

    @property
    def site(self) -> Site:
        """What all places have in common."""
        peaks = list(dict.fromkeys(site.peaks for site in self._sites))
        if len(peaks) != 1:
            peaks = [Peaks(source=f"{len(peaks)} kinds of devices were timed")]
        return Site(
            shared([site.environment for site in self._sites]),
            peaks[0],
            [wait for site in self._sites for wait in site.waits],
        )

    def measure(
        self,
        configs: Mapping[int, Mapping[str, object]],
        keep: Keep,
        advance: Callable[[int], object],
    ) -> None:
        """Measure configurations wherever a place is free, in their order."""
        errands = {
            str(index): Errand(self._sweep, pickled("client", self._name, config))
            for index, config in configs.items()
        }
        left = {str(index): index for index in configs}
        begun: set[str] = set()

        def next_job(_: Place) -> Job | None:
            flying = {job.key for job in self._cluster.flying.values()}
            key = next((key for key in left if key not in flying), None)
            if key is None:
                return None
            begun.add(key)
            return Job(key, errands[key])

        try:
            for answer in self._cluster.run(Errand.run, next_job):
                index = left.pop(answer.job.key)
                keep(index, self._measurements(answer, configs[index]))
                advance(self._n_samples)
        except KeyboardInterrupt:
            self.interrupted = {
                index: (self._without_result(configs[index], "interrupted"),)
                for key, index in left.items()
                if key in begun
            }
            raise

    def _measurements(
        self, answer: Answer, config: Mapping[str, object]
    ) -> tuple[Measurement, ...]:
        """Return what was measured of a configuration; an error is a measurement too."""
        if answer.error is not None:
            text = visible(f"{type(answer.error).__name__}: {answer.error}".rstrip(": "))
            measured = [self._without_result(config, "failed", text)]
        else:
            measured, site = answer.value
            self._sites.append(site)
        return tuple(
            replace(
                each,
                config=config,
                error=f"{each.error} (on {answer.place})" if each.error else "",
            )
            for each in measured
        )

    def _without_result(
        self, config: Mapping[str, object], status: Status, error: str = ""
    ) -> Measurement:
        return Measurement(config=config, region=self._name, status=status, error=error)
