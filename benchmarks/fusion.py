"""Three elementwise kernels, or one that does the same: what is not moved is not waited for.

    python benchmarks/fusion.py [FILE.png] [--counters]

``a * x + y`` and a square root, unfused, read and write 4 + 3 arrays; fused, 2 + 1. With
--counters, Nsight Compute counts the bytes.
"""

import argparse

import cupy as cp

from gpubench import annotate, product, sweep

ITEM_BYTES = 4


@cp.fuse()
def fused(x, y):
    return cp.sqrt(2 * x + y)


def unfused(x, y):
    return cp.sqrt(2 * x + y)


def fusion(n):
    x, y = cp.ones(n, "f4"), cp.ones(n, "f4")
    with annotate("unfused"):
        unfused(x, y)
    with annotate("fused"):
        fused(x, y)


# unfused: 2 * x reads 1 and writes 1, + y reads 2 and writes 1, the root reads 1 and writes 1
MOVED = {
    "unfused": lambda n: 7 * ITEM_BYTES * n,
    "fused": lambda n: 3 * ITEM_BYTES * n,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("png", nargs="?", default="fusion.png")
    parser.add_argument("--counters", action="store_true")
    options = parser.parse_args()
    counters = ["dram__bytes_read.sum", "dram__bytes_write.sum"] if options.counters else None
    results = sweep.run(
        fusion,
        product(n=[10**6, 10**7, 10**8]),
        n_repeat=30,
        bytes=MOVED,
        counters=counters,
    )
    print(results)
    for each in results.measurements:
        counted = sum(each.counters.values())
        if counted:
            declared = MOVED[each.region](each.config["n"])
            print(f"{each.config} {each.region}: counted {counted:.4g} of {declared:.4g} bytes")
    results.plot(x="n", y="gpu_time", hue="region").savefig(options.png, dpi=120)


if __name__ == "__main__":
    main()
