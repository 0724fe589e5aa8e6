"""How many runs are enough? The same work, measured with more and more of them.

python benchmarks/noise.py [FILE.png]
"""

import sys

import cupy as cp
from work import row_norms

from gpubench import SweepResult, benchmark
from gpubench.sweeps.measurement import Measurement

RUNS = [6, 10, 20, 50, 100, 200, 500, 1000]


def main():
    a = cp.ones((256, 1024), "f4")
    results = SweepResult(
        name="noise",
        parameters=("runs",),
        measurements=tuple(
            Measurement(
                config={"runs": n},
                region="row norms",
                result=benchmark(row_norms, (a,), n_repeat=n),
            )
            for n in RUNS
        ),
    )
    print(results)
    path = sys.argv[1] if len(sys.argv) > 1 else "noise.png"
    results.plot(x="runs", y="gpu_time").savefig(path, dpi=120)


if __name__ == "__main__":
    main()
