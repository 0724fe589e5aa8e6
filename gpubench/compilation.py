"""What CuPy compiled, or read from its cache, while a block ran, and what that took.

CuPy compiles through functions of ``cupy.cuda.compiler`` that it looks up in the module at each
call. While at least one log is open, wrappers stand in their place. The outermost of them makes
a module of kernels, from the cache on disk unless a compiler runs inside it.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from time import perf_counter
from types import ModuleType
from typing import Any, overload

_COMPILER = "cupy.cuda.compiler"
_DISK, _PREPROCESS = "disk", "preprocess"
_SOURCES = {
    "_compile_module_with_cache": _DISK,
    "_preprocess": _PREPROCESS,
    "_preprocess_hiprtc": _PREPROCESS,
    "_preprocess_hipcc": _PREPROCESS,
    "_compile_using_nvrtc_no_warning": "nvrtc",  # from CuPy 14 on
    "compile_using_nvrtc": "nvrtc",
    "compile_using_nvcc": "nvcc",
    "compile_using_hipcc": "hipcc",
}
"""CuPy's functions, and where what they return comes from."""

_NEEDED = (
    ("_compile_module_with_cache",),
    ("_compile_using_nvrtc_no_warning", "compile_using_nvrtc"),
)
"""Functions without which a compilation, or a compiler in it, would go unseen: one of each."""

Function = Callable[..., Any]
Load = Callable[[ModuleType], None]
"""Runs a module's code."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(
    r"""\b__global__\b
        (?:[^;{}()]|__\w+__\s*\((?:[^()]|\([^()]*\))*\))*?  # return type, __launch_bounds__(...)
        \b(?!__\w+__\s*\()(\w+)\s*(?:<[^;{}()]*>\s*)?\(""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Compilation:
    """One thing that CuPy compiled or read from its cache.

    Attributes
    ----------
    names : tuple of str
        The kernels, as the source names them; of templates, the instances that were asked for.
        Empty for ``"preprocess"``, and where the source says it in a way that isn't understood.
    source : str
        ``"disk"``: read from CuPy's cache. ``"nvrtc"`` (on HIP, hiprtc), ``"nvcc"``,
        ``"hipcc"``: the compiler that ran. ``"preprocess"``: an empty program, which CuPy
        compiles once in each process and for each set of options to learn the compiler's version.
    wall_time : float
        Seconds that it took, with the cache and the loading of the module; of a kernel's module,
        without a preprocess run on the way, which has an entry of its own.
    """

    names: tuple[str, ...]
    source: str
    wall_time: float


def compile_time(compilations: Sequence[Compilation], call_time: float) -> float:
    """Return the seconds of a call that went into its compilations.

    They are the whole call at most, even if several threads compiled at once.
    """
    return min(sum(each.wall_time for each in compilations), call_time)


class CompilationLog(Sequence[Compilation]):
    """What CuPy compiled, in the order in which it was done; grows until its block ends.

    Attributes
    ----------
    reason : str
        Why nothing can be seen of what this CuPy compiles; empty if it can. Without CuPy, or
        where nobody imports it, the log is simply empty.
    intervals : list of (float, float, int)
        When each entry began and ended, in seconds of `time.perf_counter`, and the native id of
        the thread that it kept busy.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.intervals: list[tuple[float, float, int]] = []
        self._entries: list[Compilation] = []

    @overload
    def __getitem__(self, index: int) -> Compilation: ...
    @overload
    def __getitem__(self, index: slice) -> list[Compilation]: ...
    def __getitem__(self, index: int | slice) -> Compilation | list[Compilation]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def total_time(self) -> float:
        """Seconds that all entries took together."""
        return sum(entry.wall_time for entry in self)

    def __repr__(self) -> str:
        from gpubench.render.units import format_time

        count = "1 entry" if len(self) == 1 else f"{len(self)} entries"
        return f"<{type(self).__name__}: {count}, {self.reason or format_time(self.total_time)}>"

    def __str__(self) -> str:
        if not self:
            return self.reason or "nothing was compiled"
        from tabulate import tabulate

        from gpubench.render.units import format_time

        rows = [
            (", ".join(entry.names) or "-", entry.source, format_time(entry.wall_time))
            for entry in self
        ]
        rows.append(("total", "", format_time(self.total_time)))
        align = ("left", "left", "right")
        return tabulate(rows, ("kernels", "source", "time"), disable_numparse=True, colalign=align)


@contextmanager
def watch_compilations() -> Iterator[CompilationLog]:
    """List what CuPy compiles in a block.

    Compilations of all threads are listed. Blocks may be nested and overlap: each log has all
    that happened in its block. CuPy may be imported in the block; it isn't imported for it.
    A compilation that fails is not listed.

    Yields
    ------
    CompilationLog
        Grows while the block runs.

    Examples
    --------
    >>> with watch_compilations() as log:  # doctest: +SKIP
    ...     a.sum()
    >>> print(log)  # doctest: +SKIP
    kernels    source        time
    ---------  ----------  ------
    -          preprocess  104 ms
    cupy_sum   nvrtc       251 ms
    total                  355 ms
    """
    log = CompilationLog()
    _watch.add(log)
    try:
        yield log
    finally:
        _watch.discard(log)


class ImportHook(MetaPathFinder):
    """Is there when a module is imported for the first time, while it stands in `sys.meta_path`.

    Parameters
    ----------
    name : str
        The module's full name.
    around : callable
        Called as ``around(load, module)`` in place of ``load(module)``, which it has to call.
    """

    def __init__(self, name: str, around: Callable[[Load, ModuleType], None]) -> None:
        self._name = name
        self._around = around

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module where the other finders do, and put `around` around its loading."""
        if fullname != self._name:
            return None
        others = [finder for finder in sys.meta_path if not isinstance(finder, ImportHook)]
        finds = [finder.find_spec for finder in others if hasattr(finder, "find_spec")]
        specs = (find_spec(fullname, path, target) for find_spec in finds)
        spec = next((spec for spec in specs if spec is not None), None)
        loader: object = spec and spec.loader
        load: Load | None = getattr(loader, "exec_module", None)
        if load is not None:
            # On this module's own loader object: the class and other modules stay as they are.
            vars(loader)["exec_module"] = lambda module: self._around(load, module)
        return spec


@dataclass
class _Call:
    """A call of one of CuPy's functions that is under way in this thread."""

    source: str
    listed_time: float = 0.0  # spent in calls inside it that have entries of their own


class _Watch:
    """The open logs, and the wrappers that write to them."""

    def __init__(self) -> None:
        self._logs: list[CompilationLog] = []
        self._compiler: ModuleType | None = None
        self._replaced: dict[str, tuple[Function, Function]] = {}  # originals and wrappers
        self._reason = ""
        self._hook = ImportHook(_COMPILER, self._load)
        self._thread = threading.local()
        self._lock = threading.Lock()

    def add(self, log: CompilationLog) -> None:
        with self._lock:
            if not self._logs:
                compiler = sys.modules.get(_COMPILER)
                if compiler is None:
                    sys.meta_path.insert(0, self._hook)
                else:
                    self._attach(compiler)
            log.reason = self._reason
            self._logs.append(log)

    def discard(self, log: CompilationLog) -> None:
        with self._lock:
            self._logs = [other for other in self._logs if other is not log]
            if not self._logs:
                if self._hook in (sys.meta_path or ()):  # None when the interpreter ends
                    sys.meta_path.remove(self._hook)
                self._detach()

    def _load(self, load: Load, compiler: ModuleType) -> None:
        load(compiler)
        with self._lock:
            if self._logs:
                self._attach(compiler)
                for log in self._logs:
                    log.reason = self._reason

    def _attach(self, compiler: ModuleType) -> None:
        found = {name: getattr(compiler, name, None) for name in _SOURCES}
        for group in _NEEDED:
            if not any(found[name] for name in group):
                names = " or ".join(group)
                self._reason = f"this CuPy's {_COMPILER} has no {names}, where gpubench looks on"
                return
        self._compiler = compiler
        for name, original in found.items():
            if original is not None:
                self._replaced[name] = original, self._timed(original, _SOURCES[name])
                setattr(compiler, name, self._replaced[name][1])

    def _detach(self) -> None:
        for name, (original, wrapper) in self._replaced.items():
            # Whoever has put something around the wrapper meanwhile keeps it: it does no harm.
            if getattr(self._compiler, name, None) is wrapper:
                setattr(self._compiler, name, original)
        self._replaced, self._compiler, self._reason = {}, None, ""

    def _timed(self, original: Function, source: str) -> Function:
        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            outer: _Call | None = getattr(self._thread, "call", None)
            self._thread.call = call = _Call(source)
            start = perf_counter()
            try:
                made = original(*args, **kwargs)
            finally:
                self._thread.call = outer
            elapsed = perf_counter() - start
            if outer is None or source == _PREPROCESS:
                names = () if source == _PREPROCESS else _kernel_names(original, args, kwargs)
                compilation = Compilation(names, call.source, elapsed - call.listed_time)
                self._list(compilation, (start, start + elapsed, threading.get_native_id()))
                call.listed_time = elapsed
            elif outer.source == _DISK:
                outer.source = call.source
            if outer is not None:
                outer.listed_time += call.listed_time
            return made

        return wrapper

    def _list(self, compilation: Compilation, interval: tuple[float, float, int]) -> None:
        for log in self._logs:
            log.intervals.append(interval)
            log._entries.append(compilation)


_watch = _Watch()


def _kernel_names(
    function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the kernels that one of CuPy's functions was asked for by such a call."""
    try:
        arguments = inspect.signature(function).bind(*args, **kwargs).arguments
        if expressions := arguments.get("name_expressions"):
            return tuple(expressions)
        kernels = _KERNEL.findall(_COMMENT.sub(" ", arguments["source"]))
    except (KeyError, TypeError, ValueError):
        return ()  # a signature of another CuPy: no reason to disturb the compilation
    return tuple(dict.fromkeys(kernels))
