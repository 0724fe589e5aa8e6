"""A file's content as a JSON value, with an error that says where it can't be read."""

from __future__ import annotations

import gzip
import json
import re
import string
import zlib
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from gpubench.errors import ArgumentError

MAX_BYTES = 2**30
"""More is not read: it is no file of results, or would fill the memory."""

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Document:
    """What a JSON file holds.

    Attributes
    ----------
    path : str
        The file.
    value : object
        Its content. NaN and infinities, which aren't JSON but which some tools write, are kept.
    not_finite : str
        The first of those, and where it stands; empty if there is none.
    """

    path: str
    value: Any
    not_finite: str = ""


def read_document(path: str | PathLike[str]) -> Document:
    """Read a JSON file, which may be compressed by gzip.

    Parameters
    ----------
    path : str or path-like
        The file; in UTF-8, with or without a byte order mark.

    Raises
    ------
    ArgumentError
        If it can't be read, or isn't JSON; the message names the file and the place in it.
    """
    name = fspath(path)
    content = _content(name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArgumentError(
            f"{name!r} is not UTF-8 at byte {error.start}: it is no JSON, or in another encoding"
        ) from error
    if not text.strip():
        raise ArgumentError(f"{name!r} is empty")
    constants: list[str] = []

    def not_finite(constant: str) -> float:
        constants.append(constant)
        return float(constant)

    try:
        value = json.loads(text, parse_constant=not_finite)
    except json.JSONDecodeError as error:
        what = "ends too early" if _is_cut_off(text, error) else "is not JSON"
        raise ArgumentError(
            f"{name!r} {what} at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except RecursionError as error:
        raise ArgumentError(f"{name!r} is nested too deeply to be a file of results") from error
    except ValueError as error:  # an integer with more digits than Python converts
        raise ArgumentError(f"{name!r} holds a number that can't be read: {error}") from error
    return Document(name, value, _place_of(constants[0], text) if constants else "")


def short_message(error: Exception) -> str:
    """Return what an error says, cut off where it quotes a value at length."""
    message = str(error)
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]} ..."


_MAX_MESSAGE = 300


def _is_cut_off(text: str, error: json.JSONDecodeError) -> bool:
    """Whether a text would be JSON so far, if more of it came."""
    if error.msg.startswith("Unterminated string"):
        return True
    rest = text[error.pos :]
    return error.pos > 0 and error.msg != "Extra data" and not rest.strip(_OF_A_WORD)


_OF_A_WORD = string.whitespace + string.ascii_letters + string.digits + "+-."
"""Of what a number or a literal may be cut off to."""


def _content(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            is_compressed = file.peek(2)[:2] == _GZIP
            source = gzip.GzipFile(fileobj=file) if is_compressed else file
            content = source.read(MAX_BYTES + 1)
    except IsADirectoryError as error:
        raise ArgumentError(f"{name!r} is a folder, not a file of results") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ArgumentError(f"{name!r} is compressed, and damaged: {error}") from error
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise ArgumentError(f"{name!r} can't be read: {reason}") from error
    if len(content) > MAX_BYTES:
        raise ArgumentError(
            f"{name!r} is larger than {MAX_BYTES / 2**30:g} GiB, which no file of results is"
        )
    return bytes(content)


_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')


def _place_of(constant: str, text: str) -> str:
    """Return the first number that isn't finite with its line and column."""
    for match in _STRING_OR_CONSTANT.finditer(text):
        if match[0] == constant:
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start())
            return f"{constant} at line {line}, column {column}"
    return constant
