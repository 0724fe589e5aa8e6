"""What gpubench and other tools say of the same work, against the GPU's own records of it.

    python benchmarks/accuracy.py [--json FILE] [--markdown FILE] [--png FILE]
    python benchmarks/accuracy.py --from FILE.json [--markdown FILE] [--png FILE]

Times everything in `work.works` with every tool of `peers.tools` in one run on one GPU. Writes the
readings as JSON, as Markdown tables of bias, relative deviation and wall time, and as a picture of
the bias against the length of a kernel. The second form needs no GPU.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path

from tabulate import tabulate

OURS = ("gated", "gated, bursts", "graph", "cupti", "events")

COLOURS = (
    *("#0b5394", "#e06c00", "#2a8f3c", "#c0143c", "#7d3cb5"),
    *("#6b6b6b", "#9a7b4f", "#4f8a8b", "#b56576", "#8a8a5c", "#355070"),
)
"""Of gpubench's methods, and muted ones of the others."""

TOLERANCE = 2.5e-6
"""Seconds by which a reading that counts as right may be off ..."""

RELATIVE_TOLERANCE = 0.05
"""... or this part of the truth, if that is more."""

TIE = 1e-7
CLOCK_STEP = 3.2e-8
"""Seconds between two values of the H200's clock for events."""


def measure():
    """Time everything; return the readings as JSON values."""
    from peers import Reading, tools, truth
    from work import works

    import gpubench

    found, rows = tools(), []
    for work in works():
        before = {cache: truth(work, cache) for cache in ("warm", "cold")}
        readings = {}
        for tool in found:
            cache = tool.cache_for(work)
            if cache is None:
                continue
            begin = time.perf_counter()
            try:
                reading = tool.read(work)
            except Exception as error:  # noqa: BLE001  # whatever a tool makes of a work
                lines = str(error).strip().splitlines() or [""]
                reading = Reading(error=f"{type(error).__name__}: {lines[0]}")
            is_span = not tool.is_busy and work.can_queue
            readings[tool.name] = {**asdict(reading), "cache": cache, "is_span": is_span}
            took = time.perf_counter() - begin
            print(f"{work.name}, {tool.name}: {took:.1f} s", file=sys.stderr, flush=True)
        after = {cache: truth(work, cache) for cache in ("warm", "cold")}
        for reading in readings.values():
            pair = [t[reading["cache"]][reading["is_span"]] for t in (before, after)]
            reading["truth"] = statistics.mean(pair)
            reading["truth_error"] = abs(pair[1] - pair[0]) / 2
        rows.append({"work": work.name, "known_time": work.known_time, "readings": readings})
    environment = gpubench.benchmark(len, ((),), n_repeat=1).environment
    return {"rows": rows, "environment": dict(environment)}


def bias(reading):
    """Return by how many seconds a reading is off; None if there is none."""
    return None if reading["time"] is None else reading["time"] - reading["truth"]


def is_within(reading, absolute, relative):
    """Whether a reading is off by no more than the higher limit, as far as the truth is known.

    The truth is known to half the difference between before and after, and to the clock's step.
    """
    limit = max(absolute, relative * reading["truth"]) + reading["truth_error"] + CLOCK_STEP
    return bias(reading) is not None and abs(bias(reading)) <= limit


def is_right(reading):
    """Whether a reading is off by no more than a small part of it, or a few microseconds."""
    return is_within(reading, TOLERANCE, RELATIVE_TOLERANCE)


def failures(rows):
    """Yield what gave no reading, and which readings are wrong without a word."""
    for row in rows:
        for tool, reading in row["readings"].items():
            if reading["error"]:
                yield f"{row['work']}, {tool}: no reading ({reading['error'][:120]})"
            elif not is_right(reading):
                said = ", ".join(reading["notes"]) or "without a word"
                yield f"{row['work']}, {tool}: off by {1e6 * bias(reading):+.1f} us, {said}"


def promises(rows):
    """Yield what gpubench promises, whether it holds, and where it doesn't."""
    ours = {tool: [(r["work"], r["readings"].get(tool)) for r in rows] for tool in OURS}

    def broken(tool, is_kept):
        return [
            f"{work} ({1e6 * bias(reading):+.2f} us)"
            for work, reading in ours[tool]
            if reading and bias(reading) is not None and not is_kept(reading)
        ]

    def silent(reading):
        return not is_right(reading) and not reading["notes"]

    for tool in ("gated", "gated, bursts"):
        yield (
            f"{tool}: within 2.5 us at any length, where a gate can hold the call",
            broken(tool, lambda r: is_within(r, 2.5e-6, 0) or "waits-inside" in r["notes"]),
        )
        yield (
            f"{tool}: within 0.5 % from 500 us on, likewise",
            broken(
                tool,
                lambda r: (
                    r["truth"] < 500e-6 or is_within(r, 0, 0.005) or "waits-inside" in r["notes"]
                ),
            ),
        )
    yield "cupti: within 2 % or 0.05 us", broken("cupti", lambda r: is_within(r, 5e-8, 0.02))
    yield "the lowest bias of all in every row", list(_beaten(rows))
    yield (
        "no wrong reading without a note",
        [f"{tool}: {each}" for tool in OURS for each in broken(tool, lambda r: not silent(r))],
    )
    yield (
        "wall time a sample at most 1.1 times cupyx.profiler's, where samples share gates",
        list(_slower(rows)),
    )


def _beaten(rows):
    for row in rows:
        off = {t: abs(bias(r)) for t, r in row["readings"].items() if bias(r) is not None}
        best = min(off, key=off.get)
        ours = min(off[tool] for tool in OURS if tool in off)
        if ours > off[best] + TIE + row["readings"][best]["truth_error"]:
            yield f"{row['work']} ({best} {1e6 * off[best]:.2f} us, gpubench {1e6 * ours:.2f} us)"


def _slower(rows):
    for row in rows:
        ours, theirs = (row["readings"].get(t) for t in ("gated, bursts", "cupyx.profiler"))
        if not ours or not theirs or {"side-stream", "waits-inside"} & set(ours["notes"]):
            continue
        if ours["wall_time"] > 1.1 * theirs["wall_time"]:
            yield f"{row['work']} ({ours['wall_time'] / theirs['wall_time']:.2f} times)"


def markdown(measured):
    """Return the tables, and what is wrong with them, as Markdown."""
    rows = measured["rows"]
    names = list(dict.fromkeys(tool for row in rows for tool in row["readings"]))

    def table(cell):
        return tabulate(
            [
                [row["work"], _truth(row), *(cell(row["readings"].get(name)) for name in names)]
                for row in rows
            ],
            headers=["work", "truth (us)", *names],
            tablefmt="github",
            disable_numparse=True,
            colalign=("left", *["right"] * (len(names) + 1)),
        )

    def bias_cell(reading):
        if not reading or bias(reading) is None:
            return "" if not reading else "fails"
        text = _signed(1e6 * bias(reading))
        if is_right(reading):
            return text
        return f"{text} *" if reading["notes"] else f"**{text}**"

    def std_cell(reading):
        known = reading and reading["std"] is not None and reading["time"]
        return f"{100 * reading['std'] / reading['time']:.1f}" if known else ""

    def wall_cell(reading):
        known = reading and reading["wall_time"] is not None
        return f"{1e6 * reading['wall_time']:,.0f}" if known else ""

    listed = [f"- {each}" for each in failures(rows)] or ["None."]
    kept = [
        f"- {what}: {'holds' if not where else 'fails for ' + '; '.join(where)}"
        for what, where in promises(rows)
    ]
    return "\n\n".join(
        [
            _machine(measured["environment"]),
            "## Bias, in microseconds\n\nThe median less the truth. **Bold**: off by more than "
            "2.5 us and 5 %, and the tool doesn't say so; with a star, it does.",
            table(bias_cell),
            "## Relative standard deviation, in percent",
            table(std_cell),
            "## Wall time a sample, in microseconds",
            table(wall_cell),
            "## Failures\n\n" + "\n".join(listed),
            "## What gpubench promises\n\n" + "\n".join(kept),
        ]
    )


def _signed(value):
    return f"{value:+.2f}" if abs(value) < 10 else f"{value:+,.0f}"


def _truth(row):
    truths = {r["truth"] for name, r in row["readings"].items() if name == "gated"}
    return f"{1e6 * truths.pop():,.2f}" if truths else ""


def _machine(environment):
    gpu = ", ".join(device["name"] for device in environment["devices"]) or "no GPU"
    frameworks = ", ".join(f"{k} {v}" for k, v in environment["frameworks"].items())
    major, minor = divmod(environment["cuda"]["driver"] // 10, 100)
    return (
        f"{gpu}; CUDA driver {major}.{minor}; {frameworks}; Python "
        f"{environment['python']}; {environment['cpu']}; gpubench {environment['gpubench']}; "
        f"{environment['date'][:10]}. Written by `python benchmarks/accuracy.py`."
    )


def picture(measured, path):
    """Draw the bias against the length of a kernel that spins."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.add_subplot()
    spins = [
        row for row in measured["rows"] if row["work"].startswith("spin") and row["known_time"]
    ]
    spins = [row for row in spins if row["work"].endswith(" us")]
    for index, tool in enumerate(dict.fromkeys(t for row in spins for t in row["readings"])):
        points = [(r["readings"][tool]["truth"], bias(r["readings"][tool])) for r in spins]
        shown = [(1e6 * x, max(abs(1e6 * y), 1e-3)) for x, y in points if y is not None]
        is_ours = tool in OURS
        axes.plot(
            *zip(*shown, strict=True),
            label=f"gpubench, {tool}" if is_ours else tool,
            color=COLOURS[index % len(COLOURS)],
            marker="os^Dv<>pX*h"[index % 11],
            linestyle="-" if is_ours else "--",
            linewidth=2 if is_ours else 1,
            markersize=4,
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="length of the kernel, by the GPU's own record (us)",
        ylabel="how far the median is off (us; 0.001 and less at the bottom)",
    )
    axes.grid(color="0.85")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", help="readings of an earlier run, as JSON")
    for name in ("json", "markdown", "png"):
        parser.add_argument(f"--{name}", type=Path, help=f"where to write the {name} file")
    options = parser.parse_args()
    if options.source:
        measured = json.loads(Path(options.source).read_text(encoding="utf-8"))
    else:
        measured = measure()
    text = markdown(measured)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(text + "\n", encoding="utf-8")
    if options.png:
        picture(measured, options.png)


if __name__ == "__main__":
    main()
