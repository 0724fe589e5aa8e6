"""Matrix products in single and half precision: how much faster is half, and from which size on?

python benchmarks/precision.py [FILE.png]
"""

import sys

import cupy as cp

import gpubench
from gpubench import annotate, product, sweep

SIZES = [256, 512, 1024, 2048, 4096, 8192]


@sweep(
    product(n=SIZES),
    n_repeat=30,
    order="random",
    derive={"rate": lambda t, n: (2 * n**3 / t / 1e12, "TFLOP/s")},
    collect=["sm_clock", "temperature"],
)
def precision(n):
    a = cp.ones((n, n), "f4")
    h = a.astype("f2")
    with annotate("fp32"):
        a @ a
    with annotate("fp16"):
        h @ h


def main():
    results = precision()
    print(results)
    path = sys.argv[1] if len(sys.argv) > 1 else "precision.png"
    results.plot(x="n", y="rate", hue="region").savefig(path, dpi=120)
    print(gpubench.__version__, results.environment["devices"])


if __name__ == "__main__":
    main()
