"""The files of a cache folder: which are CuPy's, and what one look at each tells."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from time import time
from typing import Literal

from gpubench.cache.payload import UNKNOWN, Payload, checked_payload, read_payload

Status = Literal["valid", "corrupt", "unreadable", "vanished"]

_SUBFOLDER = re.compile(r"[0-9a-f]{2}")


def _cupy_file(digits: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<entry>[0-9a-f]{digits}\.(?:cubin|hsaco|ltoir))(?P<source>\.cu|\.cpp)?"
        r"|(?P<temporary>tmp[a-z0-9_]+)"
    )


_FLAT = _cupy_file("{40}")
# In a layout with a subfolder for the first digits, how many the name repeats is up to it.
_NESTED = _cupy_file("+")


@dataclass(frozen=True)
class CacheFile:
    """One file that CuPy wrote.

    Attributes
    ----------
    folder : Path
        The folder that holds it.
    name : str
        Its name there.
    size_bytes : int
        Its size.
    modified_time : float
        When it was written, in seconds since the epoch.
    """

    folder: Path
    name: str
    size_bytes: int
    modified_time: float

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / self.name

    @property
    def age_time(self) -> float:
        """Seconds since it was written; 0 if that is in the future."""
        return max(0.0, time() - self.modified_time)


@dataclass(frozen=True)
class CacheEntry(CacheFile):
    """One compiled module of the cache.

    The attributes come from a listing of the folder. What the file holds (`status`, `payload`
    and what they tell) is read when it is first asked for, and kept.

    Attributes
    ----------
    source : CacheFile or None
        The source that CuPy saved beside it, if it did.
    """

    source: CacheFile | None = None

    @property
    def kind(self) -> str:
        """``"cubin"`` (CUDA), ``"hsaco"`` (HIP) or ``"ltoir"`` (LTO code)."""
        return self.name.rpartition(".")[2]

    @property
    def total_bytes(self) -> int:
        """Size of the entry and its source together."""
        return self.size_bytes + (self.source.size_bytes if self.source else 0)

    @cached_property
    def status(self) -> Status:
        """``"valid"``, ``"corrupt"`` (CuPy compiles again), ``"unreadable"`` or ``"vanished"``."""
        return self._read()[0]

    @property
    def valid(self) -> bool:
        """Whether CuPy, in this process, would take the entry."""
        return self.status == "valid"

    @cached_property
    def payload(self) -> Payload:
        """The compiled code; of the format ``"unknown"`` if the entry is not valid.

        Raises
        ------
        MissingExtraError
            If that takes pyelftools, and it is not installed.
        """
        status, payload = self._read()
        return read_payload(payload) if status == "valid" else UNKNOWN

    @property
    def architecture(self) -> str:
        """What it was compiled for, for example ``"sm_90"``; empty if unknown."""
        return self.payload.architecture

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The kernels in it, as the compiler named (mangled) them."""
        return self.payload.kernel_names

    def _read(self) -> tuple[Status, bytes]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return "vanished", b""
        except OSError:
            return "unreadable", b""
        payload = checked_payload(data)
        return ("corrupt", b"") if payload is None else ("valid", payload)


@dataclass(frozen=True)
class Listing:
    """What a folder held while it was listed; the attributes are those of `KernelCache`."""

    entries: tuple[CacheEntry, ...] = ()
    leftovers: tuple[CacheFile, ...] = ()
    n_foreign: int = 0
    n_unreadable: int = 0
    n_vanished: int = 0


def list_folder(root: Path) -> Listing:
    """List a cache folder, flat or with subfolders ``00`` to ``ff``; no file is opened.

    Links are not followed, but for `root` itself.

    Raises
    ------
    OSError
        If `root` can't be listed.
    """
    scan = _Scan()
    scan.folder(root, _FLAT)
    return scan.listing()


class _Scan:
    """Sorts what is in a folder into entries, their sources, leftovers and the rest."""

    def __init__(self) -> None:
        self.entries: list[CacheEntry] = []
        self.sources: dict[str, CacheFile] = {}
        self.leftovers: list[CacheFile] = []
        self.n_foreign = self.n_unreadable = self.n_vanished = 0
        self.user = os.geteuid() if os.name == "posix" else 0

    def folder(self, folder: Path, cupy_file: re.Pattern[str]) -> None:
        with os.scandir(folder) as items:
            for item in items:
                try:
                    match = cupy_file.fullmatch(item.name)
                    if match and item.is_file(follow_symlinks=False):
                        self.file(folder, item, match)
                    elif cupy_file is _FLAT and _is_subfolder(item):
                        self.folder(folder / item.name, _NESTED)
                    else:
                        self.n_foreign += 1
                except FileNotFoundError:
                    self.n_vanished += 1
                except OSError:
                    self.n_unreadable += 1

    def file(self, folder: Path, item: os.DirEntry[str], match: re.Match[str]) -> None:
        status = item.stat(follow_symlinks=False)
        facts = (folder, item.name, status.st_size, status.st_mtime)
        if match.lastgroup == "temporary":
            self.leftovers.append(CacheFile(*facts))
        elif match.lastgroup == "source":
            self.sources[item.path.removesuffix(match["source"])] = CacheFile(*facts)
        else:
            self.entries.append(CacheEntry(*facts))
            # Asking the system is another look at the disk: only where the mode leaves doubt.
            is_own = status.st_uid == self.user and status.st_mode & stat.S_IRUSR
            self.n_unreadable += not (is_own or os.access(item.path, os.R_OK))

    def listing(self) -> Listing:
        """Give each source to its entry; a source without one is a leftover."""
        entries = sorted(self.entries, key=attrgetter("modified_time"))
        if self.sources:
            entries = [
                replace(entry, source=self.sources.pop(str(entry.path), None)) for entry in entries
            ]
        return Listing(
            tuple(entries),
            (*self.leftovers, *self.sources.values()),
            self.n_foreign,
            self.n_unreadable,
            self.n_vanished,
        )


def _is_subfolder(item: os.DirEntry[str]) -> bool:
    return _SUBFOLDER.fullmatch(item.name) is not None and item.is_dir(follow_symlinks=False)
