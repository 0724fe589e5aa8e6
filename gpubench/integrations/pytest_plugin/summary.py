"""What the plugin prints below the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpubench.render.content import visible
from gpubench.render.runs import sentences
from gpubench.render.table import table
from gpubench.storage import Record

if TYPE_CHECKING:
    from gpubench.integrations.pytest_plugin.session import BenchmarkSession

_OF_THE_MACHINE = ("no-gpu",)
"""Notes that are the same for all results, and worth more than their code in the table."""


def summary(session: BenchmarkSession) -> list[str]:
    """Return what there is to say of a session: nothing, if nobody asked for benchmarks."""
    if session.settings.disabled:
        return _disabled(session)
    paragraphs = [_timed(session.records), _compared(session), _saved(session)]
    return [line for paragraph in paragraphs if paragraph for line in ("", *paragraph)][1:]


def _disabled(session: BenchmarkSession) -> list[str]:
    if not session.n_untimed:
        return []
    s = "" if session.n_untimed == 1 else "s"
    return [
        f"Benchmarks are disabled: {session.settings.disabled}. {session.n_untimed} function{s} "
        "called once, untimed; nothing saved or compared."
    ]


def _timed(records: Sequence[Record]) -> list[str]:
    results = [record.result for record in records if record.result is not None]
    lines = table(results).splitlines() if results else []
    notes = [note for result in results for note in result.notes]
    lines += dict.fromkeys(str(note) for note in notes if note.code in _OF_THE_MACHINE)
    lines += [
        visible(f"no times of {record.key}: {record.status}: {record.reason}")
        for record in records
        if record.result is None
    ]
    return lines


def _compared(session: BenchmarkSession) -> list[str]:
    settings, comparison = session.settings, session.comparison
    if settings.baseline is None:
        return []
    path = settings.baseline.path
    if comparison is None:
        return [f"Nothing to compare: no benchmark that ran is in {path}."]
    rows = comparison.table("simple").splitlines() if comparison.changes else []
    return [f"A: {path}, B: this session", *rows, *sentences(comparison)]


def _saved(session: BenchmarkSession) -> list[str]:
    path, n = session.settings.save, len(session.records)
    if path is None or session.trouble:
        return []
    if not n:
        return [f"Nothing was benchmarked, so {path} was not written."]
    return [f"Saved to {path}: {n} benchmark{'' if n == 1 else 's'}."]


def failures(session: BenchmarkSession) -> list[str]:
    """Return what a session failed by, apart from its tests."""
    lines = []
    if session.trouble:
        lines.append(f"Could not save to {session.settings.save}: {session.trouble}")
    if session.must_fail:
        changes = session.comparison.changes if session.comparison else ()
        slower = [change.name for change in changes if change.verdict == "slower"]
        why = f"slower than before: {', '.join(slower)}" if slower else "nothing was compared"
        lines.append(visible(f"Failed by --gpubench-fail-on-slower: {why}"))
    return lines
