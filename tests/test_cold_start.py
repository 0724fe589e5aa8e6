import json
import os
import pickle
import re
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from gpubench.compilation import Compilation
from gpubench.errors import ArgumentError, GpubenchError, MissingExtraError
from gpubench.startup import ColdStart, cold_start


@pytest.fixture(autouse=True, scope="module")
def _cloudpickle():
    pytest.importorskip("cloudpickle")


@pytest.fixture
def cupy_on_disk(tmp_path, monkeypatch):
    """Let a fresh process find a CuPy whose import takes 0.5 s and whose context takes 0.3 s."""
    package = tmp_path / "cupy"
    (package / "cuda").mkdir(parents=True)
    (package / "__init__.py").write_text("import time; time.sleep(0.5)\nfrom cupy import cuda\n")
    (package / "cuda" / "__init__.py").write_text("from cupy.cuda import compiler, runtime\n")
    (package / "cuda" / "runtime.py").write_text(
        textwrap.dedent("""\
            import time
            def free(pointer): time.sleep(0.3)
            def deviceSynchronize(): time.sleep(0.01)
        """)
    )
    (package / "cuda" / "compiler.py").write_text(
        textwrap.dedent("""\
            import time
            def compile_using_nvrtc(source): time.sleep(0.1)
            def _compile_module_with_cache(source): return compile_using_nvrtc(source)
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    return package


def labels(result):
    """Return what the lines of the table say, without the times."""
    return [re.sub(r"  +[\d.]+ [mun]?s$", "", line) for line in str(result).splitlines()]


def total(numbers, start=0):
    import numpy

    return numpy.sum(numbers) + start


def test_a_function_that_uses_no_gpu():
    result = cold_start(total, ([1, 2],), {"start": 3})
    assert result.name == "total"
    assert result.import_time is result.context_time is result.compilations is None
    assert result.compile_time is None
    assert 1 <= len(result.steady_times) <= 20
    assert 0 < result.steady_time < result.first_call_time  # which has to import NumPy
    assert result.total_time == result.load_time + result.first_call_time
    assert labels(result) == [
        "cold start of total",
        "load function and arguments",
        "first call",
        "total",
        "steady call",
    ]


def compile_once():
    import cupy

    if not hasattr(cupy, "kernel"):
        cupy.kernel = cupy.cuda.compiler._compile_module_with_cache("__global__ void k()")


def test_a_function_that_imports_cupy(cupy_on_disk):
    result = cold_start(compile_once)
    assert result.import_time >= 0.5
    assert result.context_time >= 0.3
    assert [(entry.names, entry.source) for entry in result.compilations] == [(("k",), "nvrtc")]
    assert 0.1 <= result.compile_time < result.first_call_time
    assert result.first_call_time < 0.5, "neither the import nor the context is part of the call"
    assert 0.01 <= result.steady_time < 0.1, "the wait for the GPU is part, compiling is over"
    assert labels(result) == [
        "cold start of compile_once",
        "import CuPy",
        "create the CUDA context",
        "load function and arguments",
        "compile",
        "first call, the rest",
        "total",
        "steady call",
    ]


class NeedsCupy:
    """An argument that imports CuPy when it is loaded, as arrays on the GPU do."""

    def __reduce__(self):
        return __import__, ("cupy",)


def test_an_argument_that_imports_cupy(cupy_on_disk):
    result = cold_start(id, (NeedsCupy(),))
    assert result.import_time >= 0.5
    assert result.load_time < 0.5
    assert result.compilations == ()
    assert result.compile_time == 0


def test_cupy_without_a_gpu_has_no_context(cupy_on_disk):
    with (cupy_on_disk / "cuda" / "runtime.py").open("a") as file:
        file.write("def free(pointer): raise RuntimeError('no driver')\n")
        file.write("def deviceSynchronize(): raise RuntimeError('no driver')\n")
    result = cold_start(compile_once)
    assert result.import_time >= 0.5
    assert result.context_time is None


def test_a_cupy_whose_compilations_cannot_be_seen(cupy_on_disk):
    (cupy_on_disk / "cuda" / "compiler.py").write_text("")
    result = cold_start(id, (NeedsCupy(),))
    assert result.compilations is None
    assert "compile" not in labels(result)


def test_a_framework_without_cupy_is_waited_for():
    def call():
        import time
        from types import SimpleNamespace

        cuda = SimpleNamespace(is_initialized=lambda: True, synchronize=lambda: time.sleep(0.05))
        sys.modules["torch"] = SimpleNamespace(cuda=cuda)

    assert cold_start(call).steady_time >= 0.05


def test_the_fresh_process_leaves_importing_to_the_function():
    def check():
        loaded = {"numpy", "cupy", "tabulate"} & set(sys.modules)
        if loaded:
            raise AssertionError(loaded)

    assert cold_start(check).name == "check"


def test_caches_are_new_folders_and_the_rest_is_inherited(tmp_path, monkeypatch):
    monkeypatch.setenv("CUPY_CACHE_DIR", "mine")
    monkeypatch.setenv("CUPY_ACCELERATORS", "cutensor")
    before = dict(os.environ)

    def tell(path):
        caches = [os.environ["CUPY_CACHE_DIR"], os.environ["CUDA_CACHE_PATH"]]
        found = [os.path.exists(cache) for cache in caches]
        path.write_text(json.dumps([caches, found, os.environ["CUPY_ACCELERATORS"]]))

    cold_start(tell, (tmp_path / "told",))
    caches, found, setting = json.loads((tmp_path / "told").read_text())
    assert setting == "cutensor"
    assert found == [False, False]
    assert len({*caches, "mine"}) == 3
    assert not any(Path(cache).parent.exists() for cache in caches)
    assert dict(os.environ) == before


def test_steady_calls_end_after_a_second():
    def slow():
        import time

        time.sleep(0.4)

    assert len(cold_start(slow).steady_times) == 3


def test_what_the_function_prints_is_not_shown(capfd):
    cold_start(print, ("printed in the child",))
    assert capfd.readouterr() == ("", "")


def test_an_exception_comes_back():
    with pytest.raises(ZeroDivisionError, match="division by zero") as caught:
        cold_start(lambda: 1 / 0)
    assert isinstance(caught.value.__cause__, GpubenchError)
    assert "in <lambda>" in str(caught.value.__cause__)


class UnbuildableError(Exception):
    def __init__(self, first, second):
        super().__init__(first)


class UnpicklableError(Exception):
    def __init__(self, story, _):
        super().__init__(story, threading.Lock())


@pytest.mark.parametrize("kind", [UnbuildableError, UnpicklableError])
def test_an_exception_that_cannot_travel_is_told(kind):
    def fail():
        raise kind("the story", 2)

    with pytest.raises(
        GpubenchError, match=rf"in the fresh process:[^$]*{kind.__name__}.*the story"
    ):
        cold_start(fail)


@pytest.mark.parametrize(
    ("end", "how"),
    [
        (lambda: sys.exit("goodbye"), "exited with status 1"),
        (lambda: os._exit(7), "exited with status 7"),
        pytest.param(
            lambda: os.abort(),
            "died of SIGABRT",
            marks=pytest.mark.skipif(os.name != "posix", reason="needs signals"),
        ),
    ],
    ids=["exit", "_exit", "abort"],
)
def test_a_process_that_dies_leaves_its_last_words(end, how):
    def die():
        print("working", flush=True)
        end()

    with pytest.raises(GpubenchError) as caught:
        cold_start(die)
    message = str(caught.value)
    start = f"the fresh process {how} before the measurement was done; its last words:\n  working"
    assert message.startswith(start)
    assert ("goodbye" in message) == (how == "exited with status 1")


def test_arguments_that_cannot_be_loaded_in_the_fresh_process(tmp_path, monkeypatch):
    (tmp_path / "here_only.py").write_text("def f(): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import here_only

    (tmp_path / "here_only.py").unlink()
    with pytest.raises(GpubenchError, match=r"can't be loaded: Module.*here_only"):
        cold_start(here_only.f)


def test_arguments_that_cannot_be_sent():
    with pytest.raises(ArgumentError) as caught:
        cold_start(len, (threading.Lock(),))
    assert str(caught.value) == (
        "func=len and its arguments can't be sent to another process "
        "(TypeError: cannot pickle '_thread.lock' object); let it make for itself what can't travel"
    )


@pytest.mark.parametrize(
    ("call", "named"), [((3,), "func"), ((len, 5), "args"), ((len, (), [1]), "kwargs")]
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ArgumentError, match=f"^{named} must be"):
        cold_start(*call)


def test_cloudpickle_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(MissingExtraError, match=r'pip install "gpubench\[isolate\]"'):
        cold_start(len, ((),))


def test_table():
    result = ColdStart(
        name="f",
        import_time=0.5,
        context_time=0.25,
        load_time=0.001,
        first_call_time=1.003,
        compilations=(Compilation(("k",), "nvrtc", 0.75), Compilation(("l",), "disk", 0.25)),
        steady_times=(3e-5, 2e-5, 1e-5),
    )
    assert str(result) == textwrap.dedent("""\
        cold start of f
        import CuPy                   500 ms
        create the CUDA context       250 ms
        load function and arguments  1.00 ms
        compile                       1.00 s
        first call, the rest         3.00 ms
        total                         1.75 s
        steady call                  20.0 us""")
    assert pickle.loads(pickle.dumps(result)) == result


def test_compiling_in_several_threads_takes_no_longer_than_the_call():
    both = (Compilation(("k",), "nvrtc", 0.7), Compilation(("l",), "nvrtc", 0.6))
    result = ColdStart("f", 0.5, None, 0.0, 1.0, both, (1e-3,))
    assert result.compile_time == 1.0
    assert "first call, the rest            0 ns" in str(result)
