"""Statements given as text, as functions to be timed."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, cast

STATEMENT, SETUP = "<statement>", "<setup>"
"""The file names that tracebacks show."""


def compile_statement(
    source: str, namespace: dict[str, Any], file: str = STATEMENT
) -> Callable[[], Any]:
    """Return a function that does what the statements say each time that it is called.

    Parameters
    ----------
    source : str
        One or more lines. If the last statement is an expression, the function returns its value.
    namespace : dict
        What the names stand for. Those that the statements assign are variables of the function,
        as fast as in any other; each call begins with the values that the namespace has for them
        now, and leaves those as they are.
    file : str
        The file name that tracebacks show.

    Raises
    ------
    SyntaxError
        If it isn't Python, or what can only stand in a function.
    """
    _remember(file, source)
    _compile(source, file)  # refuses `return`, which the function would allow
    body = ast.parse(source, file).body or [ast.Pass()]
    if isinstance(body[-1], ast.Expr):
        body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
    code = _function(body, file, namespace).__code__
    assigned = [name for name in (*code.co_varnames, *code.co_cellvars) if name in namespace]
    function = _function(body, file, namespace, assigned)
    function.__defaults__ = tuple(namespace[name] for name in assigned)
    return function


def run_setup(source: str, namespace: dict[str, Any], file: str = SETUP) -> None:
    """Run statements once, for the names that they leave in the namespace."""
    _remember(file, source)
    exec(_compile(source, file), namespace)


def _function(
    body: list[ast.stmt], file: str, namespace: dict[str, Any], parameters: Sequence[str] = ()
) -> FunctionType:
    module = ast.parse(f"def statement({', '.join(parameters)}): pass")
    cast(ast.FunctionDef, module.body[0]).body = body
    made: dict[str, FunctionType] = {}
    exec(_compile(ast.fix_missing_locations(module), file), namespace, made)
    return made["statement"]


def _compile(source: str | ast.Module, name: str) -> CodeType:
    return compile(source, name, "exec", dont_inherit=True)


def _remember(name: str, source: str) -> None:
    """Let tracebacks quote the source."""
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
