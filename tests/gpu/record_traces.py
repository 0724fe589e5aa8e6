"""Record the traces of a real GPU that the tests without one read.

    python tests/gpu/record_traces.py FOLDER

Prints what gpubench says of each: tables, ranges, diagnosis.
"""

import pathlib
import sys
import threading
import time
from datetime import datetime

import cupy as cp
import numpy as np

import gpubench
from gpubench import record_activity, time_range


def launch_bound():
    """Run a loop of kernels that are shorter than their launches."""
    a = cp.ones(1000, "f4")
    cp.sqrt(a)
    with record_activity() as trace, time_range("loop"):
        for _ in range(200):
            cp.sqrt(a)
    return trace


def copies():
    """Copy to and from pageable and pinned memory, between pieces of work."""
    a = cp.ones(4 * 10**6, "f4")
    host = np.ones(a.size, "f4")
    pinned = cp.cuda.alloc_pinned_memory(a.nbytes)
    side = cp.cuda.Stream(non_blocking=True)
    cp.sqrt(a)
    with record_activity() as trace:
        for _ in range(5):
            with time_range("pageable"):
                a.set(host)
                cp.sqrt(a).get()
            with time_range("pinned"):
                a.data.copy_from_host_async(pinned.ptr, a.nbytes, side)
                a.data.memset_async(0, a.nbytes, side)
    return trace


def compiling():
    """Compile kernels inside the recorded block."""
    a = cp.ones(10**6, "f4")
    stamp = time.time_ns()
    kernels = [
        cp.ElementwiseKernel("float32 x", "float32 y", f"y = x + {stamp + i}", f"fresh_{i}")
        for i in range(2)
    ]
    with record_activity() as trace:
        for i, kernel in enumerate(kernels):
            with time_range("step", payload=i):
                kernel(a)
                (a * 2).sum()
    return trace


def streams_and_graphs():
    """Use three streams, two threads and a graph, and the null stream between them."""
    a = cp.ones(4 * 10**6, "f4") + 1
    left, right = cp.cuda.Stream(non_blocking=False), cp.cuda.Stream(non_blocking=True)
    with right:
        cp.exp(a), cp.sqrt(a)
        right.begin_capture()
        cp.exp(a), cp.sqrt(a)
        graph = right.end_capture()

    def other_thread():
        with time_range("other thread"), left:
            for _ in range(20):
                cp.sin(a)

    with left:
        cp.sin(a)
    with record_activity() as trace:
        thread = threading.Thread(target=other_thread, name="worker")
        thread.start()
        with time_range("main thread"):
            for _ in range(20):
                graph.launch(right)
                a + 1
        thread.join()
    return trace


def null_stream():
    """Give the null stream and another one work by turns, both far ahead of the GPU."""
    a, b = cp.ones(10**7, "f4") + 1, cp.ones(10**7, "f4")
    side = cp.cuda.Stream(non_blocking=False)
    with side:
        cp.sin(b)
    with record_activity() as trace:
        for _ in range(20):
            with side:
                cp.sin(b)
            a + 1
    return trace


def frameworks():
    """Let CuPy, PyTorch and Triton work in turn."""
    import torch

    x = torch.rand(10**6, device="cuda")
    a = cp.ones(10**6, "f4")
    compiled = torch.compile(lambda x: torch.sin(x).relu() + x)
    square = torch.rand((512, 512), device="cuda")
    a.sum(), compiled(x), x.sin(), square @ square
    with record_activity() as trace:
        for _ in range(3):
            with time_range("CuPy"):
                a.sum()
            with time_range("PyTorch"):
                x.sin() + x
                square @ square
            with time_range("Triton"):
                compiled(x)
    return trace


SCENES = (launch_bound, copies, compiling, streams_and_graphs, null_stream, frameworks)


def main():
    folder = pathlib.Path(sys.argv[1])
    print(datetime.now().date(), dict(gpubench.benchmark(len, ((),), n_repeat=1).environment))
    for scene in SCENES:
        trace = scene()
        path = folder / f"{scene.__name__}.npz"
        trace.save(path)
        print(f"\n=== {scene.__name__} ({path.stat().st_size} bytes): {scene.__doc__}")
        print(trace.table(), trace.ranges(), trace.diagnose(), sep="\n\n")


if __name__ == "__main__":
    main()
