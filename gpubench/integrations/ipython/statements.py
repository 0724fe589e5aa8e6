"""Statements typed at IPython's prompt, and where one ends and the next begins."""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gpubench.statement import STATEMENT, compile_statement, run_setup

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_LABEL_WIDTH = 50
_DASHES = re.compile("-{3,}")

Scope = dict[str, Any]
"""The variables where a magic was called: the user's, or those of a function."""


def compiled(
    shell: InteractiveShell, sources: list[str], scope: Scope, setup: str = ""
) -> list[Callable[[], object]]:
    """Return statements as functions that find the user's variables, and don't change them.

    Parameters
    ----------
    shell : InteractiveShell
        Translates what is IPython's own, such as ``!ls``.
    sources : list of str
        The statements.
    scope : dict
        Their variables.
    setup : str
        Run once before them, for the names that they are to find.
    """
    namespace = {**shell.user_ns, **scope}
    if setup:
        run_setup(shell.transform_cell(setup), namespace)
    return [
        compile_statement(shell.transform_cell(source), namespace, f"<statement {number}>")
        for number, source in enumerate(sources, 1)
    ]


def label(source: str) -> str:
    """Return a statement in a line, shortened."""
    first, _, more = source.strip().partition("\n")
    if len(first) <= _LABEL_WIDTH:
        return f"{first} …" if more else first
    return f"{first[:_LABEL_WIDTH]}…"


def has_value(shell: InteractiveShell, source: str) -> bool:
    """Whether the last statement is an expression."""
    body = ast.parse(shell.transform_cell(source), STATEMENT).body
    return bool(body) and isinstance(body[-1], ast.Expr)


def split(shell: InteractiveShell, source: str) -> list[str]:
    """Return the parts between ``;;`` or lines of dashes; without those, each statement.

    Neither counts in a string or a comment. Statements of one line stay together.
    """
    separators = [*_separators(source)]
    if separators:
        begins = [0, *(end for _, end in separators)]
        ends = [*(begin for begin, _ in separators), len(source)]
        head, *tail = (source[begin:end] for begin, end in zip(begins, ends, strict=True))
        # The blanks between a separator and what follows it in its line are no indentation.
        parts = [head, *(part.lstrip(" \t") for part in tail)]
        return [part for part in parts if part.strip()]
    translated = shell.transform_cell(source)
    spans: list[tuple[int, int]] = []
    for node in ast.parse(translated, STATEMENT).body:
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        if spans and first <= spans[-1][1]:
            first, _ = spans.pop()
        spans.append((first, node.end_lineno or first))
    lines = translated.splitlines(keepends=True)
    return ["".join(lines[first - 1 : last]) for first, last in spans]


def _separators(source: str) -> Iterator[tuple[int, int]]:
    """Yield where each separator begins and ends."""
    before = ("", 0)
    begins = [0, *itertools.accumulate(map(len, io.StringIO(source)))]
    with suppress(tokenize.TokenError, SyntaxError):  # compiling says what is wrong
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            line_begin = begins[token.start[0] - 1]
            begin, end = line_begin + token.start[1], line_begin + token.end[1]
            is_first = not token.line[: token.start[1]].strip()
            if token.string == "-" and is_first and _DASHES.fullmatch(token.line.strip()):
                yield begin, begin + len(token.line.strip())
            elif token.string == ";" and before == (";", begin):
                yield begin - 1, end
            before = token.string, end
