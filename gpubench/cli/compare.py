"""``gpubench compare``."""

from __future__ import annotations

import argparse

from gpubench.cli.margin import add_margin
from gpubench.cli.output import add_json, print_json
from gpubench.errors import ArgumentError

HELP = "compare the benchmarks that two files of results have in common"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("left", metavar="A.json", help="the results to compare with")
    parser.add_argument("right", metavar="B.json", help="the results that are judged")
    parser.add_argument(
        "--fail-on",
        choices=("slower",),
        help="end with status 1 if it is established that a benchmark got slower; "
        "an unclear one doesn't count",
    )
    add_margin(parser)
    parser.add_argument(
        "--mixed",
        action="store_true",
        help="compare times of different devices and methods, too, which differ by themselves",
    )
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Print a table of all that was compared, and what wasn't.

    Returns
    -------
    int
        1 if that was asked for and a benchmark got slower; an unclear one doesn't count.

    Raises
    ------
    ArgumentError
        If nothing could be compared, after what could not has been printed.
    """
    from gpubench.comparison import compare_runs

    run = compare_runs(options.left, options.right, margin=options.margin, mixed=options.mixed)
    if options.json:
        print_json(run.to_dict())
    else:
        print(run, flush=True)
    if not (run.changes or run.values):
        raise ArgumentError(
            f"nothing was compared: none of the {len(run.not_compared)} benchmarks that are in "
            f"both {options.left!r} and {options.right!r} has times in both that can be"
        )
    return 1 if options.fail_on and run.counts[options.fail_on] else 0
