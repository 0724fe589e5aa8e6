"""Would asv see the plugin for GPU benchmarks? Checks, each with the command that mends it."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from gpubench.integrations import asv_probe
from gpubench.integrations.asv_probe import GPU_BENCHMARK, PLUGIN

_CONFIGURATIONS = ("asv.conf.json", "asv.conf.jsonc")
_INSTALLING = ("matrix", "include", "build_command", "install_command", "conda_environment_file")
_MENTION = re.compile(r"asv[-_.]bench[-_.]gpubench")
_NEAR_MISS = re.compile(r"gpu_?time", re.IGNORECASE)
_BENCHMARK = re.compile("GpuTime[A-Z_].|gputime_.")
_TIMEOUT = 120.0


@dataclass(frozen=True)
class Check:
    """One thing that has to hold for asv to see the plugin.

    Attributes
    ----------
    name : str
        What was looked at.
    holds : bool
        Whether it is as it has to be.
    message : str
        What was found.
    command : str
        What mends it, to be typed into a shell; empty if it holds.
    benchmarks : tuple of str
        The benchmarks of the plugin's type that asv found.
    """

    name: str
    holds: bool
    message: str
    command: str = ""
    benchmarks: tuple[str, ...] = ()


def check_asv(path: str, python: str | None = None) -> Iterator[Check]:
    """Go through the checks up to the first that doesn't hold, in each environment.

    Parameters
    ----------
    path : str
        asv's configuration, or the folder of it.
    python : str, optional
        The interpreter to look at; by default those of the environments that asv has made, or this
        one if the configuration says to use what exists.
    """
    try:
        yield Check("asv", True, f"version {metadata.version('asv')}")
    except metadata.PackageNotFoundError:
        yield Check("asv", False, f"not installed for {sys.executable}", _pip("asv"))
        return
    file = _find_configuration(Path(path))
    if isinstance(file, Check):
        yield file
        return
    configuration = _load(file)
    if isinstance(configuration, Check):
        yield configuration
        return
    yield Check("configuration", True, str(file))
    folder = file.parent / str(configuration.get("benchmark_dir", "benchmarks"))
    if not (folder / "__init__.py").is_file():
        quoted = shlex.quote(str(folder))
        mend = f"mkdir -p {quoted} && touch {quoted}/__init__.py"
        yield Check("benchmarks", False, f"{folder} is no folder with an __init__.py", mend)
        return
    if python is None and configuration.get("environment_type") != "existing":
        yield from _check_environments(file, configuration, folder)
    else:
        yield from _check_python(python or sys.executable, file, folder, dict(os.environ))


def _find_configuration(path: Path) -> Path | Check:
    path = path.absolute()
    if path.is_file():
        return path
    for folder in (path, *path.parents):
        for name in _CONFIGURATIONS:
            if (folder / name).is_file():
                if folder == path:
                    return folder / name
                mend = f"cd {shlex.quote(str(folder))}"
                return Check("configuration", False, f"it is in {folder}, not in {path}", mend)
    mend = f"cd {shlex.quote(str(path))} && asv quickstart"
    return Check("configuration", False, f"there is no {_CONFIGURATIONS[0]} in {path}", mend)


def _load(file: Path) -> Mapping[str, Any] | Check:
    from asv.util import UserError, load_json

    try:
        loaded = load_json(str(file), js_comments=True)
        if not isinstance(loaded, dict):
            raise ValueError("it holds no object")
    except (OSError, UserError, ValueError) as error:
        problem = f"{file} can't be read: {error}"
        return Check("configuration", False, problem, f"${{EDITOR:-vi}} {shlex.quote(str(file))}")
    return loaded


def _check_environments(
    file: Path, configuration: Mapping[str, Any], folder: Path
) -> Iterator[Check]:
    """Check the environments that asv has made; if there are none, how it will make them."""
    env_dir = file.parent / str(configuration.get("env_dir", "env"))
    pythons = sorted([*env_dir.glob("*/bin/python"), *env_dir.glob("*/Scripts/python.exe")])
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for python in pythons:
        yield from _check_python(str(python), file, folder, variables)
    if pythons:
        return
    installing = json.dumps([configuration.get(key) for key in _INSTALLING])
    if _MENTION.search(installing):
        message = f"asv has made none yet in {env_dir}; once it has (asv setup), check again"
        yield Check("environments", True, message)
    else:
        line = f"in-dir={{env_dir}} python -m pip install {PLUGIN}"
        yield Check(
            "environments",
            False,
            f"{file} makes asv install no {PLUGIN}; its install_command wants a line {line!r}",
            f"${{EDITOR:-vi}} {shlex.quote(str(file))}",
        )


def _check_python(
    python: str, file: Path, folder: Path, variables: Mapping[str, str]
) -> Iterator[Check]:
    found = _probe(python, folder, variables)
    if isinstance(found, Check):
        yield found
        return
    yield _judged(found, python, file, folder)


def _probe(python: str, folder: Path, variables: Mapping[str, str]) -> dict[str, Any] | Check:
    """Ask an interpreter what asv would find there."""
    source = Path(asv_probe.__file__).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch, "answer.json")
        command = [python, "-c", source, str(folder), str(answer)]
        try:
            subprocess.run(
                command,
                cwd=scratch,
                env=variables,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT,
                check=True,
            )
            found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            words = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
            said = (words.strip() or str(error)).splitlines()[-1]
            mend = shlex.join([python, "-c", f"import {PLUGIN}.benchmarks.gputime"])
            return Check("python", False, f"{python} gives no answer: {said}", mend)
    return found


def _judged(found: Mapping[str, Any], python: str, file: Path, folder: Path) -> Check:
    """Say what stands first between asv and the plugin, by what the probe found."""

    def refused(name: str, message: str, command: str) -> Check:
        return Check(name, False, f"{python}: {message}", command)

    names = found["distributions"]
    again = _pip("--force-reinstall", "--no-deps", _source(), python=python)
    if not found["runner"]:
        return refused("runner", "asv_runner is not installed", _pip("asv_runner", python=python))
    if not names:
        only = " (it can be imported, but asv finds installed plugins only)" * found["module"]
        return refused("plugin", f"{PLUGIN} is not installed{only}", _pip(_source(), python=python))
    if PLUGIN not in names:
        message = f"{PLUGIN} is installed as {names[0]!r}, and asv looks for asv_bench..."
        return refused("name", f"{message} with underscores; a newer setuptools keeps them", again)
    if found["import_error"]:
        missing = re.match("ModuleNotFoundError: No module named '([^'.]+)", found["import_error"])
        wanted = _pip(missing[1], python=python) if missing and missing[1] != PLUGIN else again
        message = f"{PLUGIN} can't be imported, of which asv says nothing: {found['import_error']}"
        return refused("import", message, wanted)
    if found["discovery_error"]:
        mend = f"asv check --config {shlex.quote(str(file))} -E existing:{shlex.quote(python)}"
        return refused("benchmarks", f"they can't be imported: {found['discovery_error']}", mend)
    if GPU_BENCHMARK not in found["types"]:
        return refused("plugin", f"asv_runner has no use for {PLUGIN}", again)
    benchmarks = tuple(found["benchmarks"])
    if not benchmarks:
        return refused("benchmarks", *_unmatched(folder))
    number = f"{len(benchmarks)} GPU benchmark{'s' * (len(benchmarks) > 1)}"
    return Check("benchmarks", True, f"{python}: {number} in {folder}", benchmarks=benchmarks)


def _unmatched(folder: Path) -> tuple[str, str]:
    """Say that no benchmark has a name for the plugin, and how to find those that nearly do."""
    message = f"no function in {folder} is called gputime_<name> or GpuTime<Name>"
    near = sorted(name for name in _functions(folder) if not _BENCHMARK.match(name))
    if near:
        message += f"; rename {', '.join(near)}, if they are meant"
    return message, f"grep -rniE 'def +[a-z_]*time' {shlex.quote(str(folder))}"


def _functions(folder: Path) -> set[str]:
    """Return the names of the functions in a folder's files that hold something like gputime."""
    names = set()
    for file in folder.rglob("*.py"):
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in names if _NEAR_MISS.search(name)}


def _source() -> str:
    """Return what to install the plugin from: the checkout that gpubench is in, or the index."""
    beside = Path(__file__).parents[2] / "plugins" / PLUGIN
    return str(beside) if beside.is_dir() else PLUGIN


def _pip(*arguments: str, python: str = sys.executable) -> str:
    return shlex.join([python, "-m", "pip", "install", *arguments])
