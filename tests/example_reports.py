"""Results for reports: two runs of a small suite, and names that would like to be more."""

import numpy as np
from example_results import make_result

from gpubench.notes import Note
from gpubench.storage import Record

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"><svg onload='window.hacked = 1'>",
    "javascript:window.hacked=1",
    "datum.x.constructor.constructor('window.hacked=1')()",
    "{signal: 'warn(1)'} a.b[0]['c'] \\'\\\" `${window.hacked=1}`",
    "\u202egnp.exe\u2066",
    "@@script@@",
    "<!--<script>",
    "\u2028\ud800\0\t",
)


def record(name, us=10.0, n=60, cpu_us=20.0, params=(), **changes):
    """A record with times around these medians, which don't change from run to run."""
    noise = 1 + 0.004 * np.sin(np.arange(n) * 2.4)
    gpu = [us * noise] if us else []
    result = make_result(cpu_us=cpu_us * noise, gpu_us=gpu, name=name, **changes)
    return Record(name=name, params=dict(params), result=result)


def suite(factor=1.0):
    """Sizes of a sum, a benchmark on the host, a value, and two without a result."""
    environment = {"host": "somewhere", "devices": [{"name": "a GPU"}], "factor": factor}
    drifting = Note("drifting", "The last third is slower.", "Warm up longer.")
    unstable = Note("unstable", "It spreads.", "Close what else runs.")
    return [
        *(
            record("suite.Sum.time_sum", us * factor, params={"dtype": dtype, "n": n})
            for dtype, us in (("f4", 8.0), ("f8", 15.0))
            for n in (2**10, 2**12, 2**14)
        ),
        record("suite.time_noted", 30.0, notes=(drifting, unstable), environment=environment),
        record("suite.time_host", 0, cpu_us=5.0),
        Record(name="suite.peakmem", value=2.0**20 * factor, unit="bytes"),
        Record(
            name="suite.time_svd", status="failed", reason="Traceback:\n  ValueError: too large"
        ),
        Record(name="suite.time_nccl", status="skipped", reason="needs two GPUs"),
    ]


def hostile():
    """Records that hold each of `HOSTILE` wherever there is text."""
    return [
        *(
            record(
                text,
                params={text: text, "n": n},
                notes=(Note(text, text, text),),
                environment={text: text},
            )
            for text in HOSTILE
            for n in (1, 2)
        ),
        *(Record(name=f"failed {text}", status="failed", reason=text) for text in HOSTILE),
        *(Record(name=f"value {text}", value=1.0, unit=text) for text in HOSTILE),
    ]
