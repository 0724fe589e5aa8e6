"""The margin of a comparison, as commands are told it."""

from __future__ import annotations

import argparse
import math


def add_margin(parser: argparse.ArgumentParser) -> None:
    """Give a command the option ``--margin``."""
    parser.add_argument(
        "--margin",
        type=_margin,
        default=0.01,
        metavar="SHARE",
        help="up to which times count as the same, such as 2%% or 0.02 (default: 1%%)",
    )


def _margin(text: str) -> float:
    number, percent, rest = text.strip().partition("%")
    try:
        margin = float(number) / (100 if percent else 1)
    except ValueError:
        margin = math.nan
    if rest or not (math.isfinite(margin) and margin > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no share above zero, such as 1% or 0.01")
    return margin
