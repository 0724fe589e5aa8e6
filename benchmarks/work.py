"""GPU work of known kinds, to try timers on. Needs CuPy and a GPU; PyTorch is optional."""

import time

import cupy as cp

_SPIN = cp.RawKernel(
    r"""
    extern "C" __global__ void spin(unsigned long long nanoseconds) {
        unsigned long long begin, now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
        do {
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        } while (now - begin < nanoseconds);
    }
    """,
    "spin",
)
_EMPTY = cp.RawKernel('extern "C" __global__ void empty() {}', "empty")


def spin(seconds):
    """Keep one thread of the GPU busy for that long."""
    _SPIN((1,), (1,), (cp.uint64(round(seconds * 1e9)),))


def empty():
    """Launch a kernel that does nothing."""
    _EMPTY((1,), (1,), ())


def on_side_stream(seconds, stream=None):
    """Spin on a non-blocking stream, a new one unless given."""
    with stream or cp.cuda.Stream(non_blocking=True):
        spin(seconds)


def sleep_then_spin(seconds, host_seconds=1e-3):
    """Let the host sleep before the launch."""
    time.sleep(host_seconds)
    spin(seconds)


def many_launches(n):
    """Launch n empty kernels."""
    for _ in range(n):
        _EMPTY((1,), (1,), ())


def row_norms(a):
    """The project's running example: three kernels on a small array."""
    return cp.sqrt(cp.sum(a**2, axis=-1))


def rows():
    """Return name -> (function, arguments) for work from nothing to half a millisecond."""
    rng = cp.random.default_rng(0)
    small, large, huge = (rng.random(n, dtype="f4") for n in (10**3, 10**6, 10**8))
    square = rng.random((2048, 2048), dtype="f4")
    work = {
        "nothing": (lambda: None, ()),
        "empty kernel": (empty, ()),
        "sqrt, 1e3 float32": (cp.sqrt, (small,)),
        "sqrt, 1e6 float32": (cp.sqrt, (large,)),
        "sum, 1e6 float32": (cp.sum, (large,)),
        "sqrt(sum(a**2, -1)), 256x1024": (row_norms, (rng.random((256, 1024), dtype="f4"),)),
        "matmul 2048 float32": (cp.matmul, (square, square)),
        "sqrt, 1e8 float32": (cp.sqrt, (huge,)),
        "spin 100 us": (spin, (100e-6,)),
        "spin 100 us on a side stream": (on_side_stream, (100e-6,)),
        "host sleeps 1 ms, spin 100 us": (sleep_then_spin, (100e-6,)),
    }
    try:
        import torch
    except ImportError:
        return work
    x = torch.rand(10**6, device="cuda")
    compiled = torch.compile(lambda x: torch.sin(x).relu() + x)
    work["torch.compile(sin.relu+x), 1e6"] = (compiled, (x,))
    return work
