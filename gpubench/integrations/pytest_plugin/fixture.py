"""What a test calls to time a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from gpubench.measure import benchmark
from gpubench.plain import has_identity
from gpubench.result import BenchmarkResult
from gpubench.storage import Record

if TYPE_CHECKING:
    from gpubench.integrations.pytest_plugin.session import BenchmarkSession

_ONCE: dict[str, Any] = {"n_repeat": 1, "n_warmup": 0, "max_duration": math.inf, "method": "auto"}


class GpuBenchmark:
    """The fixture ``gpu_benchmark`` of one test.

    Parameters
    ----------
    session : BenchmarkSession
        Keeps what is timed.
    item : pytest.Item
        The test.
    """

    def __init__(self, session: BenchmarkSession, item: pytest.Item) -> None:
        self._session = session
        self._item = item
        self._name, self._params = _name_and_params(item)

    @property
    def disabled(self) -> bool:
        """Whether functions are called once only: nothing should depend on the times then."""
        return bool(self._session.settings.disabled)

    def __call__(
        self,
        func: Callable[..., object],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        n_repeat: int | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> BenchmarkResult:
        """Time a function; a test may time several.

        Parameters
        ----------
        func, args, kwargs, n_repeat
            As in `gpubench.benchmark`.
        name : str, optional
            What tells it from others of the same test.
        **options
            The other arguments of `gpubench.benchmark`.

        Returns
        -------
        BenchmarkResult
            With a single sample of an untimed first call, where benchmarks are disabled.
        """
        label = self._item.name if name is None else f"{self._item.name}::{name}"
        if self.disabled:
            self._session.n_untimed += 1
            once = {**options, **_ONCE, "name": label, "progress": False}
            return benchmark(func, args, kwargs, **once)
        options = {"method": self._session.settings.method, **options}
        result = benchmark(func, args, kwargs, n_repeat, name=label, **options)
        self._session.add(self._item, self.record(result, name))
        return result

    def record(self, result: BenchmarkResult | None = None, name: str | None = None) -> Record:
        """Return the record of this test, or of what it timed under another name."""
        full_name = self._name if name is None else f"{self._name}::{name}"
        return Record(name=full_name, params=self._params, result=result)


def _name_and_params(item: pytest.Item) -> tuple[str, dict[str, object]]:
    """Return the test's node id, without its parameters, and these by name.

    Those whose value can't be told from others in another run are left to the id that the test
    has among its siblings.
    """
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return item.nodeid, {}
    params = {name: value for name, value in callspec.params.items() if has_identity(value)}
    if len(params) < len(callspec.params):
        params["id"] = callspec.id
    return item.nodeid.removesuffix(f"[{callspec.id}]"), params
