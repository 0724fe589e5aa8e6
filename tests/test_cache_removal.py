"""Pruning and clearing: what goes, what stays, and that nothing outside is ever touched."""

from pathlib import Path

import pytest
from cache_files import PTX, aged, encoded, entry_name, store

import gpubench
from gpubench.cache import Removal, kernel_cache

DAY = 86400.0
SIZE = 40 + len(PTX)


@pytest.fixture
def folder(tmp_path):
    """Entries of 1, 2, 3 and 4 days; leftovers of a minute and of 2 days; and a foreign file."""
    for days in (1, 2, 3, 4):
        store(tmp_path, f"{days} days", age_time=days * DAY)
    for name, age_time in (("tmpnew_____", 60), ("tmpold_____", 2 * DAY)):
        (tmp_path / name).write_text("partial")
        aged(tmp_path / name, age_time)
    aged(store(tmp_path, "foreign").rename(tmp_path / "add.cubin"), 10 * DAY)
    return tmp_path


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def days(removal):
    ages = [round(entry.age_time / DAY) for entry in removal.entries]
    assert ages == sorted(ages, reverse=True)
    return set(ages)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"older_than": "60h"}, {3, 4}),
        ({"older_than": "3600 min"}, {3, 4}),
        ({"older_than": "2.5d"}, {3, 4}),
        ({"older_than": 2.5 * DAY}, {3, 4}),
        ({"older_than": "0.25 W"}, {2, 3, 4}),
        ({"older_than": 0}, {1, 2, 3, 4}),
        ({"older_than": "30d"}, set()),
        ({"max_bytes": 0}, {1, 2, 3, 4}),
        ({"max_bytes": 2 * SIZE}, {3, 4}),
        ({"max_bytes": str(2 * SIZE - 1)}, {2, 3, 4}),
        ({"max_bytes": "1G"}, set()),
        ({"max_bytes": 3 * SIZE, "older_than": "60h"}, {3, 4}),
        ({"max_bytes": SIZE, "older_than": "60h"}, {2, 3, 4}),
    ],
)
def test_prune_takes_the_oldest(folder, limits, expected):
    before = files(folder)
    would = kernel_cache(folder).prune(**limits)
    assert would.dry_run
    assert days(would) == expected
    assert files(folder) == before
    done = kernel_cache(folder).prune(**limits, dry_run=False)
    assert not done.dry_run
    assert (done.entries, done.leftovers) == (would.entries, would.leftovers)
    removed = {file.name for file in (*done.entries, *done.leftovers)}
    assert files(folder) == before - removed


@pytest.mark.parametrize(
    ("text", "expected"), [("1k", 1024), ("1 KiB", 1024), ("1KB", 1000), ("1.5kb", 1500)]
)
def test_units_of_sizes(tmp_path, text, expected):
    path = tmp_path / entry_name("key")
    path.write_bytes(bytes(expected))
    assert kernel_cache(tmp_path).prune(max_bytes=text).entries == ()
    path.write_bytes(bytes(expected + 1))
    assert len(kernel_cache(tmp_path).prune(max_bytes=text).entries) == 1


@pytest.mark.parametrize(
    "limits",
    [
        {"older_than": "30y"},
        {"older_than": "-3d"},
        {"older_than": ""},
        {"older_than": "d"},
        {"older_than": "1G"},
        {"older_than": -1},
        {"older_than": float("nan")},
        {"older_than": True},
        {"max_bytes": "1 e3"},
        {"max_bytes": "30d"},
        {"max_bytes": float("inf")},
        {"max_bytes": b"1G"},
    ],
)
def test_limits_that_cannot_be_used(folder, limits):
    (name,) = limits
    before = files(folder)
    with pytest.raises(gpubench.ArgumentError, match=f"^{name} must be"):
        kernel_cache(folder).prune(**limits, dry_run=False)
    assert files(folder) == before


def test_prune_needs_a_limit(folder):
    with pytest.raises(gpubench.ArgumentError, match=r"older_than .* or max_bytes"):
        kernel_cache(folder).prune(dry_run=False)


@pytest.mark.parametrize(
    ("older_than", "expected"),
    [("1s", {"tmpold_____"}), ("47h", {"tmpold_____"}), ("49h", set())],
)
def test_leftovers_go_by_age_and_never_within_the_hour(folder, older_than, expected):
    removal = kernel_cache(folder).prune(older_than=older_than)
    assert {leftover.name for leftover in removal.leftovers} == expected


def test_clear(folder):
    (folder / "ab").mkdir()
    store(folder / "ab", "nested")
    would = kernel_cache(folder).clear()
    assert len(files(folder)) == 9
    done = kernel_cache(folder).clear(dry_run=False)
    assert files(folder) == {"ab", "tmpnew_____", "add.cubin"}
    assert would.removed_bytes == done.removed_bytes == 5 * SIZE + len("partial")
    assert str(would) == "Would remove 767 B (entries: 5, leftovers: 1)"
    assert str(done) == "Removed 767 B (entries: 5, leftovers: 1)"


def test_a_source_goes_with_its_entry(tmp_path):
    store(tmp_path, "key", source="extern")
    removal = kernel_cache(tmp_path).clear(dry_run=False)
    assert removal.removed_bytes == SIZE + len("extern")
    assert files(tmp_path) == set()


def test_a_lone_source_goes_by_age(tmp_path):
    source = tmp_path / f"{entry_name('gone')}.cu"
    source.touch()
    assert kernel_cache(tmp_path).clear().leftovers == ()
    aged(source, DAY)
    kernel_cache(tmp_path).clear(dry_run=False)
    assert files(tmp_path) == set()


def test_what_is_gone_already_counts_as_removed(folder):
    cache = kernel_cache(folder)
    for name in files(folder):
        (folder / name).unlink()
    folder.rmdir()
    removal = cache.clear(dry_run=False)
    assert len(removal.entries) == 4
    assert removal.failures == ()


def test_failures_are_reported_and_the_rest_goes(folder, monkeypatch):
    stubborn = folder / entry_name("2 days")
    unlink = Path.unlink

    def guarded(path, missing_ok=False):
        if path == stubborn:
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", guarded)
    removal = kernel_cache(folder).clear(dry_run=False)
    assert days(removal) == {1, 3, 4}
    assert removal.failures == ((stubborn, "Permission denied"),)
    assert str(removal).endswith(f"Could not remove {stubborn}: Permission denied")
    assert stubborn.exists()


def test_links_stay_and_what_they_point_to(tmp_path):
    outside = tmp_path / "outside"
    folder = tmp_path / "cache"
    outside.mkdir()
    folder.mkdir()
    target = store(outside, "target", age_time=DAY)
    (folder / entry_name("link")).symlink_to(target)
    (folder / "tmplink____").symlink_to(target)
    (folder / "ab").symlink_to(outside)
    before = files(tmp_path)
    assert kernel_cache(folder).clear(dry_run=False) == Removal(dry_run=False)
    assert files(tmp_path) == before


def test_a_subfolder_that_has_become_a_link_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    nested = tmp_path / "cache" / "ab"
    nested.mkdir(parents=True)
    name = store(nested, "key").name
    cache = kernel_cache(tmp_path / "cache")
    nested.rename(outside)
    nested.symlink_to(outside)
    removal = cache.clear(dry_run=False)
    assert removal.entries == ()
    assert removal.failures == ((nested / name, "its folder has become a link"),)
    assert (outside / name).read_bytes() == encoded(PTX)


def test_without_a_folder_there_is_nothing_to_remove(monkeypatch, tmp_path):
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "1")
    assert kernel_cache().clear(dry_run=False) == Removal(dry_run=False)
    assert kernel_cache(tmp_path / "absent").clear() == Removal(dry_run=True)
