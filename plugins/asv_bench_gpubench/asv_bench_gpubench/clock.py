"""A clock that waits for the GPUs before it is read."""

import time

from gpubench.devices import current_platform


class SynchronizedClock:
    """The host's clock, read once every GPU that this process uses is idle.

    As the `timer` of one of asv's own ``time_*`` benchmarks, it makes them include what they queue
    on GPUs, and nothing queued before:

    >>> class TimeStep:
    ...     timer = SynchronizedClock()
    ...
    ...     def time_step(self):
    ...         launch_kernels()

    A function wouldn't do there: as an attribute of a class it would become a method.
    """

    def __call__(self) -> float:
        """Wait for the GPUs, then return the time in seconds."""
        platform = current_platform()
        with platform.preserved():
            platform.drain()
        return time.perf_counter()
