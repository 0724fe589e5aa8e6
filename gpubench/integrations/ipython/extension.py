"""The magics' way into IPython and out again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpubench.errors import GpubenchError
from gpubench.integrations.ipython import magics
from gpubench.statement import SETUP

if TYPE_CHECKING:
    from types import TracebackType

    from IPython.core.interactiveshell import InteractiveShell

_FILES = ("<statement ", SETUP)
"""How the names begin of the files in which tracebacks place the user's statements."""

_MAGICS: dict[str, tuple[Callable[..., object], str]] = {
    "gpu_timeit": (magics.gpu_timeit, "line_cell"),
    "gpu_compare": (magics.gpu_compare, "line_cell"),
    "gpu_trace": (magics.gpu_trace, "line_cell"),
    "accelerators": (magics.accelerators, "line"),
}


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Add gpubench's magics to IPython; it is what ``%load_ext gpubench`` calls.

    Parameters
    ----------
    ipython : IPython.core.interactiveshell.InteractiveShell
        The shell.
    """
    from IPython.core.magic import needs_local_scope, no_var_expand

    for name, (function, kind) in _MAGICS.items():
        magic = needs_local_scope(no_var_expand(_bound(function, ipython)))
        ipython.register_magic_function(magic, kind, name)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """Take the magics away again, and undo what ``%accelerators`` has set."""
    for name in _MAGICS:
        for kind in ("line", "cell"):
            ipython.magics_manager.magics[kind].pop(name, None)
    magics.restore_accelerators()


def _bound(function: Callable[..., object], shell: InteractiveShell) -> Callable[..., object]:
    """Return a function as IPython calls magics, whose errors are as a user wants them."""

    @functools.wraps(function)
    def magic(line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> object:
        __tracebackhide__ = True  # IPython leaves such frames out
        scope = shell.user_ns if local_ns is None else local_ns
        try:
            return function(shell, line, cell, scope)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # whatever it raises
            shown = _as_shown(error)
        raise shown

    return magic


def _as_shown(error: BaseException) -> BaseException:
    """Return an error without gpubench's own calls; a line, if it is of gpubench alone."""
    of_user = _of_user(error)
    if of_user is None and isinstance(error, GpubenchError):
        from IPython.core.error import UsageError

        in_a_line: BaseException = UsageError(str(error))
        return in_a_line
    if of_user is None and not isinstance(error, SyntaxError):
        return error
    return error.with_traceback(of_user)


def _of_user(error: BaseException) -> TracebackType | None:
    """Return the traceback from the user's statement on; None if it was raised elsewhere."""
    entry = error.__traceback__
    while entry is not None and not entry.tb_frame.f_code.co_filename.startswith(_FILES):
        entry = entry.tb_next
    return entry
