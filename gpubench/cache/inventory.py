"""`kernel_cache`: CuPy's compiled kernels on this machine, as one value."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from gpubench import arguments
from gpubench.cache.folder import CacheEntry, CacheFile, Listing, Status, list_folder
from gpubench.cache.location import given_location, is_writable, live_location
from gpubench.cache.removal import LEFTOVER_AGE_TIME, Limits, Removal, remove
from gpubench.cache.text import entry_table, summary
from gpubench.notes import Note


@dataclass(frozen=True)
class CacheTotal:
    """How many entries there are of one kind, and their size.

    Attributes
    ----------
    n_entries : int
        How many.
    total_bytes : int
        Their size, with the sources saved beside them.
    """

    n_entries: int
    total_bytes: int


@dataclass(frozen=True)
class Verification:
    """What reading every entry found.

    Attributes
    ----------
    valid, corrupt, unreadable, vanished : tuple of CacheEntry
        The entries of each status. CuPy compiles anew for a corrupt one, and fails when it wants
        an unreadable one; the vanished have gone since the cache was listed.
    """

    valid: tuple[CacheEntry, ...]
    corrupt: tuple[CacheEntry, ...]
    unreadable: tuple[CacheEntry, ...]
    vanished: tuple[CacheEntry, ...]

    @property
    def ok(self) -> bool:
        """Whether no entry is corrupt or unreadable."""
        return not (self.corrupt or self.unreadable)

    def __str__(self) -> str:
        lines = [
            f"{len(self.valid):,} valid, {len(self.corrupt):,} corrupt, "
            f"{len(self.unreadable):,} unreadable, {len(self.vanished):,} vanished"
        ]
        lines += [f"corrupt: {entry.path}" for entry in self.corrupt]
        lines += [f"unreadable: {entry.path}" for entry in self.unreadable]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class KernelCache:
    """A cache folder as it was when it was listed. ``print`` it for a summary.

    Attributes
    ----------
    path : Path or None
        The folder; None if CuPy keeps compiled kernels in no folder, and `origin` says why.
    origin : str
        What chose the folder: ``"CUPY_CACHE_DIR"``, ``"CuPy's default"``, ``"the path given"``...
    in_memory : bool
        Whether CuPy keeps what it compiles in memory only.
    exists : bool
        Whether `path` is a folder.
    writable : bool
        Whether an entry could be stored (an absent folder: created), found out by trying.
    entries : tuple of CacheEntry
        The compiled modules, the oldest first.
    leftovers : tuple of CacheFile
        Temporary files of interrupted writes, and sources whose entry has gone.
    n_foreign : int
        How many other files, links and folders there are. They are never touched.
    n_unreadable : int
        How many entries and subfolders this process may not read.
    n_vanished : int
        How many files went away while the folder was listed.
    notes : tuple of Note
        What is odd, and what to do about it.
    """

    path: Path | None
    origin: str
    in_memory: bool = False
    exists: bool = False
    writable: bool = False
    entries: tuple[CacheEntry, ...] = ()
    leftovers: tuple[CacheFile, ...] = ()
    n_foreign: int = 0
    n_unreadable: int = 0
    n_vanished: int = 0
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        path = None if self.path is None else str(self.path)
        return f"<KernelCache {path!r}: {len(self.entries)} entries, {self.total_bytes} bytes>"

    def __str__(self) -> str:
        return summary(self)

    @property
    def total_bytes(self) -> int:
        """Size of all entries, with the sources saved beside them."""
        return sum(entry.total_bytes for entry in self.entries)

    @property
    def oldest(self) -> CacheEntry | None:
        """The entry that was written first; None if there is none."""
        return self.entries[0] if self.entries else None

    @property
    def newest(self) -> CacheEntry | None:
        """The entry that was written last; None if there is none."""
        return self.entries[-1] if self.entries else None

    def largest(self, n: int = 20) -> tuple[CacheEntry, ...]:
        """Return the `n` entries that take most room, the largest first.

        Raises
        ------
        ArgumentError
            If `n` is not an integer of at least 1.
        """
        count = arguments.whole_number("n", n, at_least=1)
        return tuple(sorted(self.entries, key=attrgetter("total_bytes"), reverse=True)[:count])

    def table(self, n: int = 20) -> str:
        """Return a table of the `n` largest entries; those are read, the others are not.

        Raises
        ------
        ArgumentError
            If `n` is not an integer of at least 1.
        MissingExtraError
            If an entry takes pyelftools to read, and it is not installed.
        """
        table = entry_table(self.largest(n))
        n_smaller = len(self.entries) - n
        return f"{table}\n... and {n_smaller:,} smaller" if n_smaller > 0 else table

    def find(self, text: str) -> tuple[CacheEntry, ...]:
        """Read every entry; return those with a kernel whose (mangled) name contains `text`.

        Raises
        ------
        ArgumentError
            If `text` is not a string.
        MissingExtraError
            If an entry takes pyelftools to read, and it is not installed.
        """
        part = arguments.text("text", text)
        return tuple(
            entry for entry in self.entries if any(part in name for name in entry.kernel_names)
        )

    def by_architecture(self) -> dict[str, CacheTotal]:
        """Read every entry; return the totals by architecture, the largest first.

        What doesn't say its architecture is counted as ``"unknown"``.

        Raises
        ------
        MissingExtraError
            If an entry takes pyelftools to read, and it is not installed.
        """
        sizes: dict[str, list[int]] = defaultdict(list)
        for entry in self.entries:
            sizes[entry.architecture or "unknown"].append(entry.total_bytes)
        totals = {name: CacheTotal(len(of_one), sum(of_one)) for name, of_one in sizes.items()}
        return dict(sorted(totals.items(), key=lambda item: -item[1].total_bytes))

    def verify(self) -> Verification:
        """Read every entry and check it against its checksum, as CuPy does."""
        found: dict[Status, list[CacheEntry]] = defaultdict(list)
        for entry in self.entries:
            found[entry.status].append(entry)
        return Verification(
            valid=tuple(found["valid"]),
            corrupt=tuple(found["corrupt"]),
            unreadable=tuple(found["unreadable"]),
            vanished=tuple(found["vanished"]),
        )

    def prune(
        self,
        *,
        older_than: float | str | None = None,
        max_bytes: float | str | None = None,
        dry_run: bool = True,
    ) -> Removal:
        """Remove the oldest entries with their sources, and leftovers older than an hour.

        Age counts from when a file was written: CuPy doesn't record when it was last used.

        Parameters
        ----------
        older_than : float or str, optional
            Remove entries, and leftovers, older than that: seconds, or text such as ``"30d"``.
        max_bytes : float or str, optional
            Remove the oldest entries until the rest is no larger: bytes, or text such as
            ``"1G"`` (1024 cubed; ``"1GB"`` is 1000 cubed).
        dry_run : bool, default: True
            Say what would be removed, and remove nothing.

        Raises
        ------
        ArgumentError
            If neither limit is given, or one can't be used.
        """
        limits = Limits.parse(older_than, max_bytes)
        return self._remove(limits.excluded(self.entries), limits.older_than or 0, dry_run)

    def clear(self, *, dry_run: bool = True) -> Removal:
        """Remove all entries with their sources, and leftovers older than an hour.

        Foreign files stay, and so do entries that were added after this cache was listed.

        Parameters
        ----------
        dry_run : bool, default: True
            Say what would be removed, and remove nothing.
        """
        return self._remove(self.entries, 0, dry_run)

    def _remove(self, entries: tuple[CacheEntry, ...], older_than: float, dry_run: bool) -> Removal:
        if self.path is None:
            return Removal(dry_run)
        age_time = max(older_than, LEFTOVER_AGE_TIME)
        leftovers = [leftover for leftover in self.leftovers if leftover.age_time > age_time]
        return remove(self.path, entries, leftovers, dry_run=dry_run)


def kernel_cache(path: str | os.PathLike[str] | None = None) -> KernelCache:
    """List CuPy's cache of compiled kernels: no entry is opened, nothing is created.

    Parameters
    ----------
    path : str or path-like, optional
        The folder. By default the one that CuPy uses in this process, whether it has been
        imported or not; it is not imported for this.

    Returns
    -------
    KernelCache
        Empty, with ``exists=False``, if there is no such folder.

    Raises
    ------
    ArgumentError
        If `path` can't name a folder.
    """
    location = live_location() if path is None else given_location(path)
    folder = location.path
    if folder is None:
        return KernelCache(**vars(location))
    notes = location.notes
    listing = Listing()
    try:
        listing = list_folder(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        notes += (Note("cache-folder-unreadable", f"It can't be listed: {error.strerror}."),)
    writable = is_writable(folder)
    if not writable:
        message = "It can't be written: a CuPy that uses it fails at its import or first kernel."
        advice = "Set CUPY_CACHE_DIR to a folder that can be, or CUPY_CACHE_IN_MEMORY to 1."
        notes += (Note("cache-not-writable", message, advice),)
    return KernelCache(
        **{**vars(location), "notes": notes},
        **vars(listing),
        exists=os.path.isdir(folder),
        writable=writable,
    )
