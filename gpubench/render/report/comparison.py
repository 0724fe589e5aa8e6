"""The runs of a report against the first of them: the verdicts, and all intervals in one chart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from gpubench.comparison.judgement import Judgement
from gpubench.comparison.outcome import Comparison
from gpubench.comparison.run_comparison import VERDICTS, RunComparison
from gpubench.render.report.elements import Html, element, embedded, joined, shown
from gpubench.render.report.rows import Row, compared_arm
from gpubench.render.report.runs import Run
from gpubench.render.report.table import verdict_mark

_MOST_INTERVALS = 60
"""More don't fit in a chart that can be read; those farthest from "same" are taken."""


def comparison_section(
    runs: Sequence[Run],
    rows: Sequence[Row],
    compared: Sequence[RunComparison | None],
    margin: float,
) -> Html | None:
    """Return how each run compares with the first; None if there is one run only."""
    if len(runs) < 2:
        return None
    first, *others = runs
    parts = [
        _of_run(first, run, [(row, row.comparisons[place]) for row in rows], found, margin)
        for place, (run, found) in enumerate(zip(others, compared, strict=True))
    ]
    return joined(parts)


def _of_run(
    first: Run,
    run: Run,
    rows: Sequence[tuple[Row, Comparison | None]],
    found: RunComparison | None,
    margin: float,
) -> Html:
    heading = element("h3", f"{run.label} against {first.label}")
    if found is None:
        return element("div", heading, element("p", "They have no benchmark in common."))
    arms = [(row, compared_arm(each)) for row, each in rows if each is not None]
    counts = Counter(arm.verdict for _, arm in arms)
    order = dict.fromkeys([*VERDICTS, *counts])
    marks = [
        element("li", verdict_mark(each), f" {counts[each]:,}") for each in order if counts[each]
    ]
    judged = [(row, arm.judgement) for row, arm in arms if arm.judgement is not None]
    return element(
        "div",
        heading,
        element("ul", marks, class_="verdicts") if marks else None,
        _chart(run, first, judged, margin),
        _left_over(first, run, found),
    )


def _chart(
    run: Run, first: Run, judged: Sequence[tuple[Row, Judgement]], margin: float
) -> Html | None:
    if not judged:
        return None
    chosen = sorted(judged, key=lambda each: _distance(each[1]), reverse=True)[:_MOST_INTERVALS]
    chosen.sort(key=lambda each: each[1].ratio, reverse=True)
    labels = _labels([row for row, _ in chosen])
    value = {
        "kind": "intervals",
        "title": shown(f"Time of {run.label} over that of {first.label}"),
        "margin": margin,
        "rows": [
            {
                "name": shown(row.key),
                "label": labels[row.key],
                "ratio": judgement.ratio,
                "low": judgement.interval[0],
                "high": judgement.interval[1],
                "verdict": judgement.verdict,
            }
            for row, judgement in chosen
        ],
    }
    caption = (
        f"Ratio of the medians and its interval; the shaded margin of ±{100 * margin:.3g} % "
        "counts as the same."
    )
    if len(chosen) < len(judged):
        caption += f" The {len(chosen)} of {len(judged):,} that are farthest from it are shown."
    return element(
        "figure",
        element("div", embedded(value), class_="chart"),
        element("figcaption", caption),
    )


def _labels(rows: Sequence[Row]) -> dict[str, str]:
    """Return for each key as few of its name's last parts as tell it from the others."""
    for n in range(1, 1 + max(row.record.name.count(".") for row in rows)):
        labels = {row.key: shown(_tail(row, n)) for row in rows}
        if len(set(labels.values())) == len(labels):
            return labels
    return {row.key: shown(row.key) for row in rows}


def _tail(row: Row, n: int) -> str:
    name = row.record.name
    return ".".join(name.split(".")[-n:]) + row.key.removeprefix(name)


def _distance(judgement: Judgement) -> float:
    """Return how far the near end of an interval is from 1; negative if 1 lies within."""
    low, high = map(math.log, judgement.interval)
    return max(low, -high)


def _left_over(first: Run, run: Run, found: RunComparison) -> Iterator[Html]:
    """Yield what isn't compared, and why."""
    groups = {
        f"only in {first.label}": list(found.only_left),
        f"only in {run.label}": list(found.only_right),
        "not compared": [str(each) for each in found.not_compared],
    }
    for what, names in groups.items():
        if names:
            items = [element("li", name) for name in names]
            yield element(
                "details",
                element("summary", f"{what}: {len(names):,}"),
                element("ul", items),
            )
    notes = [element("li", str(note)) for note in found.notes]
    if notes:
        yield element("ul", notes, class_="notes")
