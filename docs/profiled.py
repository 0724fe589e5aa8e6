"""A program to look at with Nsight Systems and Nsight Compute: two kernels, two ranges."""

import cupy as cp

from gpubench import profile, time_range

SOURCE = r"""
extern "C" __global__ void scale(float* values, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        values[i] = factor * values[i] + 1.0f;
    }
}
"""

scale = cp.RawKernel(SOURCE, "scale", options=("-lineinfo",))
values = cp.ones(2**20, dtype="float32")


@time_range("step")
def step():
    """Scale the values and add them up."""
    with time_range("scale"):
        scale((values.size // 256,), (256,), (values, cp.float32(0.5), cp.int32(values.size)))
    with time_range("sum"):
        return values.sum()


step()  # compiles and loads, unrecorded
cp.cuda.Device().synchronize()
with profile():
    step()
    cp.cuda.Device().synchronize()
