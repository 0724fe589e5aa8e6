"""The gate of CUDA devices: a flag in host memory, and the kernels written for gpubench."""

from __future__ import annotations

from typing import Any

import numpy as np

# One thread waits until the host has written the gate's ticket to opened[0], or until the
# deadline; then it leaves the ticket in opened[1]. Tickets only grow, so nothing is ever reset
# and a late reader can't mistake one closing of the gate for the next.
_SOURCE = r"""
extern "C" __global__ void hold(volatile unsigned int* opened, unsigned int ticket,
                                unsigned long long deadline) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    while (opened[0] < ticket) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (now - begin > deadline) {
            opened[1] = ticket;
            __threadfence_system();
            break;
        }
    }
}

extern "C" __global__ void empty() {}

extern "C" __global__ void read_all(const uint4* data, unsigned long long n, unsigned int* sink) {
    unsigned int sum = 0;
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += stride) {
        const uint4 value = data[i];
        sum += value.x ^ value.y ^ value.z ^ value.w;
    }
    if (sum == 1) *sink = sum;  // never true of the pattern written; keeps the loads alive
}
"""


def kernels() -> Any:
    """Return CuPy's module of the kernels: ``hold``, ``empty`` and ``read_all``."""
    import cupy

    return cupy.RawModule(code=_SOURCE)


class CudaGate:
    """A flag in host memory that the waiting kernels of all devices can see."""

    def __init__(self) -> None:
        import cupy
        from cupy.cuda import pinned_memory, runtime

        memory = cupy.cuda.PinnedMemory(8, runtime.hostAllocPortable | runtime.hostAllocMapped)
        pointer = pinned_memory.PinnedMemoryPointer(memory, 0)
        self.address: int = pointer.ptr
        self._opened = np.frombuffer(pointer, dtype=np.uint32, count=2)
        self._opened[:] = 0
        self.ticket = 0

    def close(self) -> int:
        """Close the gate for the streams that are held from now on."""
        self.ticket += 1
        return self.ticket

    def open(self) -> None:
        """Release every stream that the gate holds."""
        self._opened[0] = self.ticket

    def has_expired(self, closing: int) -> bool:
        """Whether the deadline released a stream held at that closing or a later one."""
        return bool(self._opened[1] >= closing)
