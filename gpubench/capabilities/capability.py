"""One thing that gpubench can use where it is there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpubench.errors import first_line


@dataclass(frozen=True)
class Capability:
    """Something that this machine has or lacks.

    Attributes
    ----------
    name : str
        What it is, in a word or two.
    available : bool or None
        Whether it can be used; None if that couldn't be tried, and `detail` says why.
    detail : str
        What was found, or what is wrong.
    remedy : str
        What to do next, a command where one will do; empty if there is nothing to be done.
    """

    name: str
    available: bool | None
    detail: str
    remedy: str = ""


def lacking(name: str, problem: object, remedy: str = "") -> Capability:
    """Return what isn't there; a command at the end of the text of `problem` is the remedy."""
    text = first_line(problem)
    if not remedy and (command := re.search(r"[;:] (pip install [^;]*)$", text)):
        text, remedy = text[: command.start()], command[1]
    return Capability(name, False, text, remedy)
