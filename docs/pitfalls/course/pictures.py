"""Pictures that take the colours of the page around them, be it light or dark."""

import io
import re
from html import escape

import matplotlib
import numpy as np

from gpubench.render.canvas import COLORS, GREY, empty_figure
from gpubench.render.units import common_unit

_MOST_SHAPES = 300
"""From how many points on they are stored as pixels."""


class Picture:
    """A figure as a notebook and a page of HTML show it.

    Attributes
    ----------
    figure : Figure
        What is shown.
    """

    def __init__(self, figure, meaning):
        self.figure = figure
        self._meaning = meaning

    def __repr__(self):
        return f"<Picture: {self._meaning}>"

    def _repr_html_(self):
        file = io.StringIO()
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            self.figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
        svg = file.getvalue()
        body = svg[svg.index("<defs>") :]
        body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
        body = re.sub(r'<g id="[^"]*"', "<g", body).replace("#000000", "currentColor")
        box = re.search(r'viewBox="[^"]*"', svg)[0]
        width = round(self.figure.get_figwidth() * 96)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'{box} role="img" aria-label="{escape(self._meaning)}" fill="currentColor" '
            f'stroke-linejoin="round" '
            f'style="width: {width}px; max-width: 100%; height: auto">{body}'
        )


def show(figure, meaning):
    """Return a matplotlib figure for display.

    Parameters
    ----------
    figure : Figure
        What to show.
    meaning : str
        What it says, for those who don't see it.
    """
    return Picture(figure, meaning)


def window(trace, name):
    """Return from when to when a range of that name, and what was launched in it, took.

    Of several, it is the one that took the shortest time, and so was disturbed least.

    Returns
    -------
    dict
        ``begin`` and ``end`` for `Trace.plot`, in seconds, with a margin.
    """
    recording = trace.recording
    named = [each for each in recording.ranges if recording.names[each["name"]] == name]
    begin, end = min((_with_its_work(recording, each) for each in named), key=_length)
    begin, end = (1e-9 * float(moment - recording.begin) for moment in (begin, end))
    margin = 0.05 * (end - begin)
    return {"begin": begin - margin, "end": end + 2 * margin}


def _with_its_work(recording, each):
    """Return when a range began, and when it and all that was launched in it was done."""
    calls = recording.calls
    is_inside = (calls["start"] >= each["start"]) & (calls["end"] <= each["end"])
    launched = np.isin(recording.activities["correlation_id"], calls["correlation_id"][is_inside])
    return each["start"], max([each["end"], *recording.activities["end"][launched]])


def _length(interval):
    return interval[1] - interval[0]


def samples_figure(series, lines=(), *, log=False, height=2.6):
    """Draw series of times, in the order in which they were taken.

    Parameters
    ----------
    series : mapping of str to array_like
        Seconds, by name; they stand one behind the other.
    lines : mapping of str to float
        Seconds that get a horizontal line.
    log : bool
        Whether the axis of time is logarithmic.
    height : float
        Inches.
    """
    lines = dict(lines)
    figure = empty_figure(8.0, height)
    axes = figure.subplots()
    everything = np.concatenate([np.asarray(values) for values in series.values()])
    unit = common_unit(float(np.median(everything)))
    first = 1
    for color, (name, values) in zip(COLORS, series.items(), strict=False):
        places = np.arange(first, first + len(values))
        axes.plot(
            places,
            np.asarray(values) * unit.per_second,
            ".",
            markersize=3,
            color=color,
            label=name,
            rasterized=len(places) > _MOST_SHAPES,
        )
        first += len(values)
    for style, (name, value) in zip(("-", "--", ":", "-."), lines.items(), strict=False):
        axes.axhline(value * unit.per_second, color=GREY, linestyle=style, label=name)
    if log:
        axes.set_yscale("log")
    axes.set_xlabel("sample, in the order of the run")
    axes.set_ylabel(f"time ({unit.symbol})")
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) + len(lines) > 1:
        figure.legend(loc="outside upper right", ncols=5, frameon=False, fontsize="small")
    return figure
