"""``gpubench asv-check``."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from gpubench.cli.output import add_json, colour, print_json

if TYPE_CHECKING:
    from gpubench.integrations.asv import Check

HELP = "say why asv would not see the plugin for GPU benchmarks, and what mends it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "path",
        nargs="?",
        default=".",
        help="asv.conf.json, or its folder; by default the current one",
    )
    parser.add_argument(
        "--python",
        help="the interpreter to look at; by default those of the environments that asv has made",
    )
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Print the checks.

    Returns
    -------
    int
        1 if asv would not see the plugin.
    """
    from gpubench.integrations.asv import check_asv

    checks = []
    for check in check_asv(options.path, options.python):
        checks.append(check)
        if not options.json:
            _print(check)
    sees = all(check.holds for check in checks)
    if options.json:
        print_json({"sees_plugin": sees, "checks": [asdict(check) for check in checks]})
    elif not sees:
        print("asv would not see the plugin.")
    return 0 if sees else 1


def _print(check: Check) -> None:
    word = colour("ok", "green") if check.holds else colour("no", "red")
    print(f"{word}  {check.name}: {check.message}", flush=True)
    if check.command:
        print(f"    {check.command}")
