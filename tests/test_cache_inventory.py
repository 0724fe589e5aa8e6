"""Listing a folder: what is counted as what, what is read, and what is odd about the files."""

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from cache_files import PTX, aged, compiled, encoded, entry_name, store

import gpubench
from gpubench.cache import CacheTotal, kernel_cache

NOT_ROOT = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="mode bits don't hold root back"
)


class Item:
    """A directory entry whose look-ups fail."""

    def __init__(self, item, error):
        self.name, self.path, self._error = item.name, item.path, error

    def is_file(self, *, follow_symlinks):
        return True

    def is_dir(self, *, follow_symlinks):
        return True

    def stat(self, *, follow_symlinks):
        raise self._error


@pytest.fixture
def failing_items(monkeypatch):
    """Make every third item of a folder fail with the error."""
    scandir = os.scandir

    def install(error):
        @contextmanager
        def failing(path):
            with scandir(path) as items:
                yield [Item(x, error) if i % 3 == 0 else x for i, x in enumerate(items)]

        monkeypatch.setattr(os, "scandir", failing)

    return install


def test_totals_oldest_and_newest(tmp_path):
    middle = store(tmp_path, "middle", kind="hsaco", age_time=60)
    newest = store(tmp_path, "newest", kind="ltoir", age_time=5)
    oldest = store(tmp_path, "oldest", PTX * 3, age_time=7200)
    cache = kernel_cache(tmp_path)
    assert [entry.path for entry in cache.entries] == [oldest, middle, newest]
    assert [entry.kind for entry in cache.entries] == ["cubin", "hsaco", "ltoir"]
    assert (cache.oldest.path, cache.newest.path) == (oldest, newest)
    assert cache.oldest.age_time == pytest.approx(7200, abs=30)
    assert cache.oldest.modified_time == oldest.stat().st_mtime
    assert cache.total_bytes == 3 * 40 + 5 * len(PTX)
    assert [entry.path for entry in cache.largest(1)] == [oldest]


def test_empty_folder(tmp_path):
    cache = kernel_cache(tmp_path)
    assert cache.exists
    assert (cache.entries, cache.oldest, cache.newest, cache.total_bytes) == ((), None, None, 0)
    assert cache.by_architecture() == {}
    assert cache.verify().ok


def test_age_of_a_file_from_the_future_is_zero(tmp_path):
    store(tmp_path, "key", age_time=-3600)
    assert kernel_cache(tmp_path).entries[0].age_time == 0


def test_a_source_belongs_to_its_entry(tmp_path):
    path = store(tmp_path, "key", source="extern")
    (entry,) = kernel_cache(tmp_path).entries
    assert entry.source.path == path.with_name(f"{path.name}.cu")
    assert entry.total_bytes == entry.size_bytes + len("extern")


def test_sources_of_hip_end_in_cpp_for_older_versions(tmp_path):
    path = store(tmp_path, "key", kind="hsaco")
    path.with_name(f"{path.name}.cpp").write_text("extern")
    cache = kernel_cache(tmp_path)
    assert cache.entries[0].source.name == f"{path.name}.cpp"
    assert cache.leftovers == ()


def test_leftovers_are_temporary_files_and_lone_sources(tmp_path):
    lone = f"{entry_name('gone')}.cu"
    for name in ("tmpab3_x9zq", lone):
        (tmp_path / name).write_text("x")
    cache = kernel_cache(tmp_path)
    assert {leftover.name for leftover in cache.leftovers} == {"tmpab3_x9zq", lone}
    assert cache.n_foreign == 0


def test_foreign_files_folders_and_links_are_counted(tmp_path):
    store(tmp_path, "key")
    target = tmp_path.parent / f"{tmp_path.name}-target"
    target.mkdir()
    outside = store(target, "outside")
    for name in ("add.cubin", "cupy_callback_0123.so", "tmp.txt", f"{'A' * 40}.cubin"):
        (tmp_path / name).write_text("x")
    (tmp_path / "jitify").mkdir()
    (tmp_path / entry_name("folder")).mkdir()
    (tmp_path / entry_name("link")).symlink_to(outside)
    (tmp_path / "ab").symlink_to(target)
    (tmp_path / "root").symlink_to("/")
    cache = kernel_cache(tmp_path)
    assert [entry.name for entry in cache.entries] == [entry_name("key")]
    assert cache.n_foreign == 9


def test_two_level_layout(tmp_path):
    for name in ("ab/abcd.cubin", f"{entry_name('x')[:2]}/{entry_name('x')}", "00/ff/00.cubin"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(encoded(PTX))
    cache = kernel_cache(tmp_path)
    assert {entry.name for entry in cache.entries} == {"abcd.cubin", entry_name("x")}
    assert all(entry.valid for entry in cache.entries)
    assert cache.n_foreign == 1  # a second level of folders is nobody's layout


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    store(tmp_path / "real", "key")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert len(kernel_cache(tmp_path / "link").entries) == 1


def test_listing_reads_nothing(tmp_path):
    path = tmp_path / entry_name("key")
    path.write_bytes(b"written later")
    (entry,) = kernel_cache(tmp_path).entries
    path.write_bytes(encoded(PTX))
    assert entry.kernel_names == ("cupy_sum",)
    path.unlink()
    assert entry.kernel_names == ("cupy_sum",)  # kept


def test_find_and_by_architecture(tmp_path):
    source = 'extern "C" __global__ void multiply(float* a) { a[0] *= 2; }'
    store(tmp_path, "ptx", source="a source")
    store(tmp_path, "elf", code := compiled(source, "--gpu-architecture=sm_120"))
    store(tmp_path, "other", b"?")
    cache = kernel_cache(tmp_path)
    assert [entry.name for entry in cache.find("sum")] == [entry_name("ptx")]
    assert [entry.name for entry in cache.find("multi")] == [entry_name("elf")]
    assert cache.find("absent") == ()
    assert cache.by_architecture() == {
        "sm_120": CacheTotal(1, 40 + len(code)),
        "sm_80": CacheTotal(1, 40 + len(PTX) + len("a source")),
        "unknown": CacheTotal(1, 41),
    }
    assert next(iter(cache.by_architecture())) == "sm_120"


def test_verify(tmp_path, monkeypatch):
    for key in ("valid", "corrupt", "vanished", "unreadable"):
        store(tmp_path, key)
    cache = kernel_cache(tmp_path)
    (tmp_path / entry_name("corrupt")).write_bytes(encoded(PTX)[:-1])
    (tmp_path / entry_name("vanished")).unlink()
    unreadable = tmp_path / entry_name("unreadable")
    read_bytes = Path.read_bytes

    def guarded(path):
        if path == unreadable:
            raise PermissionError(13, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", guarded)
    verification = cache.verify()
    for status in ("valid", "corrupt", "vanished", "unreadable"):
        assert [entry.name for entry in getattr(verification, status)] == [entry_name(status)]
    assert not verification.ok
    assert str(verification) == (
        "1 valid, 1 corrupt, 1 unreadable, 1 vanished\n"
        f"corrupt: {tmp_path / entry_name('corrupt')}\n"
        f"unreadable: {unreadable}"
    )


def test_text(tmp_path):
    store(tmp_path, "one", age_time=3 * 86400, source="x" * 5000)
    store(tmp_path, "two", PTX.replace(b"cupy_sum", b"s" * 80), age_time=5400)
    store(tmp_path, "three", b"?", kind="ltoir", age_time=150)
    (tmp_path / "tmpabcdefgh").touch()
    (tmp_path / "README").touch()
    cache = kernel_cache(tmp_path)
    assert str(cache) == (
        f"CuPy's kernel cache: {tmp_path} (the path given; exists, writable)\n"
        "    2 cubin, 1 ltoir: 5.4 KiB; oldest 3.0 d, newest 2.5 min\n"
        "    Also: 1 leftover, 1 foreign"
    )
    assert repr(cache) == f"<KernelCache {str(tmp_path)!r}: 3 entries, {cache.total_bytes} bytes>"
    header, _, *rows = cache.table(2).splitlines()
    assert header.split() == ["file", "size", "age", "architecture", "status", "kernels"]
    assert [row.split() for row in rows] == [
        [entry_name("one"), "5.0", "KiB", "3.0", "d", "sm_80", "valid", "cupy_sum"],
        [entry_name("two"), "296", "B", "1.5", "h", "sm_80", "valid", "s" * 57 + "..."],
        ["...", "and", "1", "smaller"],
    ]
    assert "smaller" not in cache.table()


@pytest.mark.parametrize("n", [0, -1, True, 2.0, "3"])
def test_a_table_has_a_whole_number_of_rows(tmp_path, n):
    with pytest.raises(gpubench.ArgumentError, match="n must be"):
        kernel_cache(tmp_path).table(n)


@pytest.mark.parametrize("text", [None, 3, b"sum"])
def test_find_takes_text(tmp_path, text):
    with pytest.raises(gpubench.ArgumentError, match="text must be a string"):
        kernel_cache(tmp_path).find(text)


@pytest.mark.parametrize(
    ("error", "count"),
    [(FileNotFoundError(), "n_vanished"), (PermissionError(), "n_unreadable")],
)
def test_files_that_fail_while_listing_are_counted(tmp_path, failing_items, error, count):
    for key in range(30):
        store(tmp_path, str(key))
    failing_items(error)
    cache = kernel_cache(tmp_path)
    assert len(cache.entries) == 20
    assert getattr(cache, count) == 10
    assert f"10 {count.removeprefix('n_')}" in str(cache)


def test_another_users_entries_are_unreadable(tmp_path, monkeypatch):
    store(tmp_path, "key")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert kernel_cache(tmp_path).n_unreadable == 0  # the mode lets everybody read
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    cache = kernel_cache(tmp_path)
    assert cache.n_unreadable == 1
    assert len(cache.entries) == 1


@NOT_ROOT
def test_unreadable_files_and_folders(tmp_path):
    (tmp_path / "ab").mkdir()
    store(tmp_path, "key")
    locked = [store(tmp_path, "locked"), tmp_path / "ab"]
    for path in locked:
        path.chmod(0)
    try:
        cache = kernel_cache(tmp_path)
        assert cache.n_unreadable == 2
        assert [entry.name for entry in cache.verify().unreadable] == [entry_name("locked")]
    finally:
        for path in locked:
            path.chmod(0o700)


def test_files_that_come_and_go(tmp_path):
    for key in range(20):
        store(tmp_path, f"steady {key}")
    done = threading.Event()

    def churn():
        round_ = 0
        while not done.is_set():
            round_ += 1
            key = f"fleeting {round_ % 10}"
            store(tmp_path, key)
            os.replace(tmp_path / entry_name(key), tmp_path / entry_name("replaced"))
            (tmp_path / entry_name("replaced")).unlink()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(200):
            cache = kernel_cache(tmp_path)
            assert len(cache.entries) >= 20
            assert not cache.verify().unreadable
    finally:
        done.set()
        thread.join()


def test_a_hundred_thousand_entries_are_listed_in_two_seconds():
    with tempfile.TemporaryDirectory() as folder:
        for key in range(100_000):
            os.close(os.open(f"{folder}/{key:040x}.cubin", os.O_CREAT | os.O_WRONLY))
        Path(folder, "root").symlink_to("/")
        # A process of its own, with no coverage measured, and the time that it had a processor:
        # what else the machine does is not the listing's fault.
        code = (
            "import sys, time\n"
            "from gpubench import kernel_cache\n"
            "start = time.process_time()\n"
            "cache = kernel_cache(sys.argv[1])\n"
            "print(len(cache.entries), time.process_time() - start)\n"
        )
        command = [sys.executable, "-c", code, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        n_entries, seconds = done.stdout.split()
        assert int(n_entries) == 100_000
        assert float(seconds) < 2


def test_trying_to_write_leaves_nothing(tmp_path):
    aged(tmp_path, 1000)
    before = tmp_path.stat().st_mtime_ns
    assert kernel_cache(tmp_path).writable
    assert list(tmp_path.iterdir()) == []
    if hasattr(os, "O_TMPFILE"):
        assert tmp_path.stat().st_mtime_ns == before
