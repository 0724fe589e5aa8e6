"""A comparison as text and as a table."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from gpubench.render.content import visible
from gpubench.render.units import format_ratio, format_time

if TYPE_CHECKING:
    from gpubench.comparison.judgement import Judgement
    from gpubench.comparison.outcome import ArmOutcome, Comparison

_WIDTH = 80


def text(comparison: Comparison) -> str:
    """Return a sentence for each arm, a table and the notes."""
    sentences = _sentences(comparison)
    notes = [
        textwrap.fill(f"! {note}", _WIDTH, initial_indent="  ", subsequent_indent="    ")
        for note in comparison.notes
    ]
    return "\n".join([*sentences, "", table(comparison), *([""] if notes else []), *notes])


def _sentences(comparison: Comparison) -> list[str]:
    return [
        sentence(arm, comparison)
        for arm in comparison.arms
        if arm.name != comparison.baseline or arm.status != "ok"
    ]


def sentence(arm: ArmOutcome, comparison: Comparison) -> str:
    """Return in one sentence what the arm is in comparison with the baseline."""
    name, baseline = visible(arm.name), visible(comparison.baseline)
    if arm.mismatch:
        return f"{name}: MISMATCH with {baseline}: {arm.mismatch}"
    if arm.status != "ok":
        return f"{name}: {arm.status}: {arm.reason}"
    if arm.same_kernels:
        return f"{name} ran the same kernels as {baseline}: the setting doesn't matter here"
    judgement = arm.judgement
    if judgement is None and comparison[comparison.baseline].result is None:
        return f"{name}: not judged, since {baseline} has no times"
    if judgement is None:
        return f"{name}: unclear: too few blocks or samples for a verdict"
    clock = "GPU" if arm.gpu else "CPU"
    ratio = format_ratio(judgement.ratio, judgement.interval)
    if judgement.verdict in ("faster", "slower"):
        times = _times_text(judgement)
        return f"{name} ran {times} times {judgement.verdict} than {baseline} ({clock} time)"
    if judgement.verdict == "same":
        return (
            f"{name} took the same {clock} time as {baseline} within "
            f"{100 * comparison.margin:.3g} % (ratio {ratio})"
        )
    if judgement.more_blocks is None:
        remedy = "no affordable number of blocks would settle it"
    else:
        remedy = f"about {judgement.more_blocks} more blocks would settle it"
    if not comparison.order:
        remedy = "run both by turns, with compare(), to settle it"
    return f"{name}: unclear: {clock} time ratio to {baseline} {ratio}; {remedy}"


def _times_text(judgement: Judgement) -> str:
    """By how many times one is faster, and its interval, as ± where that is fair."""
    ends = judgement.interval
    factor = judgement.ratio
    if judgement.verdict == "faster":
        factor, ends = 1 / factor, (1 / ends[1], 1 / ends[0])
    half = (ends[1] - ends[0]) / 2
    decimals = 2 if half >= 0.05 else 3
    if abs(factor - ends[0] - half) > half / 2:
        return f"{factor:.{decimals}f} [{ends[0]:.{decimals}f}, {ends[1]:.{decimals}f}]"
    return f"{factor:.{decimals}f} ± {half:.{decimals}f}"


def table(comparison: Comparison, tablefmt: str = "simple") -> str:
    """Return a row for each arm."""
    from tabulate import tabulate

    columns: dict[str, list[str]] = {"arm": [visible(arm.name) for arm in comparison.arms]}
    for clock in ("GPU", "CPU"):
        columns |= _columns(comparison, clock)
    columns["verdict"] = [
        "baseline" if arm.name == comparison.baseline and arm.status == "ok" else arm.verdict
        for arm in comparison.arms
    ]
    columns["ran"] = [arm.back_end for arm in comparison.arms]
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    return tabulate(shown, headers="keys", tablefmt=tablefmt, disable_numparse=True)


def _columns(comparison: Comparison, clock: str) -> dict[str, list[str]]:
    medians = []
    for arm in comparison.arms:
        statistics = arm.result and (arm.result.gpu if clock == "GPU" else (arm.result.cpu,))
        medians.append(max((each.median for each in statistics or ()), default=None))
    judgements = [arm.gpu if clock == "GPU" else arm.cpu for arm in comparison.arms]
    return {
        f"{clock} median": [format_time(m) if m is not None else "" for m in medians],
        f"{clock} ratio": [
            format_ratio(each.ratio, each.interval) if each else "" for each in judgements
        ],
        f"{clock} verdict": [each.verdict if each else "" for each in judgements],
    }


def html(comparison: Comparison) -> str:
    """Return the sentences and the table as an HTML fragment."""
    from html import escape

    sentences = "".join(f"<p>{escape(each)}</p>" for each in _sentences(comparison))
    notes = "".join(f"<p>{escape(str(note))}</p>" for note in comparison.notes)
    return f"<div>{sentences}{table(comparison, 'html')}{notes}</div>"
