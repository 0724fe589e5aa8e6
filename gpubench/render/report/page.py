"""The page: its sections, style, script and the library for charts, in one file without network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import resources

import gpubench
from gpubench.comparison.run_comparison import RunComparison
from gpubench.devices.place import places_of
from gpubench.render.report import library
from gpubench.render.report.comparison import comparison_section
from gpubench.render.report.curve_figures import curve_figures
from gpubench.render.report.curves import curves
from gpubench.render.report.elements import Html, element, joined
from gpubench.render.report.environment import environment_section
from gpubench.render.report.rows import Row
from gpubench.render.report.runs import Run
from gpubench.render.report.table import table_section

_SCRIPTS = (
    "library", "tooltip", "chart", "samples", "intervals", "curves", "places", "table", "filter",
    "details",
)  # fmt: skip
"""The parts of the page's one module, in their order: all see what one declares at its top."""


def page_of(
    runs: Sequence[Run],
    rows: Sequence[Row],
    compared: Sequence[RunComparison | None],
    margin: float,
) -> str:
    """Return the page as HTML."""
    sections = {
        "Benchmarks": table_section(runs, rows),
        "Comparison": comparison_section(runs, rows, compared, margin),
        "Curves": curve_figures(curves(runs)),
        "Environment": environment_section(runs),
    }
    there = {name: body for name, body in sections.items() if body is not None}
    script = "\n" + "\n".join(_file(f"{part}.js") for part in _SCRIPTS)
    style = "\n" + _file("style.css")
    drawing = library.chart_library()
    parts = {
        "title": joined("Benchmark report: ", ", ".join(run.label for run in runs)),
        "policy": _policy(style, script, drawing),
        "style": style,
        "files": joined(_files(runs)),
        "overview": _overview(rows),
        "navigation": joined(element("a", name, href=f"#{name.lower()}") for name in there),
        "sections": joined(
            element("section", element("h2", name), body, id=name.lower())
            for name, body in there.items()
        ),
        "version": gpubench.__version__,
        "library": drawing,
        "script": script,
    }
    # In one pass: what a file holds may look like a place to fill.
    return re.sub("@@([a-z]+)@@", lambda place: parts[place[1]], _file("page.html"))


def _file(name: str) -> str:
    return resources.files("gpubench.render.report").joinpath("assets", name).read_text("utf-8")


def _policy(style: str, *scripts: str) -> str:
    """Return the Content-Security-Policy: nothing is fetched, and nothing runs but this."""
    allowed = " ".join(map(_digest, scripts))
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _files(runs: Sequence[Run]) -> Iterator[Html]:
    for number, run in enumerate(runs):
        facts = [f"{len(run.records):,} benchmarks"]
        if run.saved.format != "gpubench":
            facts.append(run.saved.format)
        gpus = (place.gpu_name for place in places_of(run.environment))
        facts += dict.fromkeys(filter(None, gpus))
        known = (run.environment.get(name) for name in ("host", "date"))
        facts += [str(value) for value in known if value]
        if len(runs) > 1 and number == 0:
            facts.append("the baseline")
        yield element("li", element("strong", run.label), " " + " · ".join(facts))


def _overview(rows: Sequence[Row]) -> Html:
    """Return how many benchmarks there are, and what became of them."""
    statuses = Counter(status for row in rows for status in row.statuses)
    noted = sum(bool(row.codes) for row in rows)
    counts = {"benchmarks": len(rows), **statuses, "with notes": noted}
    tiles = [
        element("li", element("b", count), f" {what}", class_=what.replace(" ", "-"))
        for what, count in counts.items()
        if count or what == "benchmarks"
    ]
    return element("ul", tiles, id="overview")
