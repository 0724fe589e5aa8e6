"""Where a lesson's kernels run, and what was recorded where the reader may not be."""

import json
from contextlib import ExitStack
from pathlib import Path

import gpubench
from gpubench.devices import current_platform

RECORDED = Path(__file__).parents[1] / "recorded"

_in_use = ExitStack()
_started = []


def start(**parameters):
    """Return the GPU to work on, and say which it is.

    Parameters
    ----------
    **parameters
        Of `gpubench.simulated_gpu`, which takes the place of a real one if there is none.
    """
    stop()
    if current_platform().name == "cuda":
        from course.live import LiveGpu

        gpu = LiveGpu()
        print(f"LIVE: on this machine's {gpu.name}.")
    else:
        gpu = _in_use.enter_context(gpubench.simulated_gpu(**parameters))
        print("SIMULATED: no GPU found, so gpubench's simulated one takes its place.")
    _started.append(gpu)
    return gpu


def current():
    """Return the GPU that `start` returned last."""
    return _started[-1]


def stop():
    """Leave the simulated GPU that `start` returned last."""
    _started.clear()
    _in_use.close()


def recorded(name):
    """Return figures from a real GPU, and say from which and when."""
    figures = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    machine = figures["environment"]
    print(
        f"RECORDED: on an {machine['devices'][0]['name']}, "
        f"CuPy {machine['frameworks']['cupy']}, {machine['date'][:10]}."
    )
    return figures


def recorded_trace(name):
    """Return a trace from a real GPU, recorded with the figures of the same name."""
    return gpubench.Trace.load(RECORDED / f"{name}.npz")
