"""Fresh Python processes: what is sent there, and what is said of one that died.

A fresh process imports this module, which therefore leaves NumPy alone at its top level.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

from gpubench.errors import ArgumentError, GpubenchError, MissingExtraError

_N_LAST_WORDS = 20  # lines
_MAX_LINE = 500  # characters


def pickled(purpose: str, name: str, call: object) -> bytes:
    """Pickle a function with its arguments, even one from a notebook or a prompt.

    Raises
    ------
    MissingExtraError
        If cloudpickle isn't installed; `purpose` says what needs it.
    ArgumentError
        If it can't be pickled; `name` is the function's.
    """
    try:
        import cloudpickle
    except ImportError:
        raise MissingExtraError(purpose, "cloudpickle", "isolate") from None
    try:
        data: bytes = cloudpickle.dumps(call)
    except Exception as error:
        raise ArgumentError(
            f"func={name} and its arguments can't be sent to another process "
            f"({type(error).__name__}: {error}); let it make for itself what can't travel"
        ) from error
    return data


def unpickled(data: bytes) -> object:
    """Load what `pickled` made.

    Raises
    ------
    GpubenchError
        If that fails; the message says why.
    """
    try:
        return pickle.loads(data)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise GpubenchError(f"func and args can't be loaded: {problem}") from error


def command(entry: str, *arguments: str) -> list[str]:
    """Return the command line of a fresh interpreter that finds the same modules.

    Parameters
    ----------
    entry : str
        What to call there, as ``"module:function"``.
    *arguments : str
        Its arguments.
    """
    module, _, function = entry.partition(":")
    code = (
        "import json, sys\n"
        "sys.path[:] = json.loads(sys.argv.pop())\n"
        f"from {module} import {function}\n"
        f"{function}(*sys.argv[1:])\n"
    )
    search_path = json.dumps([os.fspath(entry) for entry in sys.path])
    return [sys.executable, "-X", "faulthandler", "-c", code, *arguments, search_path]


def kill(process: Popen[bytes]) -> None:
    """Kill a process, and what it has started where they are a session of their own."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def obituary(status: int, output: str) -> str:
    """Say how a process ended, by its exit status, and the end of what it printed."""
    signals = {number.value: number.name for number in signal.Signals}
    died = f"died of {signals.get(-status, f'signal {-status}')}"
    how = died if status < 0 else f"exited with status {status}"
    lines = output.rstrip().splitlines()[-_N_LAST_WORDS:]
    words = "".join(f"\n  {line[:_MAX_LINE]}" for line in lines) or " none"
    return f"the fresh process {how} before the measurement was done; its last words:{words}"
