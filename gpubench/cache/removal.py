"""Taking entries out of a cache: which ones, and how, without ever leaving its folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpubench.arguments import finite_number
from gpubench.cache.folder import CacheEntry, CacheFile
from gpubench.errors import ArgumentError
from gpubench.render.units import format_bytes

LEFTOVER_AGE_TIME = 3600.0
"""A temporary file younger than this may be an entry that a running process is writing."""

_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_BYTES = {
    "": 1,
    "b": 1,
    **{
        f"{letter}{ending}": base**power
        for power, letter in enumerate("kmgt", start=1)
        for ending, base in (("", 1024), ("ib", 1024), ("b", 1000))
    },
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """What pruning leaves in a cache.

    Attributes
    ----------
    older_than : float or None
        Seconds; what is older goes.
    max_bytes : float or None
        If the entries are larger than that, the oldest go, until they no longer are.
    """

    older_than: float | None
    max_bytes: float | None

    @classmethod
    def parse(cls, older_than: float | str | None, max_bytes: float | str | None) -> Limits:
        """Return the limits that numbers, or texts such as ``"30d"`` and ``"1G"``, give.

        Raises
        ------
        ArgumentError
            If neither limit is given, or one can't be used.
        """
        if older_than is None and max_bytes is None:
            raise ArgumentError(
                "prune needs older_than (such as '30d') or max_bytes (such as '1G'); "
                "clear removes all entries"
            )
        return cls(
            None if older_than is None else _amount("older_than", older_than, _SECONDS),
            None if max_bytes is None else _amount("max_bytes", max_bytes, _BYTES),
        )

    def excluded(self, entries: Sequence[CacheEntry]) -> tuple[CacheEntry, ...]:
        """Return those of the entries, of which the oldest comes first, that go."""
        excess = float("-inf")
        if self.max_bytes is not None:
            excess = sum(entry.total_bytes for entry in entries) - self.max_bytes
        excluded = []
        for entry in entries:
            if excess <= 0 and (self.older_than is None or entry.age_time <= self.older_than):
                break
            excluded.append(entry)
            excess -= entry.total_bytes
        return tuple(excluded)


@dataclass(frozen=True)
class Removal:
    """What a removal did, or would do.

    Attributes
    ----------
    dry_run : bool
        True if nothing was deleted.
    entries : tuple of CacheEntry
        The entries that were removed (would be, in a dry run), with their sources. One that
        somebody else had removed by then counts.
    leftovers : tuple of CacheFile
        The leftovers likewise.
    failures : tuple of (Path, str)
        Files that could not be removed, and why.
    """

    dry_run: bool
    entries: tuple[CacheEntry, ...] = ()
    leftovers: tuple[CacheFile, ...] = ()
    failures: tuple[tuple[Path, str], ...] = ()

    @property
    def removed_bytes(self) -> int:
        """Size of all that was removed, or would be."""
        entries = sum(entry.total_bytes for entry in self.entries)
        return entries + sum(leftover.size_bytes for leftover in self.leftovers)

    def __str__(self) -> str:
        text = (
            f"{'Would remove' if self.dry_run else 'Removed'} {format_bytes(self.removed_bytes)} "
            f"(entries: {len(self.entries):,}, leftovers: {len(self.leftovers):,})"
        )
        for path, reason in self.failures:
            text += f"\nCould not remove {path}: {reason}"
        return text


def remove(
    root: Path, entries: Iterable[CacheEntry], leftovers: Iterable[CacheFile], *, dry_run: bool
) -> Removal:
    """Delete entries with their sources, and leftovers, or say what would be deleted.

    The cache's folder `root` may be a link; folders below may not.
    """
    failures: list[tuple[Path, str]] = []

    def is_gone(file: CacheFile, source: CacheFile | None = None) -> bool:
        if dry_run:
            return True
        try:
            if file.folder != root and file.folder.is_symlink():
                raise OSError("its folder has become a link")
            # The source first: if the entry then fails to go, it is listed again.
            for part in (source, file):
                if part is not None:
                    part.path.unlink(missing_ok=True)
        except OSError as error:
            failures.append((file.path, error.strerror or str(error)))
            return False
        return True

    return Removal(
        dry_run,
        tuple(entry for entry in entries if is_gone(entry, entry.source)),
        tuple(leftover for leftover in leftovers if is_gone(leftover)),
        tuple(failures),
    )


def _amount(name: str, value: float | str, units: dict[str, int]) -> float:
    if not isinstance(value, str):
        return finite_number(name, value, at_least=0)
    match = _AMOUNT.fullmatch(value)
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise ArgumentError(
            f"{name} must be a number, or a number with one of the units "
            f"{', '.join(filter(None, units))}; got {value!r}"
        )
    return float(match[1]) * factor
