"""CuPy's on-disk cache of compiled kernels, read as data.

Nothing here imports CuPy or needs a GPU. What the modules know of CuPy is its file format
(`payload`, `folder`) and how it picks the folder (`location`).
"""

from gpubench.cache.folder import CacheEntry, CacheFile
from gpubench.cache.inventory import CacheTotal, KernelCache, Verification, kernel_cache
from gpubench.cache.payload import Payload
from gpubench.cache.removal import Removal

__all__ = [
    "CacheEntry",
    "CacheFile",
    "CacheTotal",
    "KernelCache",
    "Payload",
    "Removal",
    "Verification",
    "kernel_cache",
]
