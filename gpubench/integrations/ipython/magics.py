"""The magics: what each does with the line and the cell that follow its name."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpubench import accelerator
from gpubench.activity.recorder import record_activity
from gpubench.arguments import unique_name
from gpubench.comparison.outcome import Comparison
from gpubench.comparison.paired import compare
from gpubench.errors import ArgumentError
from gpubench.integrations.ipython.options import Option, parse
from gpubench.integrations.ipython.statements import Scope, compiled, has_value, label, split
from gpubench.measure import benchmark
from gpubench.result import BenchmarkResult
from gpubench.statement import run_setup

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from gpubench.activity.trace import Trace

_WHOLE = "a whole number"
_SHARED = {
    "-w": Option("n_warmup", _WHOLE, int),
    "--method": Option("method", "a method, such as graph"),
    "--max-duration": Option("max_duration", "a number of seconds", float),
    "-o": Option("output"),
    "-q": Option("quiet"),
}
_TIMEIT = {"-n": Option("n_repeat", _WHOLE, int), **_SHARED}
_COMPARE = {"-n": Option("n_blocks", _WHOLE, int), **_SHARED}
_TRACE = {
    "-o": Option("output"),
    "--html": Option("html", "a file", lambda text: Path(text).expanduser()),
}


def gpu_timeit(
    shell: InteractiveShell, line: str, cell: str | None, scope: Scope
) -> BenchmarkResult | None:
    """Time a statement as `gpubench.benchmark` does.

    Usage, in line mode::

        %gpu_timeit [-n N] [-w N] [-o] [-q] [--method M] [--max-duration S] [--] statement

    or in cell mode, where what follows the options in the first line is run once beforehand,
    untimed::

        %%gpu_timeit [options] set-up
        statements

    The statements are compiled once. They find your variables; those that they assign stay theirs.

    Options
    -------
    -n N
        How many samples to take; by default as many as it takes to know the median well.
    -w N
        How many calls go ahead of the samples; by default 10.
    -o
        Return the result.
    -q
        Show nothing.
    --method M
        ``auto``, ``gated``, ``graph``, ``cupti``, ``events`` or ``host``.
    --max-duration S
        Seconds for the whole run.
    --
        Ends the options, for a statement that begins like one: ``%gpu_timeit -- -n``.

    Examples
    --------
    ::

        In [1]: %gpu_timeit a.sum()
        In [2]: result = %gpu_timeit -o -q -n 100 a.sum(axis=0)
    """
    options, rest = parse(line, _TIMEIT)
    output, quiet = options.pop("output", False), options.pop("quiet", False)
    setup, source = ("", rest) if cell is None else (rest, cell)
    _not_empty(source)
    (call,) = compiled(shell, [source], scope, setup)
    result = benchmark(call, name=label(source), **options)
    if not quiet:
        _display(result)
    return result if output else None


def gpu_compare(
    shell: InteractiveShell, line: str, cell: str | None, scope: Scope
) -> Comparison | None:
    """Compare statements as `gpubench.compare` does: by turns, and with a verdict on each.

    Usage, in line mode::

        %gpu_compare [options] [--] a.sum() ;; cp.sum(a) ;; ...

    or in cell mode, where each statement is compared with the first one, and what follows the
    options in the first line is run once beforehand::

        %%gpu_compare [options] set-up
        a.sum()
        cp.sum(a)

    Lines of dashes (``---``) part what takes several statements. If all end in an expression,
    their values are compared, too.

    Options
    -------
    -n N
        How many blocks of samples to take of each; by default 20.
    -w, -o, -q, --method, --max-duration, --
        As those of ``%gpu_timeit``.
    """
    options, rest = parse(line, _COMPARE)
    output, quiet = options.pop("output", False), options.pop("quiet", False)
    setup, source = ("", rest) if cell is None else (rest, cell)
    sources = split(shell, source) if source.strip() else []
    if len(sources) < 2:
        raise ArgumentError(
            "two statements or more are needed: %gpu_compare a ;; b, or in a cell below "
            "%%gpu_compare a statement a line, or parts between lines of ---"
        )
    calls: dict[str, Any] = {}
    for text, call in zip(sources, compiled(shell, sources, scope, setup), strict=True):
        calls[unique_name(label(text), calls)] = call
    check = all(has_value(shell, text) for text in sources)
    comparison = compare(calls, check=check, **options)
    if not quiet:
        _display(comparison)
    return comparison if output else None


def gpu_trace(shell: InteractiveShell, line: str, cell: str | None, scope: Scope) -> Trace | None:
    """Run code once, and show what ran on the GPU and what keeps it from its work.

    Usage, in line mode::

        %gpu_trace [-o] [--html FILE] [--] statement

    or in cell mode::

        %%gpu_trace [options]
        statements

    The code runs as it would without the magic: what it assigns stays. Run it once before, so
    that what it compiles isn't in the trace.

    Options
    -------
    -o
        Return the `gpubench.Trace`.
    --html FILE
        Write the timeline to a page for any browser.
    """
    options, rest = parse(line, _TRACE)
    if cell is not None and rest:
        raise ArgumentError(f"what is to be traced goes below %%gpu_trace, not beside it: {rest}")
    source = rest if cell is None else cell
    _not_empty(source)
    names = scope if scope is shell.user_ns else {**shell.user_ns, **scope}
    interrupted = False
    with record_activity() as trace:
        try:
            run_setup(shell.transform_cell(source), names)
        except KeyboardInterrupt:
            interrupted = True
    print(trace.table(), trace.diagnose(), sep="\n\n")
    if interrupted:
        print("\nInterrupted: this is what ran until then.")
    if "html" in options:
        trace.timeline_html(options["html"])
    return trace if options.get("output") else None


_set = ExitStack()
"""Leaving it restores the back ends as they were before `accelerators` set them."""

atexit.register(_set.close)


def accelerators(_shell: InteractiveShell, line: str, _cell: None, _scope: Scope) -> None:
    """Show which back ends CuPy uses and could use, or choose them.

    Usage::

        %accelerators                  show them
        %accelerators cub cutensor     use these from now on, in this order
        %accelerators none             use CuPy's own kernels alone

    ``%unload_ext gpubench`` restores what was set before.
    """
    names = line.replace(",", " ").split()
    if names:
        chosen = accelerator.use_accelerators(*([] if names == ["none"] else names))
        restore_accelerators()
        _set.enter_context(chosen)
    print(accelerator.accelerators())


def restore_accelerators() -> None:
    """Let CuPy use the back ends that it used before the first ``%accelerators``."""
    _set.close()


def _not_empty(source: str) -> None:
    if not source.strip():
        raise ArgumentError("a statement is needed, such as a.sum()")


def _display(value: object) -> None:
    from IPython.display import display

    display(value)
