"""A recording as text: what the host and the devices spent their time on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

import numpy as np

from gpubench.activity.intervals import covered_time
from gpubench.activity.notes import recording_notes
from gpubench.activity.recording import Recording
from gpubench.activity.summary import (
    activity_totals,
    call_time,
    call_totals,
    compilation_totals,
    device_totals,
    range_summary,
    range_totals,
    share,
)
from gpubench.devices.records import ACTIVITY_KINDS, CALL_KINDS
from gpubench.render import timing
from gpubench.render.columns import (
    Column,
    kinds_of,
    range_columns,
    table_of,
    total_columns,
)
from gpubench.render.content import visible
from gpubench.render.names import short_names
from gpubench.render.units import format_time

_NOTE_WIDTH = 80

_NAME_WIDTH = 40
"""Characters of a name below a range, where there are more columns."""


def short_form(recording: Recording) -> str:
    """Return how long the block took and what was recorded of it, in one line."""
    return f"<Trace of {_extent(recording)}>"


def table(recording: Recording) -> str:
    """Return what the host and the devices spent their time on, by name.

    Returns
    -------
    str
        The host's calls, each device's activities, ranges, marks, compilations and notes, as far
        as there are any.
    """
    names = short_names(recording.names)
    sections = [
        f"Trace of {_extent(recording)}",
        _calls(recording, names),
        *_devices(recording, names),
        *_ranges(recording, names),
        *_compilations(recording, names),
        *_notes(recording),
    ]
    return "\n\n".join(sections)


def range_table(recording: Recording) -> str:
    """Return each range's time on the host and, below it, what was launched in it.

    Returns
    -------
    str
        A table, and below it what belongs to no range or can't be told; a sentence if there are
        no ranges.
    """
    summary = range_summary(recording)
    ranges = [total for total in summary.ranges if total.host.max_time]
    if not ranges:
        return "There are no ranges." if "range" in recording.kinds else "Ranges were not recorded."
    names = short_names(recording.names, _NAME_WIDTH)
    sections = [
        f"Trace of {_extent(recording)}",
        _section("Ranges, and what was launched in each", range_columns(ranges, names)),
    ]
    if not _has(recording, CALL_KINDS):
        sections.append(
            "What was launched in them is unknown: calls of CUDA's API were not recorded (add "
            '"runtime" and "driver" to kinds).'
        )
    elif summary.n_outside:
        whole = _count(len(recording.activities), "activity")
        sections.append(f"In no range, as far as is known: {summary.n_outside:,} of {whole}.")
    return "\n\n".join([*sections, *_notes(recording)])


def timeline_table(recording: Recording) -> str:
    """Return every activity, by start: when it started, its time, the device, and what it was."""
    rows = recording.activities
    if not len(rows):
        return timing.NOTHING
    names = short_names(recording.names)
    texts = [names[name] for name in recording.names]
    starts = ((rows["start"] - recording.begin) / 1e6).tolist()
    elapsed = ((rows["end"] - rows["start"]) / 1e6).tolist()
    columns = {
        "start": list(map(timing.milliseconds, starts)),
        "time": list(map(timing.milliseconds, elapsed)),
        "device": [f"GPU-{device}" for device in rows["device"].tolist()],
        "activity": [texts[name] for name in rows["name"].tolist()],
    }
    return timing.timeline(columns)


def activity_table(recording: Recording) -> str:
    """Return how often each activity ran and what it took, by name."""
    totals = activity_totals(recording)
    if not totals:
        return timing.NOTHING
    names = short_names(recording.names)
    return timing.activity_summary(
        timing.Total(names[total.name], total.n_calls, 1e3 * total.total_time) for total in totals
    )


def device_table(recording: Recording) -> str:
    """Return how much each device did and what that took."""
    devices = device_totals(recording)
    if not devices:
        return timing.NOTHING
    return timing.device_summary(
        timing.Total(
            _label(device.device, recording),
            sum(total.n_calls for total in device.activities),
            1e3 * sum(total.total_time for total in device.activities),
        )
        for device in devices
    )


def _extent(recording: Recording) -> str:
    activities = _count(len(recording.activities), "activity")
    n_devices = len(np.unique(recording.activities["device"]))
    if n_devices > 1:
        activities += f" on {n_devices} GPUs"
    others = {
        "API call": recording.calls,
        "range": recording.ranges,
        "compilation": recording.compilations,
    }
    facts = [activities, *(_count(len(rows), noun) for noun, rows in others.items() if len(rows))]
    return f"{format_time(recording.duration / 1e9)}: {', '.join(facts)}"


def _count(n: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def _has(recording: Recording, kinds: Iterable[str]) -> bool:
    return not set(kinds).isdisjoint(recording.kinds)


def _label(device: int, recording: Recording) -> str:
    name = recording.devices.get(device)
    return f"GPU-{device} ({visible(name)})" if name else f"GPU-{device}"


def _calls(recording: Recording, names: Mapping[str, str]) -> str:
    if not _has(recording, CALL_KINDS):
        return "Calls of CUDA's API were not recorded."
    totals = call_totals(recording)
    if not totals:
        return "The host called nothing of CUDA's API."
    seconds = call_time(recording)
    return _section(
        f"The host was in CUDA's API for {_of_trace(seconds, recording)}",
        total_columns(totals, names),
    )


def _devices(recording: Recording, names: Mapping[str, str]) -> list[str]:
    if not _has(recording, ACTIVITY_KINDS):
        return ["What the GPU did was not recorded."]
    sections = [
        _section(
            f"{_label(total.device, recording)} was busy for "
            f"{_of_trace(total.busy_time, recording)}",
            total_columns(total.activities, names),
        )
        for total in device_totals(recording)
    ]
    return sections or ["No GPU did anything."]


def _ranges(recording: Recording, names: Mapping[str, str]) -> list[str]:
    totals = range_totals(recording)
    ranges = [total for total in totals if total.max_time]
    marks = [total for total in totals if not total.max_time]
    sections = []
    if ranges:
        sections.append(_section("Ranges, on the host", total_columns(ranges, names, "domain")))
    if marks:
        columns = [
            ("times", [f"{total.n_calls:,}" for total in marks]),
            ("domain", kinds_of(marks, names)),
            ("name", [names[total.name] for total in marks]),
        ]
        sections.append(_section("Marks", columns))
    return sections


def _compilations(recording: Recording, names: Mapping[str, str]) -> list[str]:
    totals = compilation_totals(recording)
    if not totals:
        return []
    seconds = covered_time(recording.compilations)
    heading = f"CuPy compiled for {_of_trace(seconds, recording)}"
    return [_section(heading, total_columns(totals, names, "source"))]


def _notes(recording: Recording) -> list[str]:
    notes = [
        textwrap.fill(str(note), _NOTE_WIDTH, initial_indent="  ! ", subsequent_indent="    ")
        for note in recording_notes(recording)
    ]
    return ["\n".join(notes)] if notes else []


def _of_trace(seconds: float, recording: Recording) -> str:
    return f"{format_time(seconds)} ({share(seconds, recording):.1%} of the trace)"


def _section(heading: str, columns: Iterable[Column]) -> str:
    return f"{heading}:\n{table_of(columns)}"
