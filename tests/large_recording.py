"""A recording of as many records as wanted."""

import numpy as np
from example_recordings import BEGIN, MAIN

from gpubench.activity.recording import Recording
from gpubench.devices.records import ACTIVITY, ACTIVITY_KINDS, CALL, RANGE, no_records


def launches(n: int) -> Recording:
    """Return `n` launches on one thread, of a kernel and of a copy of another size each in turn."""
    calls = np.zeros(n, CALL)
    calls["correlation_id"] = np.arange(1, n + 1)
    calls["start"] = BEGIN + 5000 * np.arange(n)
    calls["end"] = calls["start"] + 2000
    calls["thread"] = MAIN
    activities = np.zeros(n, ACTIVITY)
    activities["correlation_id"] = calls["correlation_id"]
    activities["start"] = calls["start"] + 3000
    activities["end"] = activities["start"] + 4999
    activities["stream"] = 7
    activities["name"] = 1
    kernels, copies = activities[::2], activities[1::2]
    kernels["grid"], kernels["block"] = (1024, 1, 1), (256, 1, 1)
    copies["kind"] = ACTIVITY_KINDS.index("memcpy")
    copies["bytes"] = 1_000_000 + np.arange(len(copies))
    return Recording(
        begin=BEGIN,
        end=BEGIN + 5000 * n + 5000,
        kinds=("kernel", "memcpy", "runtime"),
        activities=activities,
        calls=calls,
        ranges=no_records(RANGE),
        compilations=no_records(RANGE),
        names=("cudaLaunchKernel", "work"),
        devices={0: "a GPU"},
        threads={MAIN: "MainThread"},
    )
