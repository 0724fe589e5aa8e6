"""What recording costs: records a second, memory, and how much slower the host launches.

    python benchmarks/records.py [--launches N] [--json FILE]

Launches empty kernels, without recording, with records of kernels, and with records of calls too.
"""

import argparse
import json
import resource
import time

import cupy as cp
from tabulate import tabulate
from work import many_launches

import gpubench

KINDS = {
    "kernels": ["kernel", "memcpy", "memset"],
    "kernels and calls": ["kernel", "memcpy", "memset", "runtime", "driver"],
}


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def timed_launches(n):
    begin = time.perf_counter()
    many_launches(n)
    launched = time.perf_counter() - begin
    cp.cuda.runtime.deviceSynchronize()
    return launched


def recorded(kinds, n):
    before, begin = peak_bytes(), time.perf_counter()
    with gpubench.record_activity(kinds) as trace:
        launched = timed_launches(n)
    whole = time.perf_counter() - begin
    recording = trace.recording
    n_records = len(recording.activities) + len(recording.calls)
    return {
        "kernels": len(recording.of_kind("kernel")),
        "dropped": recording.n_dropped,
        "kernels/s": len(recording.of_kind("kernel")) / whole,
        "records/s of delivery": n_records / max(recording.delivery_time, 1e-9),
        "us a launch": 1e6 * launched / n,
        "us a launch, as the trace says": 1e6 * (recording.recorded_launch_time or 0),
        "bytes a record": (peak_bytes() - before) / n_records,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=200_000)
    parser.add_argument("--json", help="where to write the figures")
    options = parser.parse_args()
    many_launches(1000)
    table = {"nothing": {"us a launch": 1e6 * timed_launches(options.launches) / options.launches}}
    for name, kinds in KINDS.items():
        with gpubench.record_activity(kinds):
            many_launches(100)
        table[name] = recorded(kinds, options.launches)
    rows = [{"recorded": name, **row} for name, row in table.items()]
    print(tabulate(rows, headers="keys", tablefmt="github", floatfmt=".4g"))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
