"""The benchmarks of an imported file: functions and methods that are named as such."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

from gpubench.suites.benchmark import Benchmark
from gpubench.suites.kinds import Kind, kind_of
from gpubench.suites.loading import is_of_suite


@dataclass(frozen=True)
class Member:
    """A benchmark as it stands in a module.

    Attributes
    ----------
    name : str
        For example ``"bench_sort.Sort.time_sort"``, or what its ``benchmark_name`` says.
    kind : Kind
        What is measured of it.
    module : module
        Where it stands.
    owner : type or None
        The class of which it is a method.
    attribute : str
        What it is called there.
    """

    name: str
    kind: Kind
    module: ModuleType
    owner: type | None
    attribute: str

    def instance(self) -> Benchmark:
        """Return the benchmark with a new instance of its class, whose state is its own."""
        holder: object = self.module if self.owner is None else self.owner()
        func = getattr(holder, self.attribute)
        sources = (func, holder) if self.owner is None else (func, holder, self.module)
        return Benchmark(func, sources)

    @cached_property
    def parameters(self) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
        """Their names, and every combination of their values; an iterator has them but once."""
        return self.instance().parameters()


def members(module: ModuleType, prefix: str) -> Iterator[Member]:
    """Yield the benchmarks of a module.

    As with asv, those that a module imports from another one of the suite count as its own; what
    it imports from elsewhere doesn't, `gpubench.time_range` say.

    Parameters
    ----------
    module : module
        A module of a suite.
    prefix : str
        Its name in the suite.
    """
    for name, value in list(vars(module).items()):
        if name.startswith("_") or not is_of_suite(value, module):
            continue
        if inspect.isclass(value) and not inspect.isabstract(value):
            for attribute, function in inspect.getmembers(value, inspect.isroutine):
                yield from _member(prefix, module, value, attribute, function)
        elif inspect.isfunction(value):
            yield from _member(prefix, module, None, name, value)


def _member(
    prefix: str, module: ModuleType, owner: type | None, attribute: str, function: object
) -> Iterator[Member]:
    parts = [prefix, owner.__name__ if owner else "", attribute]
    name = getattr(function, "benchmark_name", None) or ".".join(filter(None, parts))
    kind = kind_of(name)
    if kind is not None:
        yield Member(name, kind, module, owner, attribute)
