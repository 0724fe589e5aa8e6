"""``gpubench trace``."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from gpubench.cli.output import add_json, print_json, print_traceback
from gpubench.errors import ArgumentError

if TYPE_CHECKING:
    from gpubench.activity.trace import Trace

HELP = "run a script and record what the GPUs do meanwhile"

_EPILOG = """\
The script runs as by `python SCRIPT ARGS`, and its exit status is that of the command. Options of
trace stand before SCRIPT or right behind it. The recording ends when the main thread does. CuPy is
loaded before the script runs: set variables such as CUDA_VISIBLE_DEVICES and CUPY_ACCELERATORS
outside.

  gpubench trace train.py -o train.html --epochs 1
"""

_SUFFIXES = (".json", ".json.gz", ".html", ".npz")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.usage = "%(prog)s [-h] SCRIPT [-o FILE] [--json] [ARGS ...]"
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    behind = _add_own(argparse.ArgumentParser(parser.prog, usage=parser.usage, add_help=False))
    parser.set_defaults(parse_behind=behind.parse_args, refuse=parser.error)
    _add_own(parser)
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT",
        help="a Python file, folder or zip file, and its arguments",
    )


def _add_own(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        *("-o", "--output"),
        metavar="FILE",
        help="the trace: .json or .json.gz for Perfetto and chrome://tracing, .html for a page "
        "with the timeline, .npz for gpubench.Trace.load",
    )
    add_json(parser)
    return parser


def execute(options: argparse.Namespace) -> int:
    """Run the script, write the trace, print its table and the diagnosis.

    Returns
    -------
    int
        The script's exit status; 1 if it raised, 130 after Ctrl-C.
    """
    from gpubench import preload_cutensor, record_activity

    script, args = _split(options)
    if not os.path.exists(script):
        raise ArgumentError(f"SCRIPT: there is no {script!r}")
    output = None if options.output is None else _checked_output(options.output)
    preload_cutensor()
    with (
        redirect_stdout(sys.stderr) if options.json else nullcontext(),
        record_activity() as trace,
    ):
        status = _run(script, args)
    if output is not None:
        _write(trace, output)
    if options.json:
        print_json(_document(trace, script, status, output))
    else:
        print(trace.table(), trace.diagnose(), sep="\n\n")
    return status


def _split(options: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the script and its arguments; what is this command's between them goes to `options`.

    argparse can't do that: it would take the script's options for its own, or all for the script's.
    """
    if not options.words:
        options.refuse("the following arguments are required: SCRIPT")
    script, *words = options.words
    n = 0
    while n < len(words) and words[n].partition("=")[0] in ("-o", "--output", "--json"):
        n += 2 if words[n] in ("-o", "--output") else 1
    options.parse_behind(words[:n], namespace=options)
    args = words[n:]
    return script, args[1:] if args[:1] == ["--"] else args


def _checked_output(output: str) -> str:
    """Return the file's absolute path, since the script may go elsewhere."""
    if not output.endswith(_SUFFIXES):
        raise ArgumentError(f"-o {output!r}: the name must end in one of {', '.join(_SUFFIXES)}")
    path = os.path.abspath(output)
    if not os.path.isdir(os.path.dirname(path)):
        raise ArgumentError(f"-o {output!r}: there is no folder {os.path.dirname(path)!r}")
    return path


def _run(script: str, args: list[str]) -> int:
    """Run a script as ``python`` would, and return its exit status."""
    sys.argv = [script, *args]
    if os.path.isfile(script) and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as leaving:
        return _status(leaving.code)
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        mains = (os.path.join(place, "__main__.py") for place in (script, os.path.abspath(script)))
        if not print_traceback(error, (script, *mains)):
            raise
        return 1
    return 0


def _status(code: object) -> int:
    """Return the exit status that a script's ``sys.exit(code)`` stands for."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _write(trace: Trace, output: str) -> None:
    write: Callable[[str], None] = trace.export_chrome_trace
    if output.endswith(".html"):
        write = trace.timeline_html
    elif output.endswith(".npz"):
        write = trace.save
    write(output)
    print(f"gpubench: the trace is in {output}", file=sys.stderr)


def _document(trace: Trace, script: str, status: int, output: str | None) -> dict[str, Any]:
    """Return what the table shows, and the diagnosis, as JSON values."""
    from gpubench.activity.notes import recording_notes
    from gpubench.activity.summary import call_totals, device_totals, range_totals

    recording = trace.recording
    return {
        "script": script,
        "status": status,
        "output": output,
        "duration_s": recording.duration / 1e9,
        "calls": _values(call_totals(recording)),
        "devices": [
            {"name": recording.devices.get(total.device), **_values(total)}
            for total in device_totals(recording)
        ],
        "ranges": _values(range_totals(recording)),
        "notes": _values(recording_notes(recording)),
        "findings": _values(tuple(trace.diagnose())),
    }


def _values(value: Any) -> Any:
    """Return dataclasses as mappings whose keys tell seconds, and without arrays of row numbers."""
    if is_dataclass(value):
        return {
            f"{field.name}_s" if field.name.endswith("_time") else field.name: _values(
                getattr(value, field.name)
            )
            for field in fields(value)
            if field.name != "rows"
        }
    if isinstance(value, tuple):
        return [_values(each) for each in value]
    return value
