"""``gpubench report``."""

from __future__ import annotations

import argparse

from gpubench.cli.margin import add_margin
from gpubench.cli.output import add_json, print_json

HELP = "write results as one page of HTML, with tables and charts"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="saved results, or the JSON of a sweep; the others are compared with the first",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PAGE",
        default="report.html",
        help="where to write it (default: report.html)",
    )
    add_margin(parser)
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Write the page, and print what is on it."""
    from gpubench.errors import ArgumentError
    from gpubench.render import report

    runs = report.read_runs(options.files)
    try:
        written = report.write(runs, options.output, margin=options.margin)
    except OSError as error:
        reason = error.strerror or error
        raise ArgumentError(f"{options.output!r} can't be written: {reason}") from error
    if options.json:
        print_json(written.to_dict())
    else:
        print(written)
    return 0
