"""The command ``gpubench``."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence

import gpubench
from gpubench.cache.command import add_cache_command
from gpubench.errors import GpubenchError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        Exit status: 0 if all went well, 1 if gpubench can't do what was asked, 2 (raised by
        argparse) if the command line is wrong, 130 after Ctrl-C, 141 if nobody reads the output
        to its end.
    """
    arguments = _parser().parse_args(argv)
    handler: Callable[[argparse.Namespace], int] = arguments.handler
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # histograms, where the encoding has no blocks
    try:
        status = handler(arguments)
        sys.stdout.flush()
        return status
    except GpubenchError as error:
        print(f"gpubench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The interpreter flushes once more as it exits; that must not fail in its turn.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpubench", description="GPU benchmarks whose numbers are right."
    )
    parser.add_argument("--version", action="version", version=gpubench.__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo", help="time a small computation in every way that works on this machine"
    )
    demo.set_defaults(handler=_demo)
    add_cache_command(commands)
    return parser


def _demo(_: argparse.Namespace) -> int:
    from gpubench.demo import demo

    for paragraph in demo():
        print(paragraph, end="\n\n", flush=True)
    return 0
