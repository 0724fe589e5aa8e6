"""A recording as one page of HTML: a timeline to look at, with nothing else to fetch."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import resources
from os import PathLike

import numpy as np
from numpy.lib.recfunctions import repack_fields

from gpubench.activity.notes import recording_notes
from gpubench.activity.recording import KINDS, Recording
from gpubench.activity.summary import IntArray, device_totals
from gpubench.activity.tracks import SLICE, Row, groups, rows, table
from gpubench.devices.records import (
    ACTIVITY_KINDS,
    CALL_KINDS,
    MEMORY_KINDS,
    RecordArray,
    no_records,
)
from gpubench.files import replacing
from gpubench.render.content import visible
from gpubench.render.units import format_time

_MOST_RECORDS = 200_000
_NAME_HEAD, _NAME_TAIL = 700, 300
"""Characters that are kept of a longer name."""

_SCRIPTS = ("records", "view", "colours", "text", "drawing", "axis", "search", "acting")
"""The parts of the page's one module, in their order: all see what one declares at its top."""

_TABLES = ("activities", "calls", "ranges", "compilations")

_CONFIGURATION = [
    "graph_id", "bytes", "source_memory", "target_memory", "is_async",
    "grid", "block", "registers", "shared_bytes",
]  # fmt: skip
"""What activities of one name mostly share, so that the page has it once."""


def write(recording: Recording, path: str | PathLike[str]) -> None:
    """Write a recording as a page that shows its timeline in any browser.

    The page holds the first 200,000 records, and says so if there are more.

    Parameters
    ----------
    recording : Recording
        What to show.
    path : str or path-like
        A file that is there is replaced once the new one is whole.
    """
    with replacing(path) as file:
        file.write(_page(recording).encode())


def _page(recording: Recording) -> str:
    shown, shares = _beginning(recording), _shares(recording)
    notes = [f'<p class="note">{escape(note)}</p>' for note in _notes(recording, shown)]
    parts = {
        "title": escape(f"Timeline, {format_time(recording.duration / 1e9)}"),
        "summary": escape(_summary(recording, shares)),
        "notes": "\n".join(notes),
        "recording": _embedded(_data(shown, shares)),
        "style": _file("style.css"),
        "script": "\n".join(_file(f"{part}.js") for part in _SCRIPTS),
    }
    # In one pass: a name in the recording may look like a place to fill.
    return re.sub("@@([a-z]+)@@", lambda place: parts[place[1]], _file("page.html"))


def _file(name: str) -> str:
    return resources.files("gpubench.render").joinpath("timeline_page", name).read_text("utf-8")


def _embedded(value: object) -> str:
    """Return JSON that neither ends the script element around it nor holds bare surrogates."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _beginning(recording: Recording) -> Recording:
    """Return as much of a recording as a page holds, with the end of what is shown as its end."""
    tables: dict[str, RecordArray] = {name: getattr(recording, name) for name in _TABLES}
    starts = np.concatenate([records["start"] for records in tables.values()])
    if len(starts) <= _MOST_RECORDS:
        ends = (int(records["end"].max(initial=0)) for records in tables.values())
        return replace(recording, end=max(recording.end, *ends))
    end = np.partition(starts, _MOST_RECORDS)[_MOST_RECORDS]
    kept = {name: records[records["start"] < end] for name, records in tables.items()}
    return replace(recording, end=int(end), **kept)


def _count(recording: Recording) -> int:
    return sum(len(getattr(recording, name)) for name in _TABLES)


def _shares(recording: Recording) -> dict[str, float]:
    """Return for each device, by its label, the part of the time in which it was busy."""
    shares = {total.device: total.share for total in device_totals(recording)}
    labels = groups(recording).items()
    return {label: shares.get(device, 0.0) for device, label in labels if device is not None}


def _summary(recording: Recording, shares: Mapping[str, float]) -> str:
    facts = [f"{visible(label)} busy {share:.1%}" for label, share in shares.items()]
    return " · ".join([format_time(recording.duration / 1e9), *facts])


def _notes(recording: Recording, shown: Recording) -> list[str]:
    total, n_shown = _count(recording), _count(shown)
    notes = []
    if not total:
        notes.append("Nothing was recorded.")
    if n_shown < total:
        notes.append(
            f"Only the first {n_shown:,} of {total:,} records are on this page, those of the first "
            f"{format_time(shown.duration / 1e9)}. Trace.export_chrome_trace writes all of them."
        )
    notes.extend(f"{note.message} {note.advice}" for note in recording_notes(recording))
    return notes


def _data(shown: Recording, shares: Mapping[str, float]) -> dict[str, object]:
    """Return what the page's script draws. Times are nanoseconds from the beginning."""
    layout = rows(shown)
    labels = groups(shown)
    places = {device: place for place, device in enumerate(labels)}
    slices = np.concatenate([no_records(SLICE), *(row.slices for row in layout)])
    configurations, configuration_of = _configurations(shown.activities)
    names, name_of, detail_of = _names_and_details(shown, slices, configuration_of)
    return {
        "first": min([0, *(int(row.slices["start"][0]) - shown.begin for row in layout)]),
        "last": shown.end - shown.begin,
        "kinds": KINDS,
        "memoryKinds": MEMORY_KINDS,
        "groups": [{"label": label, "share": shares.get(label)} for label in labels.values()],
        "rows": [
            {"group": places[row.device], "label": row.label, "count": len(row.slices)}
            for row in layout
        ],
        "names": names,
        "configurations": configurations,
        "records": {
            "kind": slices["kind"].tolist(),
            "name": name_of.tolist(),
            "start": _steps(slices["start"] - shown.begin, layout).tolist(),
            "duration": (slices["end"] - slices["start"]).tolist(),
            "depth": slices["depth"].tolist(),
            "detail": detail_of.tolist(),
            "call": _calls(shown, slices).tolist(),
        },
    }


def _steps(starts: IntArray, layout: Sequence[Row]) -> IntArray:
    """Return each start as the time since the one before it in its row, which is a short number."""
    steps = np.diff(starts, prepend=0)
    firsts = np.cumsum([0, *(len(row.slices) for row in layout)])[:-1]
    steps[firsts] = starts[firsts]
    return steps


def _names_and_details(
    shown: Recording, slices: RecordArray, configuration_of: IntArray
) -> tuple[list[str], IntArray, IntArray]:
    """Return the names that are used, and for each record the index of its own and its detail.

    The detail is an activity's configuration, a call's status, or the index of the name of a
    range's domain or of a compilation's source.
    """
    details = np.zeros(len(slices), np.int64)
    is_named = np.zeros(len(slices), bool)
    for number, kind in enumerate(KINDS):
        chosen = slices["kind"] == number
        places = slices["index"][chosen]
        if kind in ACTIVITY_KINDS:
            details[chosen] = configuration_of[places]
        elif kind in CALL_KINDS:
            details[chosen] = shown.calls["status"][places]
        else:
            details[chosen] = table(shown, kind)["domain"][places]
            is_named |= chosen
    both = np.concatenate([slices["name"], details[is_named]])
    used, indices = np.unique(both, return_inverse=True)
    details[is_named] = indices[len(slices) :]
    names = [_shortened(shown.names[index]) for index in used.tolist()]
    return names, indices[: len(slices)], details


def _shortened(name: str) -> str:
    if len(name) <= _NAME_HEAD + _NAME_TAIL:
        return name
    return f"{name[:_NAME_HEAD]} … {name[-_NAME_TAIL:]}"


def _configurations(activities: RecordArray) -> tuple[list[list[int]], IntArray]:
    """Return the different rows of `_CONFIGURATION`, flat, and for each activity which it has."""
    packed = repack_fields(activities[_CONFIGURATION])
    _, examples, indices = np.unique(
        packed.view(f"V{packed.dtype.itemsize}"), return_index=True, return_inverse=True
    )
    columns = [packed[column][examples] for column in _CONFIGURATION]
    flat = [column.reshape(len(column), math.prod(column.shape[1:])) for column in columns]
    return np.hstack(flat).tolist(), indices


def _calls(shown: Recording, slices: RecordArray) -> IntArray:
    """Return for each record the place of the call that launched it; -1 if none is known."""
    is_activity = slices["kind"] < len(ACTIVITY_KINDS)
    is_call = np.isin(slices["kind"], [KINDS.index(kind) for kind in CALL_KINDS])
    place_of_call = np.full(len(shown.calls) + 1, -1)  # the last one is that of no call, -1
    place_of_call[slices["index"][is_call]] = np.flatnonzero(is_call)
    places = np.full(len(slices), -1)
    places[is_activity] = place_of_call[shown.launches()[slices["index"][is_activity]]]
    return places
