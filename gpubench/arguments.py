"""Checks of arguments that several functions share; each names the argument and its value."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from gpubench.errors import ArgumentError

_SHOWN_LENGTH = 100


def shown(value: object) -> str:
    """Return `value` as a message shows it: its repr in one line, the end left out if long."""
    line = re.sub(r"\s*\n\s*", " ", repr(value))
    return line if len(line) <= _SHOWN_LENGTH else f"{line[: _SHOWN_LENGTH - 1]}…"


def whole_number(name: str, value: SupportsIndex, *, at_least: int) -> int:
    """Return `value` as an int; Python's and NumPy's integers will do, bools won't."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be an integer, got {shown(value)}") from None
    if number < at_least:
        raise ArgumentError(f"{name} must be at least {at_least}, got {shown(value)}")
    return number


def finite_number(
    name: str, value: SupportsFloat, *, at_least: float | None = None, above: float | None = None
) -> float:
    """Return `value` as a finite float within the bounds."""
    number = real_number(name, value, at_least=at_least)
    if math.isinf(number):
        raise ArgumentError(f"{name} must be finite, got {shown(value)}")
    if above is not None and number <= above:
        raise ArgumentError(f"{name} must be above {above}, got {shown(value)}")
    return number


def real_number(name: str, value: SupportsFloat, *, at_least: float | None = None) -> float:
    """Return `value` as a float that isn't NaN; strings and bools won't do."""
    try:
        if isinstance(value, (bool, np.bool_, str, bytes)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a number, got {shown(value)}") from None
    except OverflowError:
        raise ArgumentError(f"{name} is too large for a float") from None
    if math.isnan(number):
        raise ArgumentError(f"{name} must be a number, got NaN")
    if at_least is not None and number < at_least:
        raise ArgumentError(f"{name} must be at least {at_least}, got {shown(value)}")
    return number


def share(name: str, value: str) -> float:
    """Return the number above zero that a text such as ``"5%"`` or ``"0.05"`` stands for."""
    number, percent, rest = value.strip().partition("%")
    try:
        if rest:
            raise ValueError
        parsed = float(number) / (100 if percent else 1)
    except ValueError:
        raise ArgumentError(
            f"{name} must be a number such as 5% or 0.05, got {shown(value)}"
        ) from None
    return finite_number(name, parsed, above=0)


def text(name: str, value: object) -> str:
    """Return `value` if it is a string."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a string, got {shown(value)}")
    return value


def one_of(name: str, value: str, choices: Sequence[str]) -> str:
    """Return `value` if it is among the choices."""
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ArgumentError(f"{name} must be one of {listed}; got {shown(value)}")
    return value


def positional(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the positional arguments of the timed call as a tuple."""
    if isinstance(args, (list, tuple)):
        return tuple(args)
    kind = type(args).__name__
    raise ArgumentError(
        f"args must be a tuple or a list of positional arguments, got {kind}; "
        "for one argument x, did you mean (x,)?"
    )


def keywords(kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the keyword arguments of the timed call as a dict."""
    if kwargs is None:
        return {}
    if not isinstance(kwargs, Mapping):
        raise ArgumentError(f"kwargs must be a mapping or None, got {type(kwargs).__name__}")
    wrong = [key for key in kwargs if not isinstance(key, str)]
    if wrong:
        raise ArgumentError(f"kwargs must have names as keys, got {wrong[0]!r}")
    return dict(kwargs)


def synchronous(name: str, func: Callable[..., object]) -> Callable[..., object]:
    """Return `func` if calling it does its work.

    Raises
    ------
    ArgumentError
        If it isn't callable, or if a call would only make a coroutine or a generator; the
        message says what to pass instead.
    """
    if not callable(func):
        raise ArgumentError(
            f"{name} must be callable, got {shown(func)}; "
            "did you mean f or lambda: f(x), instead of f(x)?"
        )
    inner: Any = func
    while isinstance(inner, functools.partial):
        inner = inner.func
    for candidate in (inner, getattr(type(inner), "__call__", None)):  # noqa: B004  # its code matters
        label = callable_name(func)
        if inspect.isasyncgenfunction(candidate) or inspect.isgeneratorfunction(candidate):
            raise ArgumentError(
                f"{name}={label} is a generator function: calling it runs nothing of its body; "
                "pass a function that consumes it, for example lambda: list(f())"
            )
        if inspect.iscoroutinefunction(candidate):
            raise ArgumentError(
                f"{name}={label} is a coroutine function: calling it runs nothing of its body; "
                "pass a function that runs it, for example lambda: asyncio.run(f())"
            )
    return func


def finished(name: str, returned: object) -> None:
    """Check that what a function returned isn't its work still to be done.

    Raises
    ------
    ArgumentError
        If it is a coroutine, another awaitable object or a generator.
    """
    for is_lazy, kind, remedy in (
        (inspect.iscoroutine, "coroutine", "lambda: asyncio.run(f())"),
        (inspect.isawaitable, "awaitable object", "one that runs an event loop until it is done"),
        (inspect.isgenerator, "generator", "lambda: list(f())"),
        (inspect.isasyncgen, "asynchronous generator", "one that consumes it in asyncio.run()"),
    ):
        if is_lazy(returned):
            if inspect.iscoroutine(returned):
                returned.close()  # so that nobody is told that it was never awaited
            raise ArgumentError(
                f"{name} returned a {kind}, whose body has not run; pass a function that runs it, "
                f"for example {remedy}"
            )


def callable_name(func: object) -> str:
    """Return a readable name for any callable: a partial's function, an instance's class."""
    while isinstance(func, functools.partial):
        func = func.func
    name = getattr(func, "__name__", None)
    return name if isinstance(name, str) and name else type(func).__name__


def unique_name(name: str, taken: Container[str]) -> str:
    """Return `name`, numbered if it is taken."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}#{number}"
    return candidate


def device_ids(devices: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """Return device ids as a tuple of distinct ints, None for the current device."""
    if devices is None:
        return None
    if isinstance(devices, (str, bytes, Mapping)):
        raise ArgumentError(f"devices must be an int or a sequence of ints, got {shown(devices)}")
    try:
        items = list(devices)  # type: ignore[arg-type]
    except TypeError:
        items = [devices]  # type: ignore[list-item]
    ids = tuple(whole_number("devices", item, at_least=0) for item in items)
    if not ids:
        raise ArgumentError("devices must name at least one device, got none")
    if len(set(ids)) < len(ids):
        raise ArgumentError(f"devices must not repeat a device, got {shown(devices)}")
    return ids
