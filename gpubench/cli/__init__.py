# PYTHON_ARGCOMPLETE_OK
"""The command ``gpubench``: what it is asked, and with what status it ends.

Each command is a module here with `HELP`, a line; `configure`, which adds its arguments to a
parser; and `execute`, which does what the parsed arguments say and returns the exit status. All of
them are imported to parse a command line, so they import what they work with when they work.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import gpubench
from gpubench.cli.output import colour
from gpubench.errors import GpubenchError

COMMANDS = (
    "timeit",
    "run",
    "compare",
    "show",
    "report",
    "trace",
    "cache",
    "info",
    "demo",
    "asv-check",
)

_EPILOG = """\
exit status:
  0    done
  1    gpubench can't do what was asked, and says why on standard error; or the answer is no: a
       regression is established (compare --fail-on slower), a benchmark failed (run), an entry is
       damaged (cache verify), asv wouldn't see the plugin (asv-check)
  2    the command line is wrong
  130  Ctrl-C; what had been saved stays
  141  nobody read the output to its end
  trace ends with the status of the script that it runs

NO_COLOR, set to a value, turns colours off; there are none where output isn't a terminal.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        Exit status, as ``gpubench --help`` lists them, which is shown if there are no arguments;
        for a wrong command line argparse raises `SystemExit` with 2.
    """
    _open_outputs()
    try:
        parser = _parser()
        _offer_completions(parser)
        words = sys.argv[1:] if argv is None else argv
        if not words:
            parser.print_help(sys.stderr)
            return 2
        options = parser.parse_args(words)
        status: int = options.execute(options)
        if sys.stdout is not None:  # what is timed may do anything
            sys.stdout.flush()
        return status
    except GpubenchError as error:
        _complain(error)
        return 1
    except BrokenPipeError:
        _discard_output()
        return 141
    except OSError as error:
        if error.filename is not None:
            _complain(f"{error.filename}: {error.strerror}")
        elif error.errno in _NOT_WRITTEN:
            _complain(f"the output can't be written: {error.strerror}")
            _discard_output()
        else:
            raise
        return 1
    except KeyboardInterrupt:
        return 130


_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)


def _open_outputs() -> None:
    """Let the outputs take any text, also where the caller has closed them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # histograms, where the encoding has no blocks


def _discard_output() -> None:
    """Let nothing fail when the interpreter flushes once more as it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: object) -> None:
    print(f"{colour('gpubench:', 'red', sys.stderr)} {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpubench",
        description="GPU benchmarks whose numbers are right.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=gpubench.__version__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = import_module(f"{__name__}.{name.replace('-', '_')}")
        command = subparsers.add_parser(name, help=module.HELP, description=module.HELP)
        command.set_defaults(execute=module.execute)
        module.configure(command)
    return parser


def _offer_completions(parser: argparse.ArgumentParser) -> None:
    """Let the shell complete the command line, where argcomplete is installed and asks."""
    if "_ARGCOMPLETE" in os.environ:
        try:
            import argcomplete
        except ImportError:  # it is installed elsewhere; the command mustn't be run for its sake
            raise SystemExit(1) from None
        argcomplete.autocomplete(parser)
