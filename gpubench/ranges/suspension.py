"""Blocks that may be suspended half-way: who is in them, and what closes them.

Such blocks overlap, so that the one that closes is not always the last that opened. A context
variable would not tell them apart: generators share their caller's context, and an asynchronous
one is often closed in another context than the one it ran in.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from types import FrameType

Close = Callable[[], object]

_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR

# By the ids of a context manager and its owner: references would keep alive what is dropped.
_open: dict[tuple[int, int], list[Close]] = {}


def owner(frame: FrameType) -> int | None:
    """Identify who may be suspended in a ``with`` block of `frame`; None if nobody.

    Blocks of one owner nest. A generator owns its own; other code under an event loop leaves them
    to its task (or the loop, while no task runs), as even a plain function's block may be a
    coroutine's, by an `ExitStack`. Without asyncio, a coroutine owns its own.
    """
    flags = frame.f_code.co_flags
    if flags & _GENERATOR:
        return id(frame)
    loop = asyncio._get_running_loop()
    if loop is not None:
        return id(asyncio.current_task(loop) or loop)
    return id(frame) if flags & inspect.CO_COROUTINE else None


def remember(context: object, owner: int, close: Close) -> None:
    """Keep what closes the block of `context` that `owner` opens now."""
    _open.setdefault((id(context), owner), []).append(close)


def recall(context: object, owner: int) -> Close | None:
    """Take back what closes the innermost block of `context` that `owner` opened, if any.

    If it has opened none, the last that anybody has: a block may be left to another task, by an
    `AsyncExitStack` for example.
    """
    key = (id(context), owner)
    if key not in _open:
        others = [other for other in list(_open) if other[0] == id(context)]
        if not others:
            return None
        key = others[-1]
    closes = _open[key]
    close = closes.pop()
    if not closes:
        del _open[key]
    return close
