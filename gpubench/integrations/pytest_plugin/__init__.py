"""The pytest plugin: the fixture ``gpu_benchmark``, and options that begin with ``--gpubench-``.

pytest imports this in every session wherever gpubench is installed, and before it measures
coverage. So nothing else of gpubench is imported here until a test or an option asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gpubench.integrations.pytest_plugin.fixture import GpuBenchmark
    from gpubench.integrations.pytest_plugin.session import BenchmarkSession

_PREFIX = "gpubench_"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options to pytest's."""
    group = parser.getgroup("gpubench", "GPU benchmarks: tests that use the fixture gpu_benchmark")
    group.addoption("--gpubench-save", metavar="FILE", help="write what was timed to this file")
    group.addoption(
        "--gpubench-compare",
        metavar="FILE",
        help="compare with what is saved in this file (of gpubench, pytest-benchmark ...)",
    )
    group.addoption(
        "--gpubench-fail-on-slower",
        action="store_true",
        help="exit with status 1 if it is established that a test is slower than in the file",
    )
    group.addoption(
        "--gpubench-margin",
        metavar="MARGIN",
        help="relative difference up to which times count as the same: 1%% unless given",
    )
    group.addoption(
        "--gpubench-method",
        metavar="METHOD",
        help="how to time where the test doesn't say: auto, host, events, gated, graph or cupti",
    )
    group.addoption(
        "--gpubench-disable",
        action="store_true",
        help="call each function once instead of timing it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the options, if one was given, before any test runs."""
    options = vars(config.option)
    given = any(value for name, value in options.items() if name.startswith(_PREFIX))
    if given and not options.get("collectonly"):
        _session(config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Learn from a worker of pytest-xdist, as it ends, how many functions it has called."""
    if n_untimed := getattr(node, "workeroutput", {}).get("gpubench", 0):
        _session(node.config).n_untimed += n_untimed


@pytest.fixture
def gpu_benchmark(request: pytest.FixtureRequest) -> GpuBenchmark:
    """Time a function as `gpubench.benchmark` does: ``gpu_benchmark(func, args, kwargs)``.

    It takes the same arguments and returns the same result. What is timed is summed up below the
    tests, and saved and compared as the options say that begin with ``--gpubench-``.
    """
    return _session(request.config).benchmark_for(request.node)


def _session(config: pytest.Config) -> BenchmarkSession:
    from gpubench.integrations.pytest_plugin.session import session_of

    return session_of(config)
