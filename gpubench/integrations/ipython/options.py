"""Options of a magic, which stand before a Python statement that may look like one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option of a magic.

    Attributes
    ----------
    keyword : str
        What its value is called.
    kind : str
        What the value must be, in words; empty for a flag, which has none.
    convert : callable
        Makes the value of its text; `ValueError` if it isn't of that kind.
    """

    keyword: str
    kind: str = ""
    convert: Callable[[str], Any] = str


_LIKE_OPTION = re.compile(r"(-[a-zA-Z]|--[a-z][a-z-]+)(?=[\s=]|$)")
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|\S+")


def parse(line: str, options: Mapping[str, Option]) -> tuple[dict[str, Any], str]:
    """Return the options at the beginning of a line, by keyword, and the statement after them.

    Options end at ``--``, or where something else begins: ``-x.sum()``, say, is a statement.

    Parameters
    ----------
    line : str
        What was typed after the magic's name.
    options : mapping of str to Option
        By name, ``"-n"`` or ``"--method"``. Values may be attached to it, as ``-n100`` and
        ``--method=graph``, and flags of a letter joined, as ``-oq``.

    Raises
    ------
    UsageError
        If a value is missing or of the wrong kind, or something looks like an option and isn't one.
    """
    found: dict[str, Any] = {}
    rest = line.strip()
    while rest.startswith("-"):
        word = rest.split(maxsplit=1)[0]
        after = rest[len(word) :].lstrip()
        if word == "--":
            return found, after
        flags = _flags(word, options)
        if flags:
            found.update(dict.fromkeys(flags, True))
            rest = after
            continue
        name, attached = _split(word, options)
        if not name:
            break
        text = attached or _value(after)
        found[options[name].keyword] = _converted(name, options[name], text)
        rest = after if attached else after[len(text) :].lstrip()
    _refuse_unknown(rest, options)
    return found, rest


def _refuse_unknown(rest: str, options: Mapping[str, Option]) -> None:
    """Refuse what begins like an option and is no Python."""
    from IPython.core.error import UsageError

    match = _LIKE_OPTION.match(rest)
    if match is None:
        return
    try:
        ast.parse(rest)
    except SyntaxError:
        raise UsageError(
            f"{match[0]} is no option: there are {', '.join(options)}, and -- before a statement "
            "that begins like one"
        ) from None


def _flags(word: str, options: Mapping[str, Option]) -> list[str]:
    """Return the keywords of the flags that a word consists of; none if it's something else."""
    names = [f"-{letter}" for letter in word[1:]]
    if all(name in options and not options[name].kind for name in names):
        return [options[name].keyword for name in names]
    return []


def _split(word: str, options: Mapping[str, Option]) -> tuple[str, str]:
    """Return an option's name and what is attached to it; no name if it's something else."""
    name, equals, attached = word.partition("=")
    if name in options and (not equals or name.startswith("--")):
        return name, attached
    name, attached = word[:2], word[2:]
    return (name, attached) if name in options and attached.isdigit() else ("", "")


def _value(text: str) -> str:
    match = _VALUE.match(text)
    return match[0] if match else ""


def _converted(name: str, option: Option, text: str) -> Any:
    from IPython.core.error import UsageError

    try:
        if not text:
            raise ValueError
        return option.convert(text.strip("'\""))
    except ValueError:
        raise UsageError(
            f"{name} needs {option.kind}, got {text or 'nothing'}; "
            "put -- before a statement that begins like an option"
        ) from None
