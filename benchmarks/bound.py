"""What limits a matrix product, a scaling and a softmax: arithmetic, memory or waiting?

    python benchmarks/bound.py [FILE.png] [--counters]

By the operations and bytes that each needs, and the peaks of the device; with --counters, by what
Nsight Compute measures.
"""

import argparse

import cupy as cp

from gpubench import annotate, product, sweep

ITEM_BYTES = 4


def bound(n):
    a = cp.ones((n, n), "f4")
    with annotate("matmul"):
        a @ a
    with annotate("scale"):
        a * 2
    with annotate("softmax"):
        e = cp.exp(a - a.max(axis=1, keepdims=True))
        e / e.sum(axis=1, keepdims=True)


FLOPS = {
    "matmul": lambda n: 2 * n**3,
    "scale": lambda n: n**2,
    "softmax": lambda n: 5 * n**2,
}
# softmax: max reads 1, minus 1 + 1, exp 1 + 1, sum reads 1, the quotient 1 + 1
MOVED = {
    "matmul": lambda n: 3 * ITEM_BYTES * n**2,
    "scale": lambda n: 2 * ITEM_BYTES * n**2,
    "softmax": lambda n: 8 * ITEM_BYTES * n**2,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("png", nargs="?", default="bound.png")
    parser.add_argument("--counters", action="store_true")
    options = parser.parse_args()
    results = sweep.run(
        bound,
        product(n=[1024, 4096, 8192]),
        n_repeat=30,
        flops=FLOPS,
        bytes=MOVED,
        counters="roofline" if options.counters else None,
    )
    print(results)
    results.plot(x="n", y="flop_rate", hue="region").savefig(options.png, dpi=120)


if __name__ == "__main__":
    main()
