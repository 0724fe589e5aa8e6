"""An arm in a process of its own, driven by turns with the others.

The parent sends a command and waits for the answer, over the child's standard input and output;
what the timed function prints goes to a file instead, whose end is quoted if the process dies.
"""

from __future__ import annotations

import functools
import os
import pickle
import select
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO, Any, cast

from gpubench.accelerator import VARIABLE, parse_accelerators, use_accelerators
from gpubench.activity.kernels import KernelNames
from gpubench.bench import Bench
from gpubench.comparison.arms import ArmError, LocalArm, Unsent
from gpubench.cutensor import preload_cutensor
from gpubench.errors import GpubenchError, UnsupportedError
from gpubench.processes import command, kill, obituary, unpickled
from gpubench.result import BenchmarkResult
from gpubench.session import Budget

_POLL_TIME = 0.2

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Order:
    """What a worker is to measure.

    Attributes
    ----------
    name : str
        The arm's name.
    setting : str
        ``CUPY_ACCELERATORS`` for the worker.
    call : bytes
        The function, its arguments and its setup, pickled.
    method, cache : str
        Arguments of `Bench`.
    """

    name: str
    setting: str
    call: bytes
    method: str
    cache: str


class WorkerArm:
    """The parent's end.

    Parameters
    ----------
    order : Order
        What to measure. The process is started at once, and ended by `close`.
    """

    def __init__(self, order: Order) -> None:
        self.name = order.name
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        self._process = subprocess.Popen(
            command("gpubench.comparison.worker:serve"),
            env=os.environ | {VARIABLE: order.setting},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            bufsize=0,  # so that select() sees what has come
            # Ctrl-C is for the parent alone
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._is_owed = False
        self._order = order
        self._problem: GpubenchError | None = None

    def load(self) -> None:
        """Wait until the function is loaded there; if it can't be, `prepare` will say so."""
        self._send(self._order)
        try:
            self._ask("load")
        except GpubenchError as error:
            self._problem = error

    def prepare(self, n_warmup: int, budget: Budget) -> float:
        """Warm up there and choose the timer."""
        if self._problem is not None:
            raise self._problem
        return cast(float, self._ask("prepare", n_warmup, budget.left()))

    def returned(self) -> object:
        """Make the call there and return what it returned."""
        return self._ask("returned")

    def take_block(self, n: int) -> None:
        """Take a block of samples there."""
        self._ask("take_block", n)

    def kernels(self) -> KernelNames:
        """Return the kernels that a call runs there."""
        return cast(KernelNames, self._ask("kernels"))

    def finish(self) -> BenchmarkResult:
        """Return what was measured there."""
        return cast(BenchmarkResult, self._ask("finish"))

    def close(self) -> None:
        """End the process."""
        kill(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                cast(IO[bytes], pipe).close()
        self._process.wait()
        self._output.close()

    def _ask(self, method: str, *arguments: object) -> object:
        if self._is_owed:  # Ctrl-C came before the answer
            self._receive()
        self._send((method, arguments))
        answer = self._receive()
        if isinstance(answer, GpubenchError):
            raise answer
        return answer

    def _receive(self) -> object:
        self._is_owed = True
        pipe = cast(IO[bytes], self._process.stdout)
        if os.name == "posix":  # a child that was forked there may keep the pipe open
            while not select.select([pipe], [], [], _POLL_TIME)[0]:
                if self._process.poll() is not None:
                    raise ArmError(self._obituary())
        frame = _read_frame(pipe)
        if frame is None:
            raise ArmError(self._obituary())
        self._is_owed = False
        try:
            return pickle.loads(frame)
        except Exception as error:  # noqa: BLE001  # a class's own unpickling may do anything
            return Unsent(f"can't be loaded here ({type(error).__name__}: {error})")

    def _send(self, message: object) -> None:
        with suppress(OSError):  # it has died; why, the missing answer will show
            _write_frame(cast(IO[bytes], self._process.stdin), pickle.dumps(message))

    def _obituary(self) -> str:
        if self._process.poll() is None:  # it lives on with its pipe closed
            kill(self._process)
        status = self._process.wait()
        self._output.seek(0)
        return obituary(status, self._output.read().decode(errors="replace"))


def _write_frame(pipe: IO[bytes], content: bytes) -> None:
    frame = memoryview(_LENGTH.pack(len(content)) + content)
    while frame:
        frame = frame[pipe.write(frame) :]
    pipe.flush()


def _read_frame(pipe: IO[bytes]) -> bytes | None:
    """Return what `_write_frame` wrote; None if the other end has closed."""
    head = _read(pipe, _LENGTH.size)
    return None if head is None else _read(pipe, _LENGTH.unpack(head)[0])


def _read(pipe: IO[bytes], n: int) -> bytes | None:
    parts = []
    while n:
        part = pipe.read(n)  # an unbuffered pipe may give less
        if not part:
            return None
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def serve() -> None:
    """Obey the parent: the worker's end."""
    commands = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # for as long as we live
    order: Order = pickle.loads(_read_frame(commands) or b"")
    with ExitStack() as stack:
        arm: LocalArm
        while (frame := _read_frame(commands)) is not None:
            method, arguments = pickle.loads(frame)
            answer: object
            try:
                if method == "load":
                    arm, answer = _make_arm(order, stack), None
                else:
                    answer = _obey(arm, method, arguments)
            except UnsupportedError as error:
                answer = error
            except Exception as error:  # noqa: BLE001  # the caller's function may raise anything
                answer = ArmError(f"{type(error).__name__}: {error}")
            _write_frame(answers, _picklable(answer))


def _make_arm(order: Order, stack: ExitStack) -> LocalArm:
    preload_cutensor()
    bench = stack.enter_context(Bench(method=order.method, cache=order.cache))
    wanted = parse_accelerators(order.setting) if bench.platform.name == "cuda" else ()
    switch = functools.partial(use_accelerators, *wanted)
    with switch():
        func, args, kwargs, setup = cast(tuple[Any, ...], unpickled(order.call))
    return LocalArm(order.name, bench, bench.session(func, args, kwargs, setup), switch)


def _obey(arm: LocalArm, method: str, arguments: tuple[Any, ...]) -> object:
    if method == "prepare":
        n_warmup, seconds = arguments
        return arm.prepare(n_warmup, Budget(seconds))
    act: Callable[..., object] = getattr(arm, method)
    return act(*arguments)


def _picklable(answer: object) -> bytes:
    import cloudpickle

    try:
        data: bytes = cloudpickle.dumps(answer)
    except Exception as error:  # noqa: BLE001  # what a function returns can be anything
        data = pickle.dumps(Unsent(f"can't be sent back ({type(error).__name__}: {error})"))
    return data
