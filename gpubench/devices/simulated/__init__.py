"""A GPU in miniature, for tests and for teaching without a GPU.

Each stream has a worker thread that executes the stream's queue in order. Device time is the
host's `time.perf_counter`, but it is *modelled*: an operation begins at the latest of the time
at which the stream became free and the time at which the operation arrived (its queueing time
plus the launch latency), and ends a known duration later. The worker then sleeps until that
moment, so that the host really runs ahead and really has to wait, while what events report
doesn't depend on how soon the operating system woke a thread.
"""

from gpubench.devices.simulated.events import EVENT_TIME, GRAPH_GAP, Operation
from gpubench.devices.simulated.gpu import SimulatedGpu, active
from gpubench.devices.simulated.gpu import SimulatedGpu as simulated_gpu  # noqa: N813
from gpubench.devices.simulated.stream import LAUNCH_GAP

__all__ = [
    "EVENT_TIME",
    "GRAPH_GAP",
    "LAUNCH_GAP",
    "Operation",
    "SimulatedGpu",
    "active",
    "simulated_gpu",
]
