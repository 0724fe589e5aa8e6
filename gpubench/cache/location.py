"""Where CuPy keeps its compiled kernels, and why: what it would do, not what looks sensible.

CuPy 14.1 and newer read ``CUPY_CACHE_DIR`` once, when they are imported; older ones at each
compilation. The text is used as it is: an empty one too, and nothing in it is expanded.
``CUPY_CACHE_IN_MEMORY`` is read at each compilation.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpubench.errors import ArgumentError
from gpubench.notes import Note

_DEFAULT = os.path.join("~", ".cupy", "kernel_cache")
_OFF = {"0", "false", "no", "off"}


@dataclass(frozen=True)
class CacheLocation:
    """Where a cache is, and what chose the place; the attributes are those of `KernelCache`."""

    path: Path | None
    origin: str
    in_memory: bool = False
    notes: tuple[Note, ...] = ()


def given_location(path: str | os.PathLike[str]) -> CacheLocation:
    """Return the location that a caller names; a leading ``~`` is expanded.

    Raises
    ------
    ArgumentError
        If `path` can't name a folder.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(
            f"path must be a string or a path that names a folder, or None for the folder that "
            f"CuPy uses, not {path!r}"
        )
    text = os.fsdecode(path)
    if not text or "\0" in text:
        raise ArgumentError(f"path must name a folder, and {text!r} can't; use '.' for this one")
    return CacheLocation(_absolute(os.path.expanduser(text)), "the path given")


def live_location() -> CacheLocation:
    """Return where CuPy, in this process, looks for compiled kernels and stores new ones."""
    folder, origin, notes = _folder_in_use()
    notes += _source_notes()
    memory = os.environ.get("CUPY_CACHE_IN_MEMORY", "")
    if _is_on(memory):
        note = Note(
            "cache-in-memory",
            f"CUPY_CACHE_IN_MEMORY={memory!r} keeps what CuPy compiles in memory: no folder is "
            "read or written, except for what nvcc compiles.",
            f"To see what other processes left, name the folder: {folder!r}." if folder else "",
        )
        return CacheLocation(None, "CUPY_CACHE_IN_MEMORY", True, (note, *notes))
    if memory and memory.strip().lower() not in _OFF:
        note = Note(
            "cache-in-memory-ignored",
            f"CUPY_CACHE_IN_MEMORY={memory!r} does not keep the cache in memory: CuPy takes 1 "
            "alone for yes.",
            "Set it to 1, or unset it.",
        )
        notes = (*notes, note)
    return CacheLocation(_absolute(folder) if folder else None, origin, notes=notes)


def is_writable(folder: Path) -> bool:
    """Whether a file can be written in `folder`, or where CuPy would have to create it.

    Found out by writing one: mode bits say nothing of read-only mounts, quotas and access
    lists. The file has no name, or loses it at once, and no folder is created.
    """
    place = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), folder)
    try:
        with tempfile.TemporaryFile(dir=place, buffering=0) as probe:
            probe.write(b"\0")
    except OSError:
        return False
    return True


def _folder_in_use() -> tuple[str | None, str, tuple[Note, ...]]:
    """Return the text that CuPy takes for the folder, where it has it from, and what is odd."""
    variable = os.environ.get("CUPY_CACHE_DIR")
    default = os.path.expanduser(_DEFAULT)
    configured = default if variable is None else variable
    compiler = sys.modules.get("cupy.cuda.compiler")
    if (backend := getattr(compiler, "_kernel_cache_backend", None)) is not None:
        folder = getattr(backend, "_cache_dir", None)
    elif (get_cache_dir := getattr(compiler, "get_cache_dir", None)) is not None:
        folder = get_cache_dir()
    else:
        folder = configured
    if folder is None:
        origin = f"{type(backend).__qualname__}, a cache back end that was set in this process"
        return None, origin, ()
    folder = os.fspath(folder)
    if folder != configured:
        note = Note(
            "cache-dir-changed",
            f"CuPy, imported already, uses {folder!r}; CUPY_CACHE_DIR and the home folder, as "
            f"they are now, would make it {configured!r}.",
            "Set CUPY_CACHE_DIR before CuPy is imported.",
        )
        return folder, "fixed when CuPy was imported", (note, *_folder_notes(folder))
    if variable is None:
        return folder, "CuPy's default", _default_notes(folder)
    return folder, "CUPY_CACHE_DIR", _folder_notes(folder)


def _folder_notes(folder: str) -> tuple[Note, ...]:
    advice = "Set CUPY_CACHE_DIR to an absolute path."
    if not folder:
        message = "CUPY_CACHE_DIR is empty: CuPy takes that for the folder's name and fails."
        return (Note("cache-dir-empty", message, "Unset it, or set it to an absolute path."),)
    if folder.startswith("~"):
        message = f"CuPy does not expand the '~' of {folder!r}: the folder is below the working "
        return (Note("cache-dir-tilde", f"{message}directory, and changes with it.", advice),)
    if not os.path.isabs(folder):
        message = f"{folder!r} is relative: the folder changes with the working directory."
        return (Note("cache-dir-relative", message, advice),)
    return ()


def _default_notes(folder: str) -> tuple[Note, ...]:
    if os.path.isabs(folder) and not (os.name == "posix" and os.environ.get("HOME") == ""):
        return ()
    message = f"No home folder is known, so CuPy's default has become {folder!r}."
    return (Note("cache-no-home", message, "Set HOME, or CUPY_CACHE_DIR to an absolute path."),)


def _source_notes() -> tuple[Note, ...]:
    value = os.environ.get("CUPY_CACHE_SAVE_CUDA_SOURCE", "")
    if value.strip().lower() not in _OFF:
        return ()
    return (
        Note(
            "cache-source-saved",
            f"CUPY_CACHE_SAVE_CUDA_SOURCE={value!r} counts as set for CuPy 14.1 and newer, "
            "which then save the source of every kernel.",
            "Unset it to save none.",
        ),
    )


def _is_on(value: str) -> bool:
    """Whether CuPy takes the text of a variable for yes: a number that equals 1."""
    try:
        return int(value) == 1
    except ValueError:
        return False


def _absolute(folder: str) -> Path:
    try:
        return Path.cwd() / folder
    except OSError:  # the working directory is gone
        return Path(folder)
