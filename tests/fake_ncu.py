"""Nsight Compute as far as gpubench uses it: a program, and the NVTX that a process has under it.

`install` puts a program ``ncu`` on PATH, and an ``nvtx`` ahead of the real one for the processes
that are started from then on. Under the program, a function "launches kernels" by `launch`.
"""

import csv
import io
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

LAUNCHES = "FAKE_NCU_LAUNCHES"

RANGES = "Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
THREAD_RANGES = f"thread Domain:Push/Pop_{RANGES}"
PROCESS_RANGES = f"Id:Domain:Start/Stop_{RANGES}"

_OPTIONS_WITH_A_VALUE = {
    "--metrics", "--nvtx-include", "--clock-control", "--replay-mode", "--target-processes",
    "--export", "--log-file", "--import", "--page", "--print-units",
}  # fmt: skip


def install(folder, monkeypatch, *, version="2025.3.1.0 (build 36398880)", **behaviour):
    """Put the program into ``folder/bin``; return a function that tells how it was called.

    Its behaviour: ``log`` is what it writes about profiling, ``seconds`` how long it takes to
    start, ``runs=False`` keeps it from running the program, ``report=False`` from leaving a
    report, and ``printed`` is what it prints of one.
    """
    behaviour["version"] = version
    (folder / "behaviour.json").write_text(json.dumps(behaviour))
    program = folder / "bin" / "ncu"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from fake_ncu import main\nmain({str(folder)!r}, sys.argv[1:])\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    (folder / "site").mkdir()
    (folder / "site" / "nvtx.py").write_text("from fake_ncu import get_domain\n")
    monkeypatch.syspath_prepend(folder / "site")
    return lambda: [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def main(folder, arguments):
    """Be ncu."""
    folder = Path(folder)
    behaviour = json.loads((folder / "behaviour.json").read_text())
    if arguments == ["--version"]:
        print("NVIDIA (R) Nsight Compute Command Line Profiler")
        print("Copyright (c) 2018-2025 NVIDIA Corporation")
        print(f"Version {behaviour['version']} (public-release)")
        return
    options, program = _parsed(arguments)
    with (folder / "calls").open("a") as calls:
        print(json.dumps(options), file=calls)
    if "--import" in options:
        print(behaviour.get("printed") or Path(options["--import"]).read_text())
        return
    _profile(folder, behaviour, options, program)


def _parsed(arguments):
    options = {}
    while arguments and arguments[0].startswith("-"):
        name = arguments.pop(0)
        options[name] = arguments.pop(0) if name in _OPTIONS_WITH_A_VALUE else True
    return options, arguments


def _profile(folder, behaviour, options, program):
    log = behaviour.get("log", "")
    launches = folder / "launches"
    launches.touch()
    time.sleep(behaviour.get("seconds", 0))
    if behaviour.get("runs", True):
        status = subprocess.run(program, env=os.environ | {LAUNCHES: str(launches)}).returncode
        if status:
            log += f"==ERROR== The application returned an error code ({abs(status)}).\n"
    rows = [json.loads(line) for line in launches.read_text().splitlines()]
    domain, _, name = options["--nvtx-include"].partition("@")
    rows = [row for row in rows if [domain, name] in row["process"]]
    if rows and behaviour.get("report", True):
        Path(options["--export"].replace("%%", "%")).write_text(
            as_csv(rows, options["--metrics"].split(","))
        )
    else:
        log += "==WARNING== No kernels were profiled.\n"
    Path(options["--log-file"]).write_text(log)


def as_csv(launches, metrics):
    """Return what ``ncu --csv --page raw`` prints of some launches."""
    output = io.StringIO()
    writer = csv.writer(output, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["ID", THREAD_RANGES, PROCESS_RANGES, "Kernel Name", *metrics])
    writer.writerow(["", "", "", "", *("nsecond" if "time" in each else "" for each in metrics)])
    for number, row in enumerate(launches):
        nested = [f'"{domain}:{name}:{_REST}"' for domain, name in row["thread"]]
        process = [f'"{n}:{domain}:{name}:{_REST}"' for n, (domain, name) in
                   enumerate(row["process"])]  # fmt: skip
        writer.writerow([
            number, f"140  {'  '.join(nested)} ", "  ".join(process), row["kernel"],
            *(row["values"].get(metric, "n/a") for metric in metrics),
        ])  # fmt: skip
    return output.getvalue()


_REST = "none:none:none:none:none:none"

_process_ranges = {}
_thread = threading.local()
_numbers = itertools.count()


def launch(kernel, values):
    """Launch a kernel whose metrics have these values, if a profiler is there to see it."""
    if LAUNCHES not in os.environ:
        return
    row = {
        "kernel": kernel,
        "thread": getattr(_thread, "ranges", []),
        "process": list(_process_ranges.values()),
        "values": values,
    }
    with open(os.environ[LAUNCHES], "a", encoding="utf-8") as file:
        print(json.dumps(row), file=file)


class _Domain:
    """A domain of the nvtx package, where a profiler is attached."""

    def __init__(self, name):
        self.name = name

    def get_event_attributes(self, message, color, category, payload):
        return message

    def push_range(self, attributes):
        _thread.ranges = [*getattr(_thread, "ranges", []), (self.name, attributes)]

    def pop_range(self):
        own = [n for n, (domain, _) in enumerate(_thread.ranges) if domain == self.name]
        _thread.ranges = [each for n, each in enumerate(_thread.ranges) if n != own[-1]]

    def start_range(self, attributes):
        number = next(_numbers)
        _process_ranges[number] = (self.name, attributes)
        return number

    def end_range(self, number):
        del _process_ranges[number]

    def mark(self, attributes):
        pass


def get_domain(name):
    return _Domain(name)
