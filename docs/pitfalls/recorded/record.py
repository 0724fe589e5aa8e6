"""Record on a real GPU what the lessons show where there is none.

    python docs/pitfalls/recorded/record.py FOLDER [SCENE ...]

Needs CuPy, cupti-python and, for clocks and power, nvidia-ml-py. Takes about two minutes. Every
file holds, with the figures, the machine and the date.
"""

import json
import pathlib
import sys
import time

import cupy as cp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "course"))
from live import LiveGpu

import gpubench


def main():
    """Record every scene."""
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True, parents=True)
    scenes = (first_call, clocks, cache, zeros, accelerators)
    wanted = sys.argv[2:] or [scene.__name__ for scene in scenes]
    for scene in (scene for scene in scenes if scene.__name__ in wanted):
        print(f"\n=== {scene.__doc__}", flush=True)
        scene(folder)


def first_call(folder):
    """A first call in a fresh process with empty caches, in its parts."""
    cold = gpubench.cold_start(first_sum, ())
    print(cold)
    write(
        folder / "first_call_h200.json",
        import_time_s=cold.import_time,
        context_time_s=cold.context_time,
        first_call_time_s=cold.first_call_time,
        compile_time_s=cold.compile_time,
        steady_times_s=cold.steady_times,
    )


def first_sum():
    """Add up an array, as a program's first work on the GPU."""
    import cupy

    return float(cupy.arange(1000, dtype="f4").sum())


def clocks(folder):
    """The same product again and again, by a GPU that was idle for ten seconds."""
    monitor = Monitor()
    a = cp.random.default_rng(0).standard_normal((4096, 4096), dtype="f4").astype("f2")
    b = a @ a
    cp.cuda.Device().synchronize()
    time.sleep(10)
    begin, rows = time.perf_counter(), []
    while time.perf_counter() - begin < 2:
        start, end = cp.cuda.Event(), cp.cuda.Event()
        moment = time.perf_counter() - begin
        start.record()
        for _ in range(5):
            cp.matmul(a, a, out=b)
        end.record()
        end.synchronize()
        seconds = 1e-3 * cp.cuda.get_elapsed_time(start, end) / 5
        rows.append((moment, seconds, *monitor()))
        time.sleep(2e-3)
    columns = ("moment_s", "gpu_time_s", "sm_clock_hz", "power_w", "temperature_c")
    write(folder / "clocks_h200.json", **dict(zip(columns, zip(*rows, strict=True), strict=True)))
    for index in (*range(5), len(rows) // 2, -1):
        print(rows[index])


def cache(folder):
    """One buffer read again and again, with a warm and a cold L2 cache."""
    gpu, times = LiveGpu(), {}
    for size in (1, 5, 10, 20, 30, 40, 50, 60, 80, 100, 200, 400):
        buffer = gpu.buffer(size * 10**6)
        for state in ("warm", "cold"):
            for method in ("gated", "cupti"):
                result = gpubench.benchmark(
                    gpu.read, (buffer,), n_repeat=100, cache=state, method=method
                )
                rate = size * 1e-6 / result.gpu[0].median
                print(size, state, method, f"{1e6 * result.gpu[0].median:.2f} us, {rate:.2f} TB/s")
            times.setdefault(state, {})[size * 10**6] = result.gpu[0].median
    write(folder / "cache_h200.json", median_gpu_time_s_by_bytes=times)


def zeros(folder):
    """A product of zeros, and one of random numbers; both as a trace, too."""
    n, times, conditions = 8192, {}, {}
    monitor = Monitor()
    random = cp.random.default_rng(0).standard_normal((n, n), dtype="f4").astype("f2")
    inputs = {"zeros": cp.zeros_like(random), "random": random}
    out = random @ random
    for kind, a in inputs.items():
        seen, begin = [], time.perf_counter()
        while time.perf_counter() - begin < 4:
            for _ in range(40):
                cp.matmul(a, a, out=out)
            cp.cuda.Device().synchronize()
        for _ in range(10):
            for _ in range(40):
                cp.matmul(a, a, out=out)
            seen.append(monitor())
        cp.cuda.Device().synchronize()
        conditions[kind] = seen
        result = gpubench.benchmark(cp.matmul, (a, a), {"out": out}, n_repeat=200, n_warmup=200)
        times[kind] = result.gpu_times[0].tolist()
        print(kind, f"{2 * n**3 / result.gpu[0].median / 1e12:.0f} TFLOP/s", seen[-1])
    columns = ["sm_clock_hz", "power_w", "temperature_c"]
    write(
        folder / "zeros_h200.json", n=n, gpu_times_s=times, columns=columns, conditions=conditions
    )
    with gpubench.record_activity() as trace:
        for kind, a in inputs.items():
            with gpubench.time_range(kind):
                for _ in range(3):
                    cp.matmul(a, a, out=out)
            cp.cuda.Device().synchronize()
    trace.save(folder / "zeros_h200.npz")
    print(trace.timeline())


def accelerators(folder):
    """CuPy's sum of a cube with every back end; the first two as a trace, too."""
    a = cp.random.default_rng(0).random((256, 256, 256), dtype="f4")
    print(gpubench.accelerators())
    comparison = gpubench.compare_accelerators(a.sum)
    print(comparison)
    times = {name: result.gpu[0].median for name, result in comparison.results.items()}
    kernels = {arm.name: arm.kernels for arm in comparison.arms if arm.name in times}
    write(folder / "accelerators_h200.json", median_gpu_time_s=times, kernels=kernels)
    for setting in ((), ("cub",)):
        with gpubench.use_accelerators(*setting):
            a.sum()
    with gpubench.record_activity() as trace:
        for setting in ((), ("cub",)):
            with gpubench.use_accelerators(*setting), gpubench.time_range(*setting or ("none",)):
                a.sum()
            cp.cuda.Device().synchronize()
    trace.save(folder / "accelerators_h200.npz")
    print(trace.timeline())


class Monitor:
    """Reads the current device's clock, power and temperature."""

    def __init__(self):
        import pynvml

        pynvml.nvmlInit()
        self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)

    def __call__(self):
        """Return the clock in Hz, the power in W and the temperature in degrees Celsius."""
        nvml, handle = self._nvml, self._handle
        return (
            1e6 * nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            1e-3 * nvml.nvmlDeviceGetPowerUsage(handle),
            nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        )


def write(path, **values):
    """Write values as JSON, with the machine and the date."""
    found = gpubench.benchmark(len, ((),), n_repeat=1).environment
    told = ("date", "gpubench", "python", "frameworks", "cuda", "driver", "devices")
    environment = {key: found.get(key) for key in told}
    for device in environment["devices"]:
        for key in ("uuid", "pci_bus_id"):
            device.pop(key, None)
    figures = rounded({"environment": environment, **values})
    path.write_text(json.dumps(figures) + "\n", encoding="utf-8")


def rounded(value):
    """Return a value with six digits of each float in it."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


if __name__ == "__main__":
    main()
