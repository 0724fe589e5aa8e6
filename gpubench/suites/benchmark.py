"""A benchmark that can be called, with the attributes that asv knows."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from gpubench.arguments import finite_number, unique_name, whole_number

TIMEOUT = 60.0
"""Seconds that a benchmark may take in a round, unless it says otherwise."""


class Benchmark:
    """A benchmark that can be called, with what its function, class and module say of it.

    Parameters
    ----------
    func : callable
        The function, bound to its instance.
    sources : tuple of object
        Where attributes are looked for: the first that has one counts.
    """

    def __init__(self, func: Callable[..., object], sources: tuple[object, ...]) -> None:
        self.func = func
        self._sources = sources

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, the default if no source has it or it is None."""
        found = (getattr(source, name, None) for source in self._sources)
        return next((value for value in found if value is not None), default)

    @property
    def setups(self) -> list[Callable[..., object]]:
        """What is to be called before it: the module's first."""
        return self._hooks("setup")[::-1]

    @property
    def teardowns(self) -> list[Callable[..., object]]:
        """What is to be called after it: the module's last."""
        return self._hooks("teardown")

    def _hooks(self, name: str) -> list[Callable[..., object]]:
        # asv allows setUp and tearDown, too; a class of benchmarks may well be called Setup
        keys = [
            (source, key) for source in self._sources for key in dir(source) if key.lower() == name
        ]
        found = [getattr(source, key) for source, key in keys]
        return [hook for hook in found if not inspect.isclass(hook)]

    @property
    def setup_cache(self) -> Callable[[], object] | None:
        """What makes, once, the value that comes before its arguments."""
        found: Callable[[], object] | None = self.get("setup_cache")
        return found

    @property
    def setup_cache_key(self) -> str:
        """Tells its `setup_cache` from others: the class counts, whose attributes it may use.

        Empty if there is none.
        """
        function: Any = self.setup_cache
        if function is None:
            return ""
        owner = type(getattr(function, "__self__", None))
        return f"{owner.__qualname__}:{function.__module__}.{function.__qualname__}"

    @property
    def setup_cache_timeout(self) -> float:
        """Seconds that its `setup_cache` may take."""
        if self.setup_cache is None:
            return 0.0
        seconds = getattr(self.setup_cache, "timeout", TIMEOUT)
        return finite_number("setup_cache.timeout", seconds, above=0)

    @property
    def timeout(self) -> float:
        """Seconds that it may take in a round."""
        return finite_number("timeout", self.get("timeout", TIMEOUT), above=0)

    @property
    def rounds(self) -> int | None:
        """In how many rounds it wants to run, ``processes`` of old; None if it doesn't say."""
        rounds = self.get("rounds", self.get("processes"))
        return None if rounds is None else whole_number("rounds", rounds, at_least=1)

    def parameters(self) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
        """Return the parameters' names, and every combination of their values."""
        params, names = self.get("params", ()), self.get("param_names", ())
        if isinstance(params, Mapping):
            names = params.keys()
            params = params.values()
        values = list(params)
        if values and not isinstance(values[0], (list, tuple)):
            values = [values]
        given = list(map(str, names))[: len(values)]
        given += [f"param{number}" for number in range(len(given) + 1, len(values) + 1)]
        named: dict[str, None] = {}
        for name in given:
            named[unique_name(name, named)] = None
        return tuple(named), list(itertools.product(*values))
