"""The package as a whole: what importing it costs, what it exports, and that its examples run."""

import doctest
import importlib
import inspect
import os
import pkgutil
import statistics
import subprocess
import sys
from importlib import metadata, resources

import pytest

import gpubench

OPTIONAL = ("cupy", "nvtx", "tabulate", "matplotlib", "pandas", "IPython", "torch", "tqdm")
MODULES = [
    "gpubench",
    *(
        module.name
        for module in pkgutil.walk_packages(gpubench.__path__, "gpubench.")
        if not module.name.endswith("__main__")
    ),
]


def python(code):
    """Run code in a fresh interpreter and return what it printed."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def import_time(module):
    """Seconds that a fresh interpreter takes to import a module."""
    return float(
        python(
            "from time import perf_counter\n"
            "begin = perf_counter()\n"
            f"import {module}\n"
            "print(perf_counter() - begin)"
        )
    )


def test_import_is_no_slower_than_numpys():
    times = {"gpubench": [], "numpy": []}
    for _ in range(5):
        for module, taken in times.items():
            taken.append(import_time(module))
    ours, numpys = (statistics.median(times[module]) for module in ("gpubench", "numpy"))
    assert ours <= 1.3 * numpys


@pytest.mark.parametrize(
    "code",
    [
        "import gpubench",
        "import gpubench, gpubench.measure, gpubench.cli, gpubench.devices.cuda",
        "import gpubench; [getattr(gpubench, name) for name in gpubench.__all__]",
    ],
)
def test_import_leaves_what_is_optional_alone(code):
    shown = f"; import sys; print(*(m for m in {OPTIONAL} if m in sys.modules))"
    assert python(code + shown).split() == []


@pytest.mark.parametrize("name", gpubench.__all__)
def test_public_names_resolve_and_are_documented(name):
    value = getattr(gpubench, name)
    assert inspect.getdoc(value)
    assert name in dir(gpubench)


def test_public_names_are_distinct():
    assert len(gpubench.__all__) == len(set(gpubench.__all__))


def test_star_import():
    names = {}
    exec("from gpubench import *", names)
    assert set(gpubench.__all__) <= set(names)


def test_other_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'gpubench' has no attribute 'benchmrk'"):
        _ = gpubench.benchmrk


def test_types_ship():
    assert resources.files("gpubench").joinpath("py.typed").is_file()


def test_version_is_the_distributions():
    try:
        installed = metadata.version("gpubench")
    except metadata.PackageNotFoundError:
        pytest.skip("gpubench is imported from its folder, not installed")
    assert gpubench.__version__ == installed


@pytest.mark.parametrize("name", MODULES)
def test_examples_run_without_a_gpu(name, no_cupy):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.failed == 0


@pytest.mark.parametrize("function", [gpubench.benchmark, gpubench.simulated_gpu])
def test_what_people_begin_with_has_an_example(function):
    examples = doctest.DocTestFinder(recurse=False).find(function)
    assert sum(len(example.examples) for example in examples) > 1


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "kinds"),
        [
            (gpubench.ArgumentError("x"), (ValueError, TypeError)),
            (gpubench.UnsupportedError("x"), (RuntimeError,)),
            (gpubench.MissingExtraError("plot()", "matplotlib", "plot"), (ImportError,)),
        ],
    )
    def test_they_have_one_base_and_the_usual_kinds(self, error, kinds):
        for kind in (gpubench.GpubenchError, *kinds):
            assert isinstance(error, kind)

    def test_a_missing_extra_says_what_to_install(self):
        error = gpubench.MissingExtraError("plot()", "matplotlib", "plot")
        assert str(error) == (
            "plot() needs the package 'matplotlib', which is not installed: "
            'pip install "gpubench[plot]"'
        )
