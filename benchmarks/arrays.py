"""What the suite computes with: CuPy where there is a GPU, else NumPy on smaller arrays."""

try:
    import cupy as xp

    xp.cuda.runtime.getDeviceCount()
except Exception:  # noqa: BLE001  # without CuPy, its libraries, a driver or a device
    import numpy as xp

ON_GPU = xp.__name__ == "cupy"

SIZES = (10**6, 10**8) if ON_GPU else (10**3, 10**5)
"""A size that fits into an H200's second-level cache, and one that doesn't."""


def random(*shape, dtype="float32"):
    """Return an array of uniform random numbers, the same in each run."""
    return xp.random.default_rng(0).random(shape, dtype=dtype)


def indices(n, high):
    """Return `n` random indices below `high`, the same in each run."""
    return xp.random.default_rng(1).integers(0, high, n)
