"""Context managers that cover a body: a function's, whatever its kind, and a failing one's."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from gpubench.arguments import callable_name, shown
from gpubench.errors import ArgumentError

AnyCallable = Callable[..., Any]
F = TypeVar("F", bound=AnyCallable)


class Covering(AbstractContextManager[object]):
    """A context manager that can be entered again while it is open, and decorates functions.

    The body of a coroutine function, a generator or an asynchronous generator runs after the
    call: its context opens when it begins, and closes when it ends, raises or is closed.
    """

    def _is_idle(self) -> bool:
        """Whether entering and leaving do nothing, as far as is known."""
        return False

    def __call__(self, func: F) -> F:
        """Return `func` with the context open while the body of each call runs.

        The result is of the same kind as `func`.

        Raises
        ------
        ArgumentError
            If `func` isn't callable.
        """
        return _cover(func, self)


def settle(action: Callable[[], object], body_error: BaseException | None) -> None:
    """Do what closes a context; if that fails after the body failed, the body's error wins."""
    try:
        action()
    except Exception as error:
        if body_error is None:
            raise
        if hasattr(body_error, "add_note"):  # Python 3.11
            body_error.add_note(f"Leaving the block failed too: {error!r}")


def _cover(func: F, context: Covering) -> F:
    if isinstance(func, (staticmethod, classmethod)):
        return cast(F, type(func)(_cover(func.__func__, context)))
    if not callable(func):
        raise ArgumentError(f"only a callable can be decorated, got {shown(func)}")
    wrapper = _wrap_for(func)(func, context)
    wrapper.__name__ = wrapper.__qualname__ = callable_name(func)
    return cast(F, functools.update_wrapper(wrapper, func))


def _wrap_for(func: AnyCallable) -> Callable[[AnyCallable, Covering], AnyCallable]:
    while isinstance(func, functools.partial):
        func = func.func
    for body in (func, type(func).__call__):
        if inspect.iscoroutinefunction(body):
            return _coroutine
        if inspect.isgeneratorfunction(body):
            return _generator
        if inspect.isasyncgenfunction(body):
            return _async_generator
    return _call


def _call(func: AnyCallable, context: Covering) -> AnyCallable:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if context._is_idle():
            return func(*args, **kwargs)
        with context:
            return func(*args, **kwargs)

    return wrapper


def _coroutine(func: AnyCallable, context: Covering) -> AnyCallable:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with context:
            return await func(*args, **kwargs)

    return wrapper


def _generator(func: AnyCallable, context: Covering) -> AnyCallable:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with context:
            return (yield from func(*args, **kwargs))

    return wrapper


def _async_generator(func: AnyCallable, context: Covering) -> AnyCallable:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with context:
            body = func(*args, **kwargs)
            # What `yield from` does for generators has no counterpart in asynchronous ones.
            try:
                item = await body.__anext__()
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        await body.aclose()
                        raise
                    except BaseException as error:  # noqa: BLE001  # it is the body's to handle
                        item = await body.athrow(error)
                    else:
                        item = await body.asend(sent)
            except StopAsyncIteration:
                return

    return wrapper
