"""The margin of a comparison, as commands are told it."""

from __future__ import annotations

import argparse


def add_margin(parser: argparse.ArgumentParser) -> None:
    """Give a command the option ``--margin``."""
    parser.add_argument(
        "--margin",
        type=_margin,
        default=0.01,  # as elsewhere; the module that says so takes long to import
        metavar="SHARE",
        help="up to which times count as the same, such as 2%% or 0.02 (default: 1%%)",
    )


def _margin(text: str) -> float:
    from gpubench.arguments import share
    from gpubench.errors import ArgumentError

    try:
        return share("margin", text)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
