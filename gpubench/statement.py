"""Statements given as text, as functions to be timed."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from types import CodeType
from typing import Any, cast

STATEMENT, SETUP = "<statement>", "<setup>"
"""The file names that tracebacks show."""


def compile_statement(source: str, namespace: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that does what the statements say each time that it is called.

    Parameters
    ----------
    source : str
        One or more lines. If the last statement is an expression, the function returns its value.
    namespace : dict
        What the names stand for. Those that the statements assign are kept there, so that
        ``x += 1`` goes on from call to call.

    Raises
    ------
    SyntaxError
        If it isn't Python, or what can only stand in a function.
    """
    _remember(STATEMENT, source)
    _compile(source, STATEMENT)  # refuses `return`, which the function would allow
    tree = ast.parse(source, STATEMENT)
    body = tree.body or [ast.Pass()]
    if isinstance(body[-1], ast.Expr):
        body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
    annotated = [node.target for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    local = {target.id for target in annotated if isinstance(target, ast.Name)}  # by the grammar
    assigned = set(_function(body, {}).__code__.co_varnames) - local
    if assigned:
        body.insert(0, ast.Global(sorted(assigned)))
    return _function(body, namespace)


def run_setup(source: str, namespace: dict[str, Any]) -> None:
    """Run statements once, for the names that they leave in the namespace."""
    _remember(SETUP, source)
    exec(_compile(source, SETUP), namespace)


def _function(body: list[ast.stmt], namespace: dict[str, Any]) -> Callable[[], Any]:
    module = ast.parse("def statement(): pass")
    cast(ast.FunctionDef, module.body[0]).body = body
    made: dict[str, Callable[[], Any]] = {}
    exec(_compile(ast.fix_missing_locations(module), STATEMENT), namespace, made)
    return made["statement"]


def _compile(source: str | ast.Module, name: str) -> CodeType:
    return compile(source, name, "exec", dont_inherit=True)


def _remember(name: str, source: str) -> None:
    """Let tracebacks quote the source."""
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
