"""What a function costs before it runs at full speed, measured in a fresh process.

The fresh process imports this module, which therefore leaves NumPy alone at its top level: to
import NumPy is a part of importing CuPy. That is timed when it happens, be it while the
arguments are loaded or in the call, and the context is created right after it, so that neither
is taken for the loading or the call.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from types import ModuleType
from typing import Any, TypeVar, cast

from gpubench.compilation import Compilation, ImportHook, Load, compile_time, watch_compilations
from gpubench.errors import GpubenchError
from gpubench.processes import command, obituary, pickled, unpickled

T = TypeVar("T")
Call = tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]
"""A function with its positional and keyword arguments."""

_CALL, _OUTCOME, _OUTPUT = "call.pickle", "outcome.pickle", "output.txt"

_MAX_STEADY_CALLS = 20
_MAX_STEADY_TIME = 1.0


@dataclass(frozen=True)
class ColdStart:
    """What the first call of a function cost in a fresh process.

    Attributes
    ----------
    name : str
        The function's name.
    import_time : float or None
        Seconds to import CuPy; None if the function didn't need it.
    context_time : float or None
        Seconds to create the CUDA context; None without CuPy or a GPU.
    load_time : float
        Seconds to load the function and its arguments: the modules that they need, other than
        CuPy, and copying arrays to the GPU.
    first_call_time : float
        Seconds of the first call until the GPU was done, with what it compiled, but without the
        import and the context if it caused them.
    compilations : tuple of Compilation or None
        What CuPy compiled in the first call; None without CuPy, or if that can't be seen.
    steady_times : tuple of float
        Seconds of each of the calls after the first, until the GPU was done: at most 20 calls,
        and no more than one once a second has passed.
    """

    name: str
    import_time: float | None
    context_time: float | None
    load_time: float
    first_call_time: float
    compilations: tuple[Compilation, ...] | None
    steady_times: tuple[float, ...]

    @property
    def compile_time(self) -> float | None:
        """Seconds of the first call that CuPy spent on compiling; None if they aren't known."""
        if self.compilations is None:
            return None
        return compile_time(self.compilations, self.first_call_time)

    @property
    def total_time(self) -> float:
        """Seconds from the bare interpreter to the end of the first call."""
        once = (self.import_time or 0.0) + (self.context_time or 0.0)
        return once + self.load_time + self.first_call_time

    @property
    def steady_time(self) -> float:
        """Median of the steady calls, in seconds."""
        return median(self.steady_times)

    def __str__(self) -> str:
        from tabulate import tabulate

        from gpubench.render.units import format_time

        compile_time = self.compile_time
        rows = [
            ("import CuPy", self.import_time),
            ("create the CUDA context", self.context_time),
            ("load function and arguments", self.load_time),
            ("compile", compile_time),
            (
                "first call" if compile_time is None else "first call, the rest",
                self.first_call_time - (compile_time or 0.0),
            ),
            ("total", self.total_time),
            ("steady call", self.steady_time),
        ]
        cells = [(label, format_time(time)) for label, time in rows if time is not None]
        table = tabulate(cells, tablefmt="plain", disable_numparse=True, colalign=("left", "right"))
        return f"cold start of {self.name}\n{table}"


def cold_start(
    func: Callable[..., object],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> ColdStart:
    """Measure what the first call of a function costs in a fresh process with empty caches.

    The function is called there up to 21 times, with what it changes in its arguments left
    changed; what it prints is not shown. It may come from a notebook or a prompt. Environment
    variables are inherited, except that the caches of CuPy (``CUPY_CACHE_DIR``) and of the CUDA
    driver (``CUDA_CACHE_PATH``) are new folders, which are removed afterwards.

    Parameters
    ----------
    func : callable
        What to call. Anything that cloudpickle can send to another process.
    args : tuple or list
        Its positional arguments.
    kwargs : mapping, optional
        Its keyword arguments.

    Returns
    -------
    ColdStart

    Raises
    ------
    ArgumentError
        If `func` can't be called, or it and its arguments can't be sent to another process.
    MissingExtraError
        If cloudpickle isn't installed.
    GpubenchError
        If the process dies, or can't load `func` and its arguments; the message has its last
        words.
    Exception
        Whatever `func` raises, with the traceback of the fresh process as its cause.

    Examples
    --------
    >>> print(cold_start(cupy.linalg.norm, (a,)))  # doctest: +SKIP
    cold start of norm
    import CuPy                   412 ms
    create the CUDA context       198 ms
    load function and arguments  1.31 ms
    compile                       874 ms
    first call, the rest         2.75 ms
    total                         1.49 s
    steady call                  31.8 us
    """
    from gpubench import arguments

    name = arguments.callable_name(func)
    call = (
        arguments.synchronous("func", func),
        arguments.positional(args),
        arguments.keywords(kwargs),
    )
    with TemporaryDirectory(prefix="gpubench-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        (folder / _CALL).write_bytes(pickle.dumps((name, pickled("cold_start()", name, call))))
        status = _run_fresh_process(folder)
        if not (folder / _OUTCOME).exists():
            words = (folder / _OUTPUT).read_text(errors="replace")
            raise GpubenchError(obituary(status, words))
        return _unpickled((folder / _OUTCOME).read_bytes())


def _run_fresh_process(folder: Path) -> int:
    """Let a fresh process measure the call that lies in the folder; return its exit status."""
    caches = {"CUPY_CACHE_DIR": str(folder / "cupy"), "CUDA_CACHE_PATH": str(folder / "cuda")}
    with (folder / _OUTPUT).open("wb") as output:
        return subprocess.run(
            command("gpubench.startup:_serve", str(folder)),
            env=os.environ | caches,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode


def _unpickled(data: bytes) -> ColdStart:
    outcome, story = pickle.loads(data)
    cause = GpubenchError(f"in the fresh process:\n{story}")
    try:
        outcome = pickle.loads(outcome)
    except Exception:  # noqa: BLE001  # the traceback says all that there is
        raise cause from None
    if isinstance(outcome, Exception):
        raise outcome from cause
    result: ColdStart = outcome
    return result


def _serve(folder_name: str) -> None:
    """Measure the call that lies in a folder and leave the outcome there: the fresh process."""
    import cloudpickle

    folder = Path(folder_name)
    try:
        name, data = pickle.loads((folder / _CALL).read_bytes())
        outcome: ColdStart | Exception = _measure(name, data)
        story = ""
    except Exception as error:  # noqa: BLE001  # it is the caller's, and goes back there
        outcome, story = error, traceback.format_exc()
    try:
        sent = cloudpickle.dumps(outcome)
    except Exception:  # noqa: BLE001  # an exception that holds a lock, say
        sent = b""
    # In two layers: the story can be read even where the exception can't.
    (folder / _OUTCOME).write_bytes(pickle.dumps((sent, story)))


def _measure(name: str, data: bytes) -> ColdStart:
    stopwatch = _Stopwatch()
    sys.meta_path.insert(0, ImportHook("cupy", stopwatch.import_cupy))
    (func, args, kwargs), load_time = stopwatch.time(lambda: cast(Call, unpickled(data)))

    def call() -> None:
        func(*args, **kwargs)

    with watch_compilations() as log:
        _, first_call_time = stopwatch.time(call)
    steady_times: list[float] = []
    while len(steady_times) < _MAX_STEADY_CALLS and sum(steady_times) < _MAX_STEADY_TIME:
        steady_times.append(stopwatch.time(call)[1])
    return ColdStart(
        name=name,
        import_time=stopwatch.import_time,
        context_time=stopwatch.context_time,
        load_time=load_time,
        first_call_time=first_call_time,
        compilations=None if stopwatch.import_time is None or log.reason else tuple(log),
        steady_times=tuple(steady_times),
    )


class _Stopwatch:
    """Times actions until the GPU is done, and apart from them CuPy's import and its context."""

    def __init__(self) -> None:
        self.import_time: float | None = None
        self.context_time: float | None = None

    def import_cupy(self, load: Load, cupy: ModuleType) -> None:
        start = perf_counter()
        load(cupy)
        self.import_time = perf_counter() - start
        start = perf_counter()
        try:
            cupy.cuda.runtime.free(0)
        except RuntimeError:  # no driver, or no device
            return
        self.context_time = perf_counter() - start

    def time(self, action: Callable[[], T]) -> tuple[T, float]:
        """Return what `action` does and its seconds, less those of CuPy's import and context."""
        before = self._time_apart()
        start = perf_counter()
        made = action()
        self._synchronize()
        return made, perf_counter() - start - (self._time_apart() - before)

    def _time_apart(self) -> float:
        return (self.import_time or 0.0) + (self.context_time or 0.0)

    def _synchronize(self) -> None:
        torch = sys.modules.get("torch")
        if self.context_time is not None:
            sys.modules["cupy"].cuda.runtime.deviceSynchronize()
        elif torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()
