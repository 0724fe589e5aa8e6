"""A recording as a picture: what the host and the devices did, each in a lane along the time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpubench.activity.recording import KINDS, Recording
from gpubench.activity.tracks import Row, rows
from gpubench.arguments import finite_number
from gpubench.devices.records import ACTIVITY_KINDS, CALL_KINDS, RecordArray
from gpubench.errors import ArgumentError
from gpubench.render.canvas import COLORS, DARK, GREY, PALE, empty_figure
from gpubench.render.names import short_names
from gpubench.render.scales import label
from gpubench.render.units import common_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _LABELS = 8.0, 1.4
"""Inches of the picture, and of the labels beside its lanes."""

_LANE, _BAR = 0.3, 0.72
"""Inches of a lane, and how much of it a bar fills."""

_CHARACTER = 0.078
"""Inches of a character."""

_HAIR = 0.01
"""Inches by which a bar is drawn short, so that it is seen where the next begins; and the least
that is drawn of one."""

_MOST_ARROWS = 60

_MOST_SHAPES = 300
"""Bars of a lane from which on a vector graphic holds their pixels instead."""

_CALLS = [KINDS.index(kind) for kind in CALL_KINDS]
_RANGE, _COMPILATION = KINDS.index("range"), KINDS.index("compilation")
_COMPILED_COLOR = "#8c6bb1"


@dataclass(frozen=True)
class _Lane:
    """A line of bars.

    Attributes
    ----------
    label : str
        What is said beside it; empty where the lane above belongs to the same row.
    slices : ndarray of `tracks.SLICE`, shape (n,)
        What is in view, by start.
    on_host : bool
        Whether a thread of the host did it.
    """

    label: str
    slices: RecordArray
    on_host: bool


def figure(recording: Recording, begin: float, end: float | None) -> Figure:
    """Draw what a recording shows from `begin` to `end`.

    Parameters
    ----------
    recording : Recording
        What to draw.
    begin, end : float or None
        Seconds from its beginning; None is its end.

    Raises
    ------
    ArgumentError
        If `end` isn't after `begin`.
    MissingExtraError
        If matplotlib is not installed.
    """
    begin = finite_number("begin", begin)
    end = recording.duration / 1e9 if end is None else finite_number("end", end)
    if end <= begin:
        raise ArgumentError(f"end must be after begin, got {end!r} and {begin!r}")
    lanes = tuple(_lanes(recording, begin, end))
    names = short_names({recording.names[i] for lane in lanes for i in lane.slices["name"]}, 36)
    colors = _colors(lanes)
    legend = len(colors) > 1
    picture = empty_figure(_WIDTH, _LANE * max(1, len(lanes)) + 0.6 + 0.3 * legend)
    axes = picture.subplots()
    unit = common_unit((end - begin) / 10)
    drawing = _Drawing(axes, recording, unit.per_second, (begin, end), names, colors)
    for place, lane in enumerate(lanes):
        drawing.bars(place, lane)
    drawing.arrows(lanes)
    axes.set_xlim(begin * unit.per_second, end * unit.per_second)
    axes.set_ylim(max(1, len(lanes)) - 0.5, -0.5)
    axes.set_yticks(range(len(lanes)), [lane.label for lane in lanes])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"time ({unit.symbol})")
    axes.spines[["top", "right", "left"]].set_visible(False)
    if legend:
        _add_legend(picture, recording, names, colors)
    return picture


def _lanes(recording: Recording, begin: float, end: float) -> Iterator[_Lane]:
    """Return a lane for each stream; for each thread one of each depth of ranges, one of calls."""
    first, last = recording.begin + begin * 1e9, recording.begin + end * 1e9
    layout = rows(recording)
    threads = {row.label for row in layout if row.device is None}
    for row in layout:
        in_view = row.slices[(row.slices["end"] >= first) & (row.slices["start"] <= last)]
        parts = [in_view] if row.device is not None else _host_parts(in_view)
        for number, part in enumerate(part for part in parts if len(part)):
            text = "" if number else _row_label(row, len(threads) == 1)
            yield _Lane(text, part, row.device is None)


def _host_parts(slices: RecordArray) -> list[RecordArray]:
    is_call = np.isin(slices["kind"], _CALLS)
    others, calls = slices[~is_call], slices[is_call]
    nested = [others[others["depth"] == depth] for depth in np.unique(others["depth"])]
    ends = np.maximum.accumulate(calls["end"])
    is_outermost = calls["start"] >= np.concatenate([[0], ends])[: len(calls)]
    return [*nested, calls[is_outermost]]


def _row_label(row: Row, is_only_thread: bool) -> str:
    if row.device is None:
        return "host" if is_only_thread else label(f"host, {row.label}")
    return label(f"GPU-{row.device}, {row.label}")


def _colors(lanes: Sequence[_Lane]) -> dict[int, str]:
    """Return a colour for each activity's name, in the order of their appearance."""
    seen = [lane.slices for lane in lanes if not lane.on_host]
    if not seen:
        return {}
    slices = np.concatenate(seen)
    names = dict.fromkeys(slices["name"][np.argsort(slices["start"], kind="stable")].tolist())
    return {name: COLORS[number % len(COLORS)] for number, name in enumerate(names)}


def _add_legend(
    picture: Figure, recording: Recording, names: Mapping[str, str], colors: Mapping[int, str]
) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(color=color, label=label(names[recording.names[name]]))
        for name, color in list(colors.items())[: len(COLORS)]
    ]
    picture.legend(
        handles=handles, loc="outside upper right", ncols=4, frameon=False, fontsize="small"
    )


class _Drawing:
    """The axes and what is to be known to draw on them.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    recording : Recording
        What is drawn.
    scale : float
        Units of the x axis in a second.
    view : (float, float)
        Seconds from the recording's beginning.
    names : mapping of str to str
        What to write for a name.
    colors : mapping of int to str
        Of activities, by the index of their name.
    """

    def __init__(
        self,
        axes: Axes,
        recording: Recording,
        scale: float,
        view: tuple[float, float],
        names: Mapping[str, str],
        colors: Mapping[int, str],
    ) -> None:
        self._axes = axes
        self._recording = recording
        self._scale = scale
        self._left, self._right = (scale * side for side in view)
        self._names = names
        self._colors = colors
        self._per_inch = (self._right - self._left) / (_WIDTH - _LABELS)

    def _at(self, moments: RecordArray) -> RecordArray:
        places: RecordArray = (moments - self._recording.begin) * (self._scale / 1e9)
        return places

    def bars(self, place: int, lane: _Lane) -> None:
        """Draw a lane, with names where there is room."""
        starts = np.maximum(self._at(lane.slices["start"]), self._left)
        ends = np.minimum(self._at(lane.slices["end"]), self._right)
        hair = _HAIR * self._per_inch
        widths = np.maximum(ends - starts - hair, hair)
        fills = [self._fill(each) for each in lane.slices]
        self._axes.broken_barh(
            list(zip(starts, widths, strict=True)),
            (place - _BAR / 2, _BAR),
            facecolors=fills,
            rasterized=len(fills) > _MOST_SHAPES,
        )
        if len(self._colors) > 1 and not lane.on_host:
            return  # the legend tells
        nexts = np.append(starts[1:], self._right)
        for each, start, end, free, fill in zip(
            lane.slices, starts, ends, nexts, fills, strict=True
        ):
            text = label(self._names[self._recording.names[each["name"]]])
            width = _CHARACTER * (len(text) + 1) * self._per_inch
            if width < end - start:
                self._write((start + end) / 2, place, text, _ink(fill), "center")
            elif width < free - end:
                self._write(end + 0.06 * self._per_inch, place, text, "#000000", "left")

    def _fill(self, each: RecordArray) -> str:
        kind = each["kind"]
        if kind < len(ACTIVITY_KINDS):
            return self._colors[int(each["name"])]
        if kind == _RANGE:
            return PALE
        return _COMPILED_COLOR if kind == _COMPILATION else GREY

    def _write(self, x: float, y: float, text: str, color: str, side: str) -> None:
        self._axes.text(
            x, y, text, color=color, ha=side, va="center_baseline", fontsize="small", clip_on=True
        )

    def arrows(self, lanes: Sequence[_Lane]) -> None:
        """Draw a line from each call to what it launched, if there are few."""
        recording = self._recording
        places: dict[tuple[bool, int], int] = {}
        for place, lane in enumerate(lanes):
            is_call = np.isin(lane.slices["kind"], _CALLS)
            is_activity = lane.slices["kind"] < len(ACTIVITY_KINDS)
            for is_wanted, on_host in ((is_call, True), (is_activity, False)):
                for index in lane.slices["index"][is_wanted].tolist():
                    places[on_host, index] = place
        launches = recording.launches().tolist()
        pairs = [
            (launches[index], index)
            for on_host, index in places
            if not on_host and (True, launches[index]) in places
        ]
        if len(pairs) > _MOST_ARROWS:
            return
        for call, activity in pairs:
            x = (
                self._at(recording.calls["end"][call]),
                self._at(recording.activities["start"][activity]),
            )
            y = places[True, call] + _BAR / 2, places[False, activity] - _BAR / 2
            self._axes.plot(x, y, color=GREY, linewidth=0.7, alpha=0.7)


def _ink(fill: str) -> str:
    """Return a colour that is read well on another one."""
    red, green, blue = (int(fill[i : i + 2], 16) / 255 for i in (1, 3, 5))
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#ffffff" if math.sqrt(luminance) < 0.75 else DARK
