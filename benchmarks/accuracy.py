"""Time the same work by every method, and by CuPy's own benchmark, in one run.

    python benchmarks/accuracy.py [--json FILE]

Prints the median GPU time of each in microseconds as a Markdown table, and the notes. "busy" is
the time in which the GPU did something, by its own records.
"""

import argparse
import json

import numpy as np
from cupyx.profiler import benchmark as cupyx_benchmark
from tabulate import tabulate
from work import rows

import gpubench

METHODS = ("events", "gated", "graph", "cupti")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="where to write the figures")
    options = parser.parse_args()
    table, notes = [], {}
    for name, (func, args) in rows().items():
        row = {"work": name}
        peer = cupyx_benchmark(func, args, n_repeat=100)
        row["cupyx"] = 1e6 * float(np.median(peer.gpu_times[0]))
        for method in METHODS:
            result = gpubench.benchmark(func, args, n_repeat=100, method=method)
            fallback = "" if result.method == method else f" ({result.method})"
            row[method] = f"{1e6 * result.gpu[0].median:.2f}{fallback}"
            if len(result.busy):
                row["busy"] = f"{1e6 * result.busy[0].median:.2f}"
            row[f"{method} std %"] = 100 * result.gpu[0].std / result.gpu[0].mean
            notes[f"{name}, {method}"] = [note.code for note in result.notes]
        row["cupyx std %"] = 100 * float(peer.gpu_times[0].std() / peer.gpu_times[0].mean())
        table.append(row)
    for what, codes in notes.items():
        print(f"{what}: {', '.join(codes) or 'no notes'}")
    print(tabulate(table, headers="keys", tablefmt="github", floatfmt=".2f"))
    print(f"\nfloor {result.floor}, clock step {result.clock_step}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rows": table, "environment": dict(result.environment)}, file, indent=1)


if __name__ == "__main__":
    main()
