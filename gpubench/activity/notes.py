"""What to know of a recording before its figures are trusted."""

from __future__ import annotations

from gpubench.activity.recording import Recording
from gpubench.activity.summary import share
from gpubench.notes import Note
from gpubench.render.units import format_time

_NOISE = 1.05
"""How much longer launches may seem to take that recording doesn't slow down."""


def recording_notes(recording: Recording) -> tuple[Note, ...]:
    """Return what recording lost, and what it cost the host."""
    notes = (dropped_records(recording), slower_host(recording))
    return tuple(note for note in notes if note)


def dropped_records(recording: Recording) -> Note | None:
    """Records were lost for want of room."""
    if not recording.n_dropped:
        return None
    return Note(
        "dropped-records",
        f"{recording.n_dropped:,} records were lost for want of room, so counts and totals are too "
        "low.",
        "Record a shorter block or fewer kinds.",
    )


def slower_host(recording: Recording) -> Note | None:
    """What recording costs the host was measured."""
    costs = []
    plain, recorded = recording.launch_time, recording.recorded_launch_time
    if plain is not None and recorded is not None and recorded > _NOISE * plain:
        costs.append(
            f"made a launch take {format_time(recorded)} on the host instead of "
            f"{format_time(plain)}"
        )
    if recording.delivery_time:
        part = share(recording.delivery_time, recording)
        costs.append(
            f"kept the interpreter busy for {format_time(recording.delivery_time)} "
            f"({part:.1%} of the trace)"
        )
    if not costs:
        return None
    return Note(
        "slower-host",
        f"Recording {' and '.join(costs)}.",
        "Kernels' own times are not affected, gaps between them are; fewer kinds cost less.",
    )
