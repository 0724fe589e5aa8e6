"""What asv finds in one Python environment, as a program to be run by that environment's Python.

It gets the folder of benchmarks, if they are to be looked for, and the file for its answer, in
JSON. It imports nothing of gpubench by itself, which may not be installed there.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable
from importlib import metadata

PLUGIN = "asv_bench_gpubench"
GPU_BENCHMARK = "GpuTimeBenchmark"


def main(folder: str, answer: str) -> None:
    """Look for the plugin as asv does, and for benchmarks of its type in the folder."""
    sys.path[:1] = []  # the folder that this happens to run in; asv runs elsewhere
    found = {
        "runner": importlib.util.find_spec("asv_runner") is not None,
        "distributions": _distributions(),
        "module": importlib.util.find_spec(PLUGIN) is not None,
        "import_error": _error(_import_plugin),
        "types": [],
        "benchmarks": [],
        "discovery_error": None,
    }
    if found["runner"] and not found["import_error"]:
        found["discovery_error"] = _error(lambda: found.update(_discovered(folder)))
    with open(answer, "w", encoding="utf-8") as file:
        json.dump(found, file)


def _distributions() -> list[str]:
    """Return the plugin's distributions by the name that their metadata give."""
    names = {str(each.metadata["Name"]) for each in metadata.distributions()}
    return sorted(name for name in names if name.lower().replace("-", "_") == PLUGIN)


def _import_plugin() -> None:
    """Import what asv imports of the plugin, and through the same module."""
    if importlib.util.find_spec("asv_runner") is not None:
        importlib.import_module("asv_runner.benchmarks")
    folder = importlib.import_module(f"{PLUGIN}.benchmarks").__path__
    for module in pkgutil.iter_modules(folder):
        importlib.import_module(f"{PLUGIN}.benchmarks.{module.name}")


def _discovered(folder: str) -> dict[str, list[str]]:
    """Return asv's types of benchmarks, and the names of those benchmarks that are the plugin's."""
    from asv_runner._aux import update_sys_path
    from asv_runner.benchmarks import benchmark_types
    from asv_runner.discovery import disc_benchmarks

    types = [kind.__name__ for kind in benchmark_types]
    if not folder:
        return {"types": types}
    _take_asvs_path()
    update_sys_path(folder)
    found = [each.name for each in disc_benchmarks(folder) if type(each).__name__ == GPU_BENCHMARK]
    return {"types": types, "benchmarks": sorted(set(found))}


def _take_asvs_path() -> None:
    """Change the search path as asv does, once it has imported the plugins."""
    if "ASV_PYTHONPATH" in os.environ:
        sys.path[:0] = os.environ["ASV_PYTHONPATH"].split(os.pathsep)
        return
    dropped = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [entry for entry in sys.path if entry not in dropped]


def _error(work: Callable[[], object]) -> str | None:
    """Do the work and return the last line of what went wrong, and where; None if nothing did."""
    try:
        work()
    except BaseException as error:  # noqa: BLE001  # modules may even exit
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({place.filename}, line {place.lineno})"
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
