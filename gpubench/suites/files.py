"""The files of a suite, as asv finds them: modules of a folder and of its subpackages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from gpubench.errors import ArgumentError
from gpubench.suites.case import SuiteFile

_BENCHMARK = re.compile(
    r"(?<![\w.])((gpu)?time|timeraw|track|(peak)?mem)_"
    r"|(?<![\w.])((Gpu)?Time|Timeraw|Track|(Peak)?Mem)[A-Z_]"
)

HOW_TO_BEGIN = (
    "write a Python file there with a function such as time_sort(), or gputime_sort() for a GPU; "
    "then: gpubench run FOLDER"
)

_MAIN = re.compile(r"^if __name__ ==", re.MULTILINE)


def suite_files(path: str | os.PathLike[str]) -> list[SuiteFile]:
    """Return the files of a suite.

    Parameters
    ----------
    path : str or path-like
        A folder, or one file of it.

    Raises
    ------
    ArgumentError
        If it is neither, or there is no Python file.
    """
    target = Path(os.path.abspath(path))
    if target.is_file() and target.suffix == ".py":
        module = "" if target.stem == "__init__" else target.stem
        return [SuiteFile(str(target.parent), module, str(target))]
    if not target.is_dir():
        raise ArgumentError(
            f"path={os.fspath(path)!r} is neither a folder of benchmarks nor a Python file; make "
            f"the folder, and {HOW_TO_BEGIN}"
        )
    files = list(_modules(target, target, ""))
    if not files:
        raise ArgumentError(
            f"path={os.fspath(path)!r}: there is no Python file in that folder; {HOW_TO_BEGIN}"
        )
    return files


def _modules(root: Path, folder: Path, package: str) -> Iterator[SuiteFile]:
    for path in sorted(folder.iterdir()):
        if path.name == "__init__.py":
            yield SuiteFile(str(root), package.rstrip("."), str(path))
        elif path.suffix == ".py" and "." not in path.stem and path.is_file():
            yield SuiteFile(str(root), package + path.stem, str(path))
        elif "." not in path.name and (path / "__init__.py").is_file():
            yield from _modules(root, path, f"{package}{path.name}.")


def names_benchmarks(file: SuiteFile) -> bool:
    """Whether a name of a benchmark stands in the file.

    If none does, it may still inherit some; but then it doesn't matter if it can't be imported.
    One that can't be read might.
    """
    text = _text(file)
    return text is None or _BENCHMARK.search(text) is not None


def is_program(file: SuiteFile) -> bool:
    """Whether the file is a script beside the benchmarks, which there is no need to import."""
    text = _text(file)
    return text is not None and _MAIN.search(text) is not None and not names_benchmarks(file)


def _text(file: SuiteFile) -> str | None:
    try:
        return Path(file.path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # not for this user, or deleted meanwhile
        return None
