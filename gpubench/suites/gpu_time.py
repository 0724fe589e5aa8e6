"""``gputime_*``: the time that the GPU works on a call, as `gpubench.benchmark` takes it."""

from __future__ import annotations

import math

from gpubench.bench import Bench
from gpubench.sampling import MIN_ADAPTIVE_SAMPLES, Goal, collect, collection_off
from gpubench.session import Budget
from gpubench.suites.execution import Execution, Reading

_N_WARMUP = 10


def gpu_time(execution: Execution) -> Reading:
    """Take samples of GPU times; of host times where there is no GPU, which a note says.

    The benchmark's ``gpu_method``, ``gpu_devices`` and ``gpu_cache`` are arguments of
    `gpubench.benchmark`. It is set up once; before each call, if its ``number`` is 1.
    """
    get = execution.get
    wanted = execution.wanted(MIN_ADAPTIVE_SAMPLES, None)
    renew = execution.renew if execution.has_setup and get("number") == 1 else None
    unlimited = Budget(math.inf)
    with Bench(get("gpu_devices"), get("gpu_method", "auto"), get("gpu_cache", "warm")) as bench:
        session = bench.session(execution.call, (), {}, renew)
        session.warm_up(_N_WARMUP, unlimited)
        if not execution.effort.is_quick:
            session.settle(unlimited)
        session.choose(bench.method, unlimited, many=False)
        goal = Goal(wanted.at_most, Budget(wanted.duration), wanted.at_least)
        with bench.watched() as seen, collection_off():
            collected = collect(session, goal, lambda _: None)
    return Reading(result=bench.result(execution.label, session, collected, seen))
