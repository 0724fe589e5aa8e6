"""The process that runs a sweep's configurations under Nsight Compute.

It writes a line for each configuration as it ends, so that the parent knows how far it came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from gpubench.errors import GpubenchError
from gpubench.processes import command, pickled, unpickled

_CALL, _PROGRESS = "call.pickle", "progress.jsonl"

Sweep = tuple[Callable[..., object], Sequence[Mapping[str, object]]]
"""A function with its configurations."""


@dataclass(frozen=True)
class Progress:
    """What the process said.

    Attributes
    ----------
    has_begun : bool
        Whether the process came to its first line at all.
    n_done : int
        How many configurations came to their end, be it a failure.
    errors : mapping of int to str
        What a configuration raised, by its index.
    regions : tuple of str
        The names of all regions, by their numbers.
    failure : str
        Why nothing could be run; empty if something could.
    """

    has_begun: bool = False
    n_done: int = 0
    errors: Mapping[int, str] = field(default_factory=dict)
    regions: tuple[str, ...] = ()
    failure: str = ""

    def is_whole(self, index: int) -> bool:
        """Whether a configuration came to its end without an error."""
        return index < self.n_done and index not in self.errors


def prepared(folder: Path, name: str, sweep: Sweep) -> list[str]:
    """Leave a function and its configurations in a folder; return the child's command line.

    Raises
    ------
    ArgumentError
        If they can't be pickled.
    MissingExtraError
        If cloudpickle isn't installed.
    """
    (folder / _CALL).write_bytes(pickled("counters", name, sweep))
    return command("gpubench.sweeps.counters.child:serve", str(folder))


def progress(folder: Path) -> Progress:
    """Return what the child has written into the folder."""
    path = folder / _PROGRESS
    if not path.exists():
        return Progress()
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        with suppress(json.JSONDecodeError):  # it died while it wrote
            lines.append(json.loads(text))
    if lines and "failure" in lines[0]:
        return Progress(has_begun=True, failure=lines[0]["failure"])
    return Progress(
        has_begun=True,
        n_done=len(lines),
        errors={index: line["error"] for index, line in enumerate(lines) if line["error"]},
        regions=tuple(lines[-1]["regions"]) if lines else (),
    )


def serve(folder_name: str) -> None:
    """Run the configurations that lie in a folder: the child's end."""
    folder = Path(folder_name)
    with (folder / _PROGRESS).open("a", encoding="utf-8") as file:

        def say(**facts: object) -> None:
            print(json.dumps(facts), file=file, flush=True)

        try:
            func, configs = cast(Sweep, unpickled((folder / _CALL).read_bytes()))
            _check_nvtx()
        except GpubenchError as error:
            say(failure=str(error))
            return
        _run(func, configs, say)


def _check_nvtx() -> None:
    from gpubench.ranges.backends import backend

    found = backend()
    if found.name != "nvtx":
        raise GpubenchError(f"regions can't be marked by NVTX: {found.reason}")


def _run(
    func: Callable[..., object],
    configs: Sequence[Mapping[str, object]],
    say: Callable[..., object],
) -> None:
    from gpubench.devices import current_platform
    from gpubench.sweeps.configurations import call_arguments
    from gpubench.sweeps.counters.marks import RegionMarks, counted
    from gpubench.sweeps.regions import timing

    marks = RegionMarks()
    platform = current_platform()
    for index, config in enumerate(configs):
        error = ""
        try:
            args, kwargs = call_arguments(func, config)
            with platform.preserved() as go_home:
                func(*args, **kwargs)  # compiles and allocates, which is not to be counted
                platform.drain()
                go_home()
                with counted(index), timing(marks):
                    func(*args, **kwargs)
                platform.drain()
        except Exception as raised:  # noqa: BLE001  # the caller's function may raise anything
            error = " ".join(f"{type(raised).__name__}: {raised}".split()).rstrip(":")
        say(error=error, regions=marks.names())
