"""``gpubench timeit``."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

from gpubench.cli.output import add_json, print_json, print_traceback
from gpubench.errors import GpubenchError
from gpubench.timers import METHODS

if TYPE_CHECKING:
    from gpubench.comparison import Comparison
    from gpubench.result import BenchmarkResult

HELP = "time a statement, like python -m timeit"

_EPILOG = """\
np is NumPy, and cp is CuPy where there is a GPU. Each execution is timed by itself; left to
itself, gpubench takes samples until the median is known to 0.5 %, for a second at most.

  gpubench timeit -s "a = np.random.rand(256, 1024)" "np.sqrt((a * a).sum(axis=-1))"
  gpubench timeit -s "a = cp.ones((256, 1024))" "a.sum()" --accelerators "" cub
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.set_defaults(refuse=parser.error)
    parser.add_argument(
        "statements",
        nargs="+",
        type=_code,
        metavar="STMT",
        help="what to time; several are lines of one",
    )
    parser.add_argument(
        *("-s", "--setup"),
        action="append",
        type=_code,
        default=[],
        help="what to do beforehand, once; several are lines of one",
    )
    parser.add_argument(
        *("-n", "--number"), type=_count, metavar="N", help="how often to execute the statement"
    )
    parser.add_argument(
        *("-r", "--repeat"), type=_count, metavar="R", help="how often to do so N times (once)"
    )
    parser.add_argument(
        *("-w", "--warmup"), type=int, default=10, metavar="N", help="untimed executions (10)"
    )
    parser.add_argument("--max-duration", type=float, metavar="S", help="seconds for all of it")
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        help="how to time; gated is the default on a GPU, host elsewhere",
    )
    parser.add_argument(
        "--cache", choices=("warm", "cold"), default="warm", help="cold flushes the GPU's L2 cache"
    )
    parser.add_argument(
        "--accelerators",
        nargs="+",
        default=[],
        metavar="NAMES",
        help='behind STMT: the values of CUPY_ACCELERATORS to compare, such as "" cub cub,cutensor',
    )
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Time the statement and print what was measured.

    Returns
    -------
    int
        1 if it raises, 130 if Ctrl-C ended it early; the samples that there are get printed.
    """
    from gpubench.statement import SETUP, STATEMENT

    if len(options.accelerators) > 1 and (options.number or options.repeat):
        options.refuse("--accelerators compares blocks of samples; it takes neither -n nor -r")
    if os.curdir not in sys.path:
        sys.path.insert(0, os.curdir)
    # The one document on standard output mustn't be mixed with what the statement prints.
    with redirect_stdout(sys.stderr) if options.json else nullcontext():
        namespace, no_cupy = _names()
        try:
            measured = _measure(options, namespace)
        except GpubenchError:
            raise
        except Exception as error:
            if not print_traceback(error, (SETUP, STATEMENT)):
                raise
            if isinstance(error, NameError) and error.name == "cp" and no_cupy:
                raise GpubenchError(f"cp would be CuPy, but {no_cupy}") from None
            return 1
    if options.json:
        print_json(measured.to_dict())
    else:
        print(_text(measured))
    return 130 if any(note.code == "interrupted" for note in measured.notes) else 0


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return number


def _code(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        encoding = sys.getfilesystemencoding()
        raise argparse.ArgumentTypeError(
            f"{text!r} is not in the system's encoding, {encoding}; set PYTHONUTF8=1"
        ) from None
    return text


def _names() -> tuple[dict[str, Any], str]:
    """Return what statements find under which name, and why that isn't CuPy, too."""
    import numpy as np

    from gpubench.cutensor import preload_cutensor
    from gpubench.devices.cuda import find_cuda
    from gpubench.errors import UnsupportedError

    namespace: dict[str, Any] = {"__name__": "__main__", "np": np}
    preload_cutensor()
    try:
        find_cuda()
    except UnsupportedError as error:
        return namespace, str(error)
    import cupy

    return {**namespace, "cp": cupy}, ""


def _measure(options: argparse.Namespace, names: dict[str, Any]) -> BenchmarkResult | Comparison:
    from gpubench import benchmark, compare_accelerators, use_accelerators
    from gpubench.statement import compile_statement, run_setup

    source = "\n".join(options.statements)
    common = {"n_warmup": options.warmup, "method": options.method, "cache": options.cache}
    if options.max_duration is not None:
        common["max_duration"] = options.max_duration
    settings = options.accelerators
    # One setting is nothing to compare.
    with use_accelerators(*settings) if len(settings) == 1 else nullcontext():
        run_setup("\n".join(options.setup), names)
        func = compile_statement(source, names)
        if len(settings) > 1:
            return compare_accelerators(func, settings=settings, **common)
        n_repeat = None
        if options.number or options.repeat:
            n_repeat = (options.number or 1) * (options.repeat or 1)
        return benchmark(func, n_repeat=n_repeat, name=source, **common)


def _text(measured: BenchmarkResult | Comparison) -> str:
    from gpubench.result import BenchmarkResult

    return measured.summary() if isinstance(measured, BenchmarkResult) else str(measured)
