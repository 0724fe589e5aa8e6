"""Kernels of one's own, which need a GPU."""

from .arrays import ON_GPU, SIZES, random, xp

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


class Saxpy:
    params = SIZES
    param_names = ("n",)

    def setup(self, n):
        if not ON_GPU:
            raise NotImplementedError("raw kernels need a GPU")
        self.x, self.y = random(n), random(n)
        self.raw = xp.RawKernel(SOURCE, "saxpy")
        self.elementwise = xp.ElementwiseKernel(
            "float32 a, float32 x, float32 y", "float32 z", "z = y + a * x", "saxpy_elementwise"
        )
        self.square_sum = xp.ReductionKernel(
            "float32 x", "float32 z", "x * x", "a + b", "z = a", "0", "square_sum"
        )

    def gputime_raw(self, n):
        self.raw((-(-n // 256),), (256,), (xp.float32(2), self.x, self.y, xp.uint32(n)))

    def gputime_elementwise(self, n):
        self.elementwise(xp.float32(2), self.x, self.y)

    def gputime_reduction(self, n):
        self.square_sum(self.x)
