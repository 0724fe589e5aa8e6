"""``gpubench demo``."""

from __future__ import annotations

import argparse

from gpubench.cli.output import add_json, print_json

HELP = "time a small computation in every way that works on this machine"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Print the demonstration, paragraph by paragraph."""
    from gpubench.demo import demo, parts

    if options.json:
        print_json(
            [
                {"heading": heading, "results": [result.to_dict() for result in measure()]}
                for heading, measure in parts()
            ]
        )
        return 0
    for paragraph in demo():
        print(paragraph, end="\n\n", flush=True)
    return 0
