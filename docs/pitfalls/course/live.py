"""A real GPU, with the methods of the simulated one that the lessons use. Needs CuPy."""

import re
from functools import cache, partial

import cupy as cp

_SPIN = r"""
extern "C" __global__ void NAME(long long ticks) {
    long long begin = clock64();
    while (clock64() - begin < ticks) {}
}
"""
_READ = r"""
extern "C" __global__ void NAME(const float4* data, long long n, float* sink) {
    float sum = 0;
    long long stride = (long long)blockDim.x * gridDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += stride) {
        float4 each = data[i];
        sum += each.x + each.y + each.z + each.w;
    }
    if (sum == -1) *sink = sum;  // never so, but the compiler can't know
}
"""


@cache
def _kernel(source, name):
    # The underscore keeps it apart from CUDA's own functions, such as sqrt.
    name = re.sub(r"\W", "_", name) + "_"
    return cp.RawKernel(source.replace("NAME", name), name)


class LiveGpu:
    """The current CUDA device.

    A kernel of `launch` counts ticks of the GPU's clock, so that it takes the asked time at the
    clock that the device has when it is busy, and longer at a lower one.
    """

    def __init__(self):
        properties = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)
        self.name = properties["name"].decode()
        self._n_blocks = 16 * properties["multiProcessorCount"]
        self._sink = cp.empty(1, "f4")
        self._per_second = 1e9  # a guess, until it is measured
        for _ in range(3):
            self._per_second = self._measured_clock()

    def _measured_clock(self):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        self.launch(0.05)
        end.record()
        end.synchronize()
        return 0.05 * self._per_second / (1e-3 * cp.cuda.get_elapsed_time(begin, end))

    def launch(self, duration, name="kernel"):
        """Queue a kernel of `duration` seconds on the current stream, and return at once."""
        ticks = cp.int64(round(duration * self._per_second))
        _kernel(_SPIN, name)((1,), (1,), (ticks,))

    def buffer(self, n_bytes):
        """Return memory of that size."""
        return cp.zeros(n_bytes // 16 * 4, "f4")

    def read(self, buffer, name="read"):
        """Queue a kernel that reads a buffer."""
        arguments = (buffer, cp.int64(buffer.size // 4), self._sink)
        _kernel(_READ, name)((self._n_blocks,), (256,), arguments)

    stream = staticmethod(partial(cp.cuda.Stream, non_blocking=True))

    def synchronize(self):
        """Wait until the device is idle."""
        cp.cuda.Device().synchronize()
