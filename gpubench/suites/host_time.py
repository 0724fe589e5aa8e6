"""``time_*`` and ``timeraw_*``: seconds that a call takes until its work is done.

The rules are asv's: a sample makes `number` calls and is divided by it, once. Without a setup
`number` is chosen such that a sample takes `sample_time`. With one it is 1, and the setup runs
again before each call. Unlike asv, GPUs that the process uses are waited for before each reading
of the clock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from itertools import repeat

import numpy as np

from gpubench.arguments import finite_number, whole_number
from gpubench.devices import current_platform, simulated
from gpubench.devices.base import Device, Platform
from gpubench.devices.host import HostPlatform
from gpubench.devices.primary_contexts import devices_with_context
from gpubench.environment import describe_environment
from gpubench.errors import GpubenchError
from gpubench.result import BenchmarkResult
from gpubench.rules import Evidence, diagnose
from gpubench.sampling import collection_off
from gpubench.session import Budget
from gpubench.stats import summarize
from gpubench.suites.execution import Execution, Reading

Take = Callable[[int], float]
"""Makes a number of calls, and returns the seconds that they took together."""


def host_time(execution: Execution) -> Reading:
    """Take samples of the host's time until the work of a call is done."""
    execution.renew()
    execution.call()
    platform = _platform_in_use()
    clock = execution.get("timer", time.perf_counter)
    number = whole_number("number", execution.get("number", 0), at_least=0)
    if execution.has_setup:
        number = max(number, 1)

    with platform.preserved() as go_home, collection_off():

        def wait() -> None:
            platform.drain()
            go_home()

        def take(number: int) -> float:
            wait()
            begin = clock()
            for _ in repeat(None, number):
                execution.call()
            wait()
            return float(clock() - begin)

        def take_each(number: int) -> float:
            total = 0.0
            for _ in range(number):
                execution.renew()
                total += take(1)
            return total

        chosen = take_each if execution.has_setup else take
        number, n_calls = _warm_up(execution, chosen, number)
        return _sampled(execution, chosen, number, 1 + n_calls, platform)


def raw_time(execution: Execution) -> Reading:
    """Take samples of the code that the benchmark returns, each in a fresh interpreter."""
    search_path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    environment = os.environ | search_path | dict(execution.get("env", {}))

    def take(number: int) -> float:
        returned = execution.call()
        statement, setup = returned if isinstance(returned, tuple) else (returned, "")
        arguments = f"{textwrap.dedent(statement)!r}, {textwrap.dedent(setup)!r}, number={number}"
        done = subprocess.run(
            [sys.executable, "-c", f"from timeit import timeit\nprint(timeit({arguments}))"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise GpubenchError(f"the code that it returns fails: {words[-1]}")
        return float(done.stdout.split()[-1])

    number = whole_number("number", execution.get("number", 1), at_least=1)
    take(1)  # so that files are in the system's cache
    return _sampled(execution, take, number, 1, HostPlatform("other processes are timed"))


def _platform_in_use() -> Platform:
    """Return the GPU's platform if this process has used it, else the host's."""
    if simulated.active() is not None or devices_with_context():
        return current_platform()
    return HostPlatform("it doesn't use one")


def _warm_up(execution: Execution, take: Take, number: int) -> tuple[int, int]:
    """Return how many calls are to make a sample, and how many were made to find that out.

    Parameters
    ----------
    execution : Execution
        Says how long to warm up.
    take : callable
        Makes calls.
    number : int
        How many are to make a sample; 0 if that is to be found out.
    """
    effort = execution.effort
    warmup_time = finite_number("warmup_time", execution.get("warmup_time", -1))
    if warmup_time < 0 or effort.is_quick:
        warmup_time = effort.warmup_time
    sample_time = finite_number("sample_time", execution.get("sample_time", effort.sample_time))
    budget, chosen, n_calls = Budget(warmup_time), max(number, 1), 0
    while True:
        elapsed = take(chosen)
        n_calls += chosen
        if not number and elapsed < sample_time:
            factor = sample_time / elapsed if elapsed > 0 else 10.0
            chosen = max(chosen + 1, int(chosen * min(10.0, 1.1 * factor)))
        elif budget.is_spent():
            return chosen, n_calls


def _current_device(platform: Platform) -> list[Device]:
    """Return the device that calls which name none use, if there is one."""
    return [platform.device(platform.current_device())] if platform.device_count() else []


def _sampled(
    execution: Execution, take: Take, number: int, n_warmup: int, platform: Platform
) -> Reading:
    wanted = execution.wanted(1, execution.effort.max_samples)
    times: list[float] = []
    limit = Budget(wanted.duration)
    while len(times) < wanted.at_least or not (len(times) == wanted.at_most or limit.is_spent()):
        times.append(take(number) / number)
    cpu_times = np.array(times)
    return Reading(
        result=BenchmarkResult(
            name=execution.label,
            cpu_times=cpu_times,
            gpu_times=np.empty((0, len(times))),
            busy_times=np.empty((0, len(times))),
            kernels=(),
            devices=(),
            method="host",
            cache="warm",
            samples_per_gate=1,
            floor=None,
            clock_step=None,
            n_warmup=n_warmup,
            first_call_time=None,
            first_call_compile_time=None,
            compilations=(),
            stopped_by="n_repeat" if len(times) == wanted.at_most else "max_duration",
            notes=diagnose(Evidence(method="host", asked="host", cpu=summarize(cpu_times), gpu=())),
            environment=describe_environment(platform, _current_device(platform)),
        )
    )
