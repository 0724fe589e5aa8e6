"""GPU work of known kinds, to try timers on. Needs CuPy and a GPU; PyTorch is optional."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import cupy as cp

_SPIN_SOURCE = r"""
extern "C" __global__ void NAME(unsigned long long nanoseconds) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}
"""
_SPIN = cp.RawKernel(_SPIN_SOURCE.replace("NAME", "spin"), "spin")
_COVER = cp.RawKernel(_SPIN_SOURCE.replace("NAME", "cover"), "cover")
_EMPTY = cp.RawKernel('extern "C" __global__ void empty() {}', "empty")


def spin(seconds):
    """Keep one thread of the GPU busy for that long."""
    _SPIN((1,), (1,), (cp.uint64(round(seconds * 1e9)),))


def cover(seconds):
    """Spin in a kernel of another name, while work is queued behind it."""
    _COVER((1,), (1,), (cp.uint64(round(seconds * 1e9)),))


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


def spin_and_wait(seconds):
    """Launch, then let the host wait for the GPU."""
    spin(seconds)
    cp.cuda.get_current_stream().synchronize()


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


@dataclass(frozen=True)
class Work:
    """A call to be timed.

    Attributes
    ----------
    name : str
        What it does.
    func, args : callable, tuple
        The call.
    cache : str
        Whether the GPU's L2 cache is ``"warm"`` or ``"cold"`` as it begins.
    known_time : float or None
        Seconds that its one kernel spins.
    can_queue : bool
        Whether all of it can be queued before the GPU begins.
    """

    name: str
    func: Callable[..., object]
    args: tuple = ()
    cache: str = "warm"
    known_time: float | None = None
    can_queue: bool = True


SPIN_TIMES = (1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2)


def works():
    """Return all that the timers are tried on."""
    found = [Work(name, *call) for name, call in rows().items() if "spin" not in name]
    found += [
        Work(f"spin {seconds * 1e6:,.0f} us", spin, (seconds,), known_time=seconds)
        for seconds in SPIN_TIMES
    ]
    a = cp.random.default_rng(0).random(4 * 10**6, dtype="f4")
    side = cp.cuda.Stream(non_blocking=True)
    return [
        *found,
        Work("sqrt, 4e6 float32, cold L2", cp.sqrt, (a,), cache="cold"),
        Work("sqrt, 4e6 float32, warm L2", cp.sqrt, (a,)),
        Work("spin 100 us on a side stream", on_side_stream, (1e-4, side), known_time=1e-4),
        Work("host sleeps 1 ms, spin 100 us", sleep_then_spin, (1e-4,), known_time=1e-4),
        Work("spin 100 us, synchronize", spin_and_wait, (1e-4,), known_time=1e-4, can_queue=False),
        Work("2,000 launches of an empty kernel", many_launches, (2000,), can_queue=False),
    ]
