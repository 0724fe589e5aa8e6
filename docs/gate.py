"""Draw `gate.svg`, the picture of how a call is timed: ``python docs/gate.py``.

Colours come from the page's theme where it has one, and follow light and dark.
"""

from dataclasses import dataclass
from pathlib import Path

SCALE = 13.0
"""Pixels in a microsecond."""

LEFT, WIDTH, HEIGHT = 60, 660, 388
LANE = 26
"""Height of a box, in pixels."""

STYLE = """
#gate { color: var(--color-foreground-primary, #222); max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { svg#gate:root { color: #ddd; background: #131416; } }
#gate text { font: 13px sans-serif; fill: currentColor; }
#gate .title { font-weight: bold; font-size: 15px; }
#gate .inside { fill: #fff; text-anchor: middle; }
#gate .middle { text-anchor: middle; }
#gate .host { fill: #2b6cb0; stroke: none; }
#gate .kernel { fill: #2f855a; stroke: none; }
#gate .gate { fill: url(#gate-bars); stroke: #b7791f; }
#gate .event { fill: #d9480f; stroke: #d9480f; stroke-width: 2; }
#gate .line { stroke: currentColor; stroke-opacity: 0.45; }
#gate .span { fill: none; stroke: #d9480f; stroke-width: 1.5; }
"""

DESCRIPTION = """Above: with events on an idle stream, the GPU reaches the start event at once and
then waits for each kernel to be launched, so the events are 24.8 microseconds apart. Below:
behind a gate, everything is queued before the GPU begins, so the events are 6.4 microseconds
apart."""


@dataclass(frozen=True)
class Panel:
    """One way to time, in microseconds from the left edge."""

    title: str
    host: tuple[tuple[str, float, float], ...]
    kernels: tuple[tuple[float, float], ...]
    events: tuple[float, float]
    gate: tuple[float, float] | None = None


PANELS = (
    Panel(
        "Events on an idle stream",
        host=(("event", 0, 4), ("launch 1", 4, 14), ("launch 2", 14, 23.6), ("event", 23.6, 27.6)),
        kernels=((14.5, 16.1), (24.4, 25.7)),
        events=(2.5, 27.3),
    ),
    Panel(
        "Behind a gate",
        host=(
            ("close", 0, 4),
            ("event", 4, 8),
            ("launch 1", 8, 18),
            ("launch 2", 18, 27.6),
            ("event", 27.6, 31.6),
            ("open", 31.6, 35),
        ),
        kernels=((38.2, 39.8), (40.6, 41.9)),
        events=(36.8, 43.2),
        gate=(3.5, 36.8),
    ),
)


def x(time: float) -> float:
    """Return the place of a time."""
    return round(LEFT + time * SCALE, 1)


def box(kind: str, begin: float, end: float, y: float) -> str:
    """Return a box from one time to another."""
    return (
        f'<rect class="{kind}" x="{x(begin) + 0.5}" y="{y}" rx="2" '
        f'width="{round((end - begin) * SCALE - 1, 1)}" height="{LANE}"/>'
    )


def text(kind: str, place: float, y: float, words: str) -> str:
    """Return some words."""
    return f'<text class="{kind}" x="{place}" y="{y}">{words}</text>'


def lane(label: str, y: float) -> list[str]:
    """Return the ground on which boxes stand."""
    return [
        text("label", 4, y + 18, label),
        f'<path class="line" d="M{LEFT} {y + LANE + 0.5}H{WIDTH - 10}"/>',
    ]


def panel(shown: Panel, top: float) -> list[str]:
    """Return the elements of one panel."""
    host, gpu = top + 18, top + 64
    parts = [text("title", 4, top, shown.title), *lane("host", host), *lane("GPU", gpu)]
    for label, begin, end in shown.host:
        parts.append(box("host", begin, end, host))
        parts.append(text("inside", (x(begin) + x(end)) / 2, host + 18, label))
    if shown.gate:
        begin, end = shown.gate
        parts.append(box("gate", begin, end, gpu))
    parts += [box("kernel", begin, end, gpu) for begin, end in shown.kernels]
    begin, end = shown.events
    parts += [
        f'<path class="event" d="M{x(event)} {gpu - 6}V{gpu + LANE}"/>' for event in (begin, end)
    ]
    low = gpu + LANE + 8
    parts.append(f'<path class="span" d="M{x(begin)} {low}v8H{x(end)}v-8"/>')
    read = f"{end - begin:.3g} us between the events"
    parts.append(text("middle", min((x(begin) + x(end)) / 2, WIDTH - 95), low + 24, read))
    return parts


def legend(y: float) -> list[str]:
    """Return what the colours mean."""
    parts = []
    for kind, place, words in (
        ("host", 0, "the host queues"),
        ("kernel", 12, "the GPU works"),
        ("gate", 23, "the gate holds the stream"),
    ):
        parts += [
            box(kind, place, place + 1.8, y - 14).replace(f'height="{LANE}"', 'height="16"'),
            text("label", x(place + 2.3), y, words),
        ]
    event = x(39)
    parts.append(f'<path class="event" d="M{event} {y - 15}v18"/>')
    parts.append(text("label", event + 8, y, "event"))
    return parts


def drawing() -> str:
    """Return the whole picture."""
    parts = [
        f'<svg id="gate" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" role="img" aria-labelledby="gate-title gate-text">',
        '<title id="gate-title">How events read without and with a gate</title>',
        f'<desc id="gate-text">{DESCRIPTION}</desc>',
        f"<style>{STYLE}</style>",
        '<defs><pattern id="gate-bars" width="8" height="8" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path d="M0 0V8" stroke="#b7791f" stroke-width="4"/>'
        "</pattern></defs>",
        *panel(PANELS[0], 18),
        *panel(PANELS[1], 190),
        *legend(HEIGHT - 14),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(drawing(), encoding="utf-8")
