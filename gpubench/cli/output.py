"""What commands print: JSON documents, and colours where they are wanted."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from typing import TextIO

_CODES = {"red": 31, "green": 32, "yellow": 33, "bold": 1}


def add_json(parser: argparse._ActionsContainer) -> None:
    """Give a command the option ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")


def print_json(document: object) -> None:
    """Print a value as strict JSON, paths as text; what isn't a number there is an error."""
    print(json.dumps(document, indent=2, allow_nan=False, default=os.fspath))


def colour(text: str, name: str, stream: TextIO | None = None) -> str:
    """Return a text in a colour, where the stream shows colours and the user wants them.

    Parameters
    ----------
    text : str
        What is to be printed.
    name : {"red", "green", "yellow", "bold"}
        How.
    stream : file, optional
        Where; standard output by default.

    Returns
    -------
    str
        The text as it is if ``NO_COLOR`` is set (https://no-color.org) or the stream isn't a
        terminal.
    """
    stream = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    return f"\33[{_CODES[name]}m{text}\33[0m"


def print_traceback(error: BaseException, beginning: str | tuple[str, ...]) -> bool:
    """Print an error of the user's code on standard error, without the calls that led there.

    Parameters
    ----------
    error : BaseException
        What was raised.
    beginning : str or tuple of str
        The files in which the user's code begins.

    Returns
    -------
    bool
        Whether it is the user's: raised in or below these files, or by their syntax.
    """
    files = (beginning,) if isinstance(beginning, str) else beginning
    entry = error.__traceback__
    while entry is not None and entry.tb_frame.f_code.co_filename not in files:
        entry = entry.tb_next
    if entry is None and not (isinstance(error, SyntaxError) and error.filename in files):
        return False
    traceback.print_exception(type(error), error, entry)
    return True
