import contextlib
import inspect
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import ModuleType

import pytest

import gpubench
from gpubench import compilation
from gpubench.compilation import Compilation, watch_compilations

COMPILER = "cupy.cuda.compiler"
FOO = 'extern "C" __global__ void foo(float* x) {}'
BAR = 'extern "C" __global__ void bar(float* x) {}'


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(compilation, "perf_counter", clock)
    return clock


def fake_compiler(clock, nvrtc_name):
    """Make a ``cupy.cuda.compiler`` whose functions find each other as CuPy's do.

    A preprocess run takes 4 s, NVRTC takes 8 s, and the reading of the cache or the loading of
    a module 1 s.
    """
    compiler = ModuleType(COMPILER)
    known_options, cache = set(), {}

    def _preprocess(source, options, arch, backend):
        clock.sleep(4)
        return "version"

    def nvrtc(source, options=(), arch=None, filename="kern.cu", name_expressions=None):
        clock.sleep(8)
        if "error" in source:
            raise SyntaxError("no such type")
        return source.upper()

    def compile_using_nvcc(source, options=(), arch=None, code_type="cubin"):
        clock.sleep(16)
        return source.upper()

    def _compile_module_with_cache(
        source, options=(), *, arch="90", backend="nvrtc", name_expressions=None
    ):
        if options not in known_options:
            compiler._preprocess("", options, arch, backend)
            known_options.add(options)
        if source not in cache:
            if backend == "nvcc":
                cache[source] = compiler.compile_using_nvcc(source, options, arch)
            else:
                compile_now = getattr(compiler, nvrtc_name)
                cache[source] = compile_now(source, options, arch, "x.cu", name_expressions)
        clock.sleep(1)
        return cache[source]

    def compile_using_nvrtc(source, options=(), arch=None, name_expressions=None):
        return compiler._compile_using_nvrtc_no_warning(source, options, arch)

    compiler._preprocess = _preprocess
    compiler._compile_module_with_cache = _compile_module_with_cache
    compiler.compile_using_nvcc = compile_using_nvcc
    compiler.compile_using_nvrtc = compile_using_nvrtc
    setattr(compiler, nvrtc_name, nvrtc)
    return compiler


@pytest.fixture(params=["compile_using_nvrtc", "_compile_using_nvrtc_no_warning"], ids=["13", "14"])
def compiler(request, clock, monkeypatch):
    compiler = fake_compiler(clock, request.param)
    monkeypatch.setitem(sys.modules, COMPILER, compiler)
    return compiler


@pytest.fixture
def build(compiler):
    """Compile as CuPy's core does: through the module's attribute of the moment."""
    return lambda source, *args, **kwargs: compiler._compile_module_with_cache(
        source, *args, **kwargs
    )


def test_compilations_disk_hits_and_the_preprocess_run_are_told_apart(build):
    with watch_compilations() as log:
        assert build(FOO) == FOO.upper()
        build(FOO)
        build(BAR, backend="nvcc")
    assert list(log) == [
        Compilation((), "preprocess", 4.0),
        Compilation(("foo",), "nvrtc", 9.0),
        Compilation(("foo",), "disk", 1.0),
        Compilation(("bar",), "nvcc", 17.0),
    ]
    assert log.total_time == 31.0
    assert log[1:3] == [log[1], log[2]]
    assert log.reason == ""


def test_log_prints_as_a_table(build):
    with watch_compilations() as log:
        build(FOO + BAR)
        build(FOO + BAR)
    assert str(log) == textwrap.dedent("""\
        kernels    source        time
        ---------  ----------  ------
        -          preprocess  4.00 s
        foo, bar   nvrtc       9.00 s
        foo, bar   disk        1.00 s
        total                  14.0 s""")
    assert repr(log) == "<CompilationLog: 3 entries, 14.0 s>"


def test_a_direct_call_of_the_compiler_is_one_entry(compiler):
    with watch_compilations() as log:
        compiler.compile_using_nvrtc(FOO)
        compiler.compile_using_nvrtc(source=BAR)
    assert list(log) == [
        Compilation(("foo",), "nvrtc", 8.0),
        Compilation(("bar",), "nvrtc", 8.0),
    ]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("__global__ void k(int a)", ("k",)),
        ("__global__\nstatic void\nk (int a)", ("k",)),
        ("__global__ void __launch_bounds__(MAX(64, 2), 3) k(int a)", ("k",)),
        ("__global__ __launch_bounds__(64) void k()", ("k",)),
        ("__global__ std::enable_if_t<true, void> k()", ("k",)),
        ("template <typename T> __global__ void k<float>(T)", ("k",)),
        ("__global__ void b(int); __global__ void a(); __global__ void b(int i) { c(i); }", "ba"),
        ("// __global__ void no()\n__global__ /* void no( */ void k()", ("k",)),
        ("__device__ void helper() {}", ()),
        ("KERNEL(k)", ()),
    ],
)
def test_kernels_are_named_as_the_source_names_them(build, source, names):
    with watch_compilations() as log:
        build(source)
    assert log[-1].names == tuple(names)


def test_instances_of_templates_are_named_as_they_were_asked_for(build):
    with watch_compilations() as log:
        build("template <class T> __global__ void k(T) {}", name_expressions=["k<int>", "k<char>"])
    assert log[-1].names == ("k<int>", "k<char>")


def test_a_source_that_cannot_be_searched_disturbs_nothing(compiler):
    with watch_compilations() as log:
        assert compiler.compile_using_nvcc(b"__global__ void k()") == b"__GLOBAL__ VOID K()"
    assert list(log) == [Compilation((), "nvcc", 16.0)]


def test_a_compilation_that_fails_is_not_listed(build):
    with watch_compilations() as log:
        with pytest.raises(SyntaxError, match="no such type"):
            build("error")
        build(FOO)
    assert list(log) == [
        Compilation((), "preprocess", 4.0),
        Compilation(("foo",), "nvrtc", 9.0),
    ]


def test_functions_are_put_back(compiler):
    before = dict(vars(compiler))

    def fail():
        with watch_compilations():
            assert vars(compiler) != before
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert vars(compiler) == before


def test_nested_logs_have_what_happened_in_their_blocks(build, compiler):
    before = dict(vars(compiler))
    with watch_compilations() as outer:
        build(FOO)
        with watch_compilations() as inner:
            build(BAR)
        build(FOO)
    build(BAR)
    assert [entry.names for entry in inner] == [("bar",)]
    assert [entry.names for entry in outer] == [(), ("foo",), ("bar",), ("foo",)]
    assert vars(compiler) == before


def test_overlapping_logs_may_end_in_any_order(build, compiler):
    before = dict(vars(compiler))
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        one = first.enter_context(watch_compilations())
        two = second.enter_context(watch_compilations())
        build(FOO)
        first.close()
        build(BAR)
        assert vars(compiler) != before
    assert len(one) == 2
    assert len(two) == 3
    assert vars(compiler) == before


def test_what_others_put_around_the_functions_stays(build, compiler):
    calls = []
    with watch_compilations() as log:
        watched = compiler._compile_module_with_cache

        def traced(*args, **kwargs):
            calls.append(args)
            return watched(*args, **kwargs)

        compiler._compile_module_with_cache = traced
    build(FOO)
    assert len(calls) == 1
    assert len(log) == 0
    with watch_compilations() as log:
        build(FOO)
    assert [entry.source for entry in log] == ["disk"]
    assert compiler._compile_module_with_cache is traced


def test_compilations_of_other_threads_are_listed_and_kept_apart(build, compiler):
    build(FOO)
    entered, done = threading.Event(), threading.Event()

    def slow_nvcc(source, options=(), arch=None):
        entered.set()
        assert done.wait(10)
        return source

    compiler.compile_using_nvcc = slow_nvcc
    with watch_compilations() as log:
        thread = threading.Thread(target=build, args=(BAR,), kwargs={"backend": "nvcc"})
        thread.start()
        assert entered.wait(10)
        build(FOO)
        done.set()
        thread.join()
    assert [(entry.names, entry.source) for entry in log] == [
        (("foo",), "disk"),
        (("bar",), "nvcc"),
    ]


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        (["_compile_module_with_cache"], "_compile_module_with_cache"),
        (
            ["_compile_using_nvrtc_no_warning", "compile_using_nvrtc"],
            "_compile_using_nvrtc_no_warning or compile_using_nvrtc",
        ),
    ],
)
def test_a_cupy_that_compiles_in_another_way_is_a_reason(compiler, gone, named):
    for name in gone:
        vars(compiler).pop(name, None)
    before = dict(vars(compiler))
    with watch_compilations() as log, watch_compilations() as inner:
        assert vars(compiler) == before
    reason = f"this CuPy's cupy.cuda.compiler has no {named}, where gpubench looks on"
    assert log.reason == inner.reason == str(log) == reason
    assert repr(log) == f"<CompilationLog: 0 entries, {reason}>"


def test_a_reason_does_not_outlast_its_compiler(compiler, monkeypatch, clock):
    del compiler._compile_module_with_cache
    with watch_compilations() as log:
        assert log.reason
    monkeypatch.setitem(sys.modules, COMPILER, fake_compiler(clock, "compile_using_nvrtc"))
    with watch_compilations() as log:
        assert log.reason == ""


def test_without_cupy_the_log_is_empty(monkeypatch):
    monkeypatch.setitem(sys.modules, COMPILER, None)
    finders = list(sys.meta_path)
    with watch_compilations() as log:
        pass
    assert len(log) == 0
    assert log.reason == ""
    assert log.total_time == 0
    assert str(log) == "nothing was compiled"
    assert sys.meta_path == finders


def test_cupy_may_be_imported_in_the_block(tmp_path):
    package = tmp_path / "cupy" / "cuda"
    package.mkdir(parents=True)
    (tmp_path / "cupy" / "__init__.py").write_text("from cupy.cuda import compiler\n")
    (package / "__init__.py").write_text("")
    (package / "compiler.py").write_text(
        textwrap.dedent("""\
            def compile_using_nvrtc(source): return source
            def _compile_module_with_cache(source): return compile_using_nvrtc(source)
        """)
    )
    script = """\
import sys
from gpubench.compilation import watch_compilations
with watch_compilations() as log, watch_compilations() as inner:
    assert "cupy" not in sys.modules
    import cupy
    cupy.cuda.compiler._compile_module_with_cache("__global__ void k()")
print([(*entry.names, entry.source) for entry in log], len(inner))
print(hasattr(cupy.cuda.compiler.compile_using_nvrtc, "__wrapped__"))
"""
    root = Path(gpubench.__path__[0]).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "[('k', 'nvrtc')] 1\nFalse\n"


def test_the_real_cupy(monkeypatch, tmp_path):
    pytest.importorskip("cupy")
    from cupy.cuda import compiler

    if "to_ltoir" not in inspect.signature(compiler._compile_module_with_cache).parameters:
        pytest.skip("this CuPy can't compile without loading the result on a GPU")
    try:
        compiler._get_nvrtc_version()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"NVRTC can't be loaded: {error}")
    # Everything else that compiling asks of a GPU is its architecture, which is given.
    arch = ("-arch=sm_90", "cubin")
    monkeypatch.setattr(compiler, "_get_arch_for_options_for_nvrtc", lambda arch_=None: arch)
    monkeypatch.setattr(compiler, "_empty_file_preprocess_cache", {})
    backend = compiler._DiskKernelCacheBackend(str(tmp_path))
    monkeypatch.setattr(compiler, "_kernel_cache_backend", backend)
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    with watch_compilations() as log:
        for _ in range(2):
            compiler._compile_module_with_cache(FOO, arch="90", to_ltoir=True)
    assert [(entry.names, entry.source) for entry in log] == [
        ((), "preprocess"),
        (("foo",), "nvrtc"),
        (("foo",), "disk"),
    ]
    assert all(entry.wall_time > 0 for entry in log)
    assert log.total_time == sum(entry.wall_time for entry in log)
