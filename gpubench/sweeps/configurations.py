"""The configurations of a sweep, in all the forms in which they may be given.

A configuration is a mapping from names to values: a function's arguments, one row of a table.
"""

from __future__ import annotations

import inspect
import itertools
import math
import reprlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import numpy as np

from gpubench.arguments import callable_name
from gpubench.errors import ArgumentError

Configuration = dict[str, object]

_UNKNOWN_SIGNATURE = inspect.Signature(
    [Parameter("arg", Parameter.VAR_POSITIONAL), Parameter("options", Parameter.VAR_KEYWORD)]
)
"""Taken for callables written in C that don't tell theirs."""


@dataclass(frozen=True, repr=False)
class Product:
    """All combinations of some values; `product` makes it. It can be iterated many times.

    Attributes
    ----------
    axes : mapping of str to tuple
        The values of each parameter.
    """

    axes: Mapping[str, tuple[object, ...]]

    def __iter__(self) -> Iterator[Configuration]:
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def __len__(self) -> int:
        return math.prod(map(len, self.axes.values()))

    def __repr__(self) -> str:
        axes = (
            f"{name}=[{', '.join(map(_value_text, values))}]" for name, values in self.axes.items()
        )
        return f"product({', '.join(axes)})"


def product(**values: Iterable[object] | object) -> Product:
    """Return all combinations of values, as configurations.

    Parameters
    ----------
    **values : iterable
        The values of each parameter. A string, a mapping or what can't be iterated is one value.

    Returns
    -------
    Product
        Dicts in the order of nested loops, the last parameter's values changing first.

    Raises
    ------
    ArgumentError
        If there is no parameter, or one without a value.

    Examples
    --------
    >>> from gpubench.sweeps.configurations import product
    >>> for configuration in product(n=[512, 1024], dtype="fp32"):
    ...     print(configuration)
    {'n': 512, 'dtype': 'fp32'}
    {'n': 1024, 'dtype': 'fp32'}
    """
    if not values:
        raise ArgumentError("product() needs the values of a parameter, such as n=[512, 1024]")
    axes = {name: _values(value) for name, value in values.items()}
    for name, axis in axes.items():
        if not axis:
            raise ArgumentError(f"product(): {name} must have at least one value, got none")
    return Product(axes)


def _values(given: Iterable[object] | object) -> tuple[object, ...]:
    if isinstance(given, (str, bytes, Mapping)):
        return (given,)
    try:
        values = iter(given)  # type: ignore[call-overload]
    except TypeError:
        return (given,)
    return tuple(values)


def configurations(func: Callable[..., object], configs: Iterable[object]) -> list[Configuration]:
    """Return a function's arguments in each configuration, by the names of its parameters.

    Parameters
    ----------
    func : callable
        Any callable.
    configs : iterable
        What to call it with, one element each time: a tuple or a list holds positional
        arguments, a mapping keyword arguments, and anything else is the only argument.

    Returns
    -------
    list of dict
        In the order given. Parameters that a configuration leaves out have their defaults, so
        all have the same keys. Only what ``*values`` takes up has keys by number (``values0``,
        ``values1``), and what ``**options`` takes up has its own keywords. A callable that
        doesn't tell its signature counts as one with ``(*arg, **options)``.

    Raises
    ------
    ArgumentError
        If `configs` is none of that or empty; or an element doesn't fit the signature or repeats
        another one: the message says which.
    """
    signature = signature_of(func)
    call = callable_name(func) + _signature_text(signature)
    rows: list[Configuration] = []
    seen: dict[Hashable, int] = {}
    for index, config in enumerate(_elements(configs)):
        shown = f"configs[{index}] = {reprlib.repr(config)}"
        row = _row(signature, config, shown, call)
        first = seen.setdefault(_identity(index, row), index)
        if first != index:
            raise ArgumentError(
                f"{shown} repeats configs[{first}]; each makes one row, so give it once, and take "
                "more samples by n_repeat"
            )
        rows.append(row)
    if not rows:
        raise ArgumentError("configs must hold at least one configuration, got none")
    return rows


def call_arguments(
    func: Callable[..., object], config: Mapping[str, object]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what to call a function with in a configuration.

    Parameters
    ----------
    func : callable
        The function that `configurations` was given.
    config : mapping
        One of the configurations that it returned.

    Returns
    -------
    args : tuple
        The positional arguments.
    kwargs : dict
        The keyword arguments.
    """
    signature = signature_of(func)
    left = dict(config)
    bound = inspect.BoundArguments(signature, OrderedDict())
    for name, parameter in signature.parameters.items():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            numbered = itertools.takewhile(left.__contains__, _numbered(name))
            bound.arguments[name] = tuple(left.pop(key) for key in numbered)
        elif parameter.kind is Parameter.VAR_KEYWORD:
            bound.arguments[name] = left
        elif name in left:
            bound.arguments[name] = left.pop(name)
    return bound.args, bound.kwargs


def signature_of(func: Callable[..., object]) -> inspect.Signature:
    """Return the signature of a callable; ``(*arg, **options)`` if it doesn't tell."""
    try:
        return inspect.signature(func)
    except (TypeError, ValueError):
        return _UNKNOWN_SIGNATURE


def _elements(configs: Iterable[object]) -> Iterator[object]:
    wanted = (
        "configs must be an iterable of configurations, such as [(512,), (1024,)] or "
        "product(n=[512, 1024])"
    )
    if isinstance(configs, (str, bytes)):
        raise ArgumentError(f"{wanted}; got {configs!r}, did you mean [{configs!r}]?")
    if isinstance(configs, Mapping):
        raise ArgumentError(
            f"{wanted}; got a mapping, did you mean [{{...}}] for one configuration, or "
            "product(...) for all combinations?"
        )
    try:
        return iter(configs)
    except TypeError:
        raise ArgumentError(f"{wanted}; got {configs!r}") from None


def _row(signature: inspect.Signature, config: object, shown: str, call: str) -> Configuration:
    args: Sequence[object] = ()
    kwargs: dict[str, object] = {}
    if isinstance(config, Product):
        raise ArgumentError(
            f"{shown} is a product, not a configuration; unpack it: [*product(...)]"
        )
    if isinstance(config, Mapping):
        wrong = [key for key in config if not isinstance(key, str)]
        if wrong:
            raise ArgumentError(f"{shown} must have names as keys, got {wrong[0]!r}")
        kwargs = dict(config)
    elif isinstance(config, (tuple, list)):
        args = config
    else:
        args = (config,)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        hint = ""
        if isinstance(config, (tuple, list)) and _takes(signature, config):
            hint = "; for one argument that is a sequence, write ((...),)"
        raise ArgumentError(f"{shown} doesn't fit {call}: {error}{hint}") from None
    bound.apply_defaults()
    return _flattened(signature, bound.arguments, shown, call)


def _takes(signature: inspect.Signature, value: object) -> bool:
    """Whether the value would do as the only argument."""
    try:
        signature.bind(value)
    except TypeError:
        return False
    return True


def _flattened(
    signature: inspect.Signature, arguments: Mapping[str, Any], shown: str, call: str
) -> Configuration:
    """Give what ``*values`` and ``**options`` took up keys of their own."""
    row: Configuration = {}
    next_number = ""  # would be taken for one of the numbered ones
    for name, value in arguments.items():
        kind = signature.parameters[name].kind
        named = {name: value}
        if kind is Parameter.VAR_POSITIONAL:
            named = dict(zip(_numbered(name), value, strict=False))
        elif kind is Parameter.VAR_KEYWORD:
            named = value
        twice = [key for key in named if key in row or key == next_number]
        if twice:
            raise ArgumentError(f"{shown} gives {call} two arguments by the name of {twice[0]!r}")
        row.update(named)
        if kind is Parameter.VAR_POSITIONAL:
            next_number = f"{name}{len(value)}"
    return row


def _numbered(name: str) -> Iterator[str]:
    return (f"{name}{number}" for number in itertools.count())


def _identity(index: int, row: Configuration) -> Hashable:
    """Return what is equal for equal configurations, and only for them.

    One that can't be hashed, such as an array, is like no other.
    """
    identity = tuple((name, _typed(value)) for name, value in sorted(row.items()))
    try:
        hash(identity)
    except TypeError:
        return index
    return identity


def _typed(value: object) -> tuple[type, object]:
    """Tell 1 from 1.0 and from True, inside of tuples too."""
    return type(value), tuple(map(_typed, value)) if isinstance(value, tuple) else value


def _signature_text(signature: inspect.Signature) -> str:
    """Return the signature without annotations."""
    parameters = [
        parameter.replace(annotation=Parameter.empty) for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=Parameter.empty))


def _value_text(value: object) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
