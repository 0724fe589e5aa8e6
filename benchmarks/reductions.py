"""Which of CuPy's back ends is fastest for which reduction, by how much, as a Markdown table.

    python benchmarks/reductions.py [--quick] [--json FILE]

Each function runs under CUPY_ACCELERATORS "", "cub", "cutensor" and "cub,cutensor" by turns, in
one process. A cell is how many times faster (above 1) or slower (below 1) than without
accelerators; "same" is within 1 %, "?" unclear, "=" ran the same kernels, "-" unavailable, and
"wrong" returned something else.
"""

import argparse
import json

from tabulate import tabulate

import gpubench

SETTINGS = ("", "cub", "cutensor", "cub,cutensor")
SIZES = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
FUNCTIONS = ("sum", "prod", "max", "argmax", "cumsum", "mean", "histogram")
DTYPES = ("float32", "float64", "int32")


def layouts(n):
    """Return name -> (shape, axis) for about `n` elements."""
    side = round(n ** (1 / 3))
    return {
        "all": ((n,), None),
        "leading": ((n // side, side), 0),
        "middle": ((side, n // side**2, side), 1),
        "trailing": ((n // side, side), -1),
    }


def cases(sizes):
    """Yield (function name, dtype, n, layout, call, array): each function where it makes sense."""
    import cupy as cp

    rng = cp.random.default_rng(0)
    for n in sizes:
        for dtype in DTYPES:
            # around 1, so that products stay finite
            values = rng.random(n, dtype="f4") * 0.02 + 0.99
            values = (values * 100).astype(dtype) if dtype == "int32" else values.astype(dtype)
            for layout, (shape, axis) in layouts(n).items():
                size = 1
                for length in shape:
                    size *= length
                array = values[:size].reshape(shape)
                for name in FUNCTIONS:
                    if name == "histogram" and layout != "all":
                        continue
                    yield name, dtype, n, layout, _call(cp, name, axis), array
            cp.get_default_memory_pool().free_all_blocks()


def _call(cp, name, axis):
    if name == "histogram":
        return lambda a: cp.histogram(a, bins=64, range=(0.0, 200.0))[0]
    function = getattr(cp, name)
    return lambda a: function(a, axis=axis)


def cell(arm):
    """Say in a word how an arm did against CuPy without accelerators."""
    words = {
        "same": "same",
        "unclear": "?",
        "no effect": "=",
        "unavailable": "-",
        "failed": "failed",
        "MISMATCH": "wrong",
    }
    if arm.verdict in words:
        return words[arm.verdict]
    return f"{1 / arm.judgement.ratio:.2f}"


def winner(comparison):
    """Name the arm that is fastest by more than the margin; of equal ones, the simplest."""
    faster = [arm for arm in comparison.others if arm.verdict == "faster"]
    if not faster:
        return "none"
    least = min(arm.judgement.ratio for arm in faster)
    limit = least * (1 + comparison.margin)
    return next(arm.name for arm in faster if arm.judgement.ratio <= limit)


def measure(sizes, seconds):
    for name, dtype, n, layout, call, array in cases(sizes):
        comparison = gpubench.compare_accelerators(
            call, (array,), settings=SETTINGS, isolate=False, n_blocks=8, max_duration=seconds
        )
        yield {
            "function": name,
            "dtype": dtype,
            "n": n,
            "axis": layout,
            "none (us)": 1e6 * comparison.results["none"].gpu[0].median,
            **{other: cell(comparison[other]) for other in comparison.verdict},
            "winner": winner(comparison),
            "ran": {arm.name: arm.back_end for arm in comparison.arms},
            "notes": [note.code for note in comparison.notes],
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1e3 and 1e6 elements only")
    parser.add_argument("--seconds", type=float, default=1.0, help="wall time for each row")
    parser.add_argument("--json", help="where to write all figures")
    options = parser.parse_args()
    gpubench.preload_cutensor()
    sizes = (10**3, 10**6) if options.quick else SIZES
    rows = list(measure(sizes, options.seconds))
    shown = [
        {key: value for key, value in row.items() if key not in ("ran", "notes")} for row in rows
    ]
    environment = gpubench.benchmark(len, ((),), n_repeat=1).environment
    (device,) = environment["devices"]
    versions = {**environment["frameworks"], "CUDA driver": environment["cuda"]["driver"]}
    print(device["name"], *(f"{k} {v}" for k, v in versions.items()), environment["date"], sep=", ")
    print()
    print(tabulate(shown, headers="keys", tablefmt="github", floatfmt=".2f"))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows, "environment": dict(environment)}, file, indent=1)


if __name__ == "__main__":
    main()
