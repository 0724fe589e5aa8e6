"""``gpubench info``."""

from __future__ import annotations

import argparse
import platform
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import gpubench
from gpubench.cli.output import add_json, colour, print_json

if TYPE_CHECKING:
    from gpubench.capabilities import Capability

HELP = "tell what this machine can do, and what to do about the rest"

_MARKS = {True: ("yes", "green"), False: ("no", "red"), None: ("?", "yellow")}
_NAME_WIDTH, _MARK_WIDTH, _WIDTH = 17, 5, 100


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Print each capability as soon as it is known."""
    from gpubench.capabilities import capabilities

    if options.json:
        found = [asdict(each) for each in capabilities()]
        print_json({"capabilities": found, "environment": _environment()})
        return 0
    python = f"Python {platform.python_version()}"
    print(f"gpubench {gpubench.__version__}, {python}, {platform.platform()}\n")
    for each in capabilities():
        print(_row(each), flush=True)
    return 0


def _environment() -> dict[str, Any]:
    from gpubench.devices import current_platform
    from gpubench.environment import describe_environment

    return describe_environment(current_platform())


def _row(capability: Capability) -> str:
    mark, hue = _MARKS[capability.available]
    head = f"{capability.name:<{_NAME_WIDTH}}{colour(f'{mark:<{_MARK_WIDTH}}', hue)}"
    indent = " " * (_NAME_WIDTH + _MARK_WIDTH)
    lines = _wrapped(capability.detail, indent, indent)
    if capability.remedy:
        lines += _wrapped(capability.remedy, f"{indent}-> ", f"{indent}   ")
    return head + "\n".join(lines).removeprefix(indent)


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    # Commands and paths are to be copied: they aren't broken at their hyphens.
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
