"""Where the cache is and why: what CuPy would do, with a note on whatever is odd."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from cache_files import PTX, entry_name, store

import gpubench
from gpubench.cache import kernel_cache


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """No variable is set, CuPy isn't imported, and the home folder is a temporary one."""
    for name in ("DIR", "IN_MEMORY", "SAVE_CUDA_SOURCE"):
        monkeypatch.delenv(f"CUPY_CACHE_{name}", raising=False)
    monkeypatch.delitem(sys.modules, "cupy.cuda.compiler", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def imported_cupy(monkeypatch, **attributes):
    monkeypatch.setitem(sys.modules, "cupy.cuda.compiler", SimpleNamespace(**attributes))


def codes(cache):
    return [note.code for note in cache.notes]


def test_default(tmp_path):
    cache = kernel_cache()
    assert cache.path == tmp_path / ".cupy" / "kernel_cache"
    assert cache.origin == "CuPy's default"
    assert not cache.exists
    assert cache.writable  # it could be created
    assert (cache.entries, cache.notes) == ((), ())
    assert not (tmp_path / ".cupy").exists()


def test_variable(monkeypatch, tmp_path):
    (tmp_path / "kernels").mkdir()
    store(tmp_path / "kernels", "key")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "kernels"))
    cache = kernel_cache()
    assert (cache.path, cache.origin) == (tmp_path / "kernels", "CUPY_CACHE_DIR")
    assert cache.exists
    assert len(cache.entries) == 1
    assert cache.notes == ()


def test_empty_variable_is_used_as_it_is(monkeypatch):
    monkeypatch.setenv("CUPY_CACHE_DIR", "")
    cache = kernel_cache()
    assert (cache.path, cache.origin) == (None, "CUPY_CACHE_DIR")
    assert not cache.exists
    assert not cache.in_memory
    assert codes(cache) == ["cache-dir-empty"]
    assert str(cache).startswith("CuPy's kernel cache: no folder (CUPY_CACHE_DIR)\n    Note: cache")


@pytest.mark.parametrize(
    ("text", "code"), [("~/kc", "cache-dir-tilde"), ("kc", "cache-dir-relative")]
)
def test_variable_is_not_expanded(monkeypatch, tmp_path, text, code):
    monkeypatch.setenv("CUPY_CACHE_DIR", text)
    cache = kernel_cache()
    assert cache.path == tmp_path / text
    assert codes(cache) == [code]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="HOME and the user database are POSIX's")
@pytest.mark.parametrize("home", [None, ""])
def test_no_home(monkeypatch, tmp_path, home):
    import pwd

    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    if home is None:
        monkeypatch.delenv("HOME")
        expected = tmp_path / "~" / ".cupy" / "kernel_cache"
    else:
        monkeypatch.setenv("HOME", home)
        expected = Path("/.cupy/kernel_cache")
    cache = kernel_cache()
    assert cache.path == expected
    assert "cache-no-home" in codes(cache)


@pytest.mark.parametrize("value", ["1", " 1 ", "01"])
def test_in_memory(monkeypatch, tmp_path, value):
    store(tmp_path, "stale")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", value)
    cache = kernel_cache()
    assert cache.in_memory
    assert (cache.path, cache.origin) == (None, "CUPY_CACHE_IN_MEMORY")
    assert cache.entries == ()
    assert codes(cache) == ["cache-in-memory"]
    assert repr(str(tmp_path)) in cache.notes[0].advice
    assert len(kernel_cache(tmp_path).entries) == 1


@pytest.mark.parametrize(
    ("value", "is_odd"),
    [("0", False), ("false", False), ("", False), ("2", True), ("true", True), ("yes", True)],
)
def test_not_in_memory(monkeypatch, value, is_odd):
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", value)
    cache = kernel_cache()
    assert not cache.in_memory
    assert cache.path is not None
    assert codes(cache) == (["cache-in-memory-ignored"] if is_odd else [])


@pytest.mark.parametrize(
    ("value", "is_odd"), [("", False), ("1", False), ("0", True), ("False", True), ("no", True)]
)
def test_a_source_is_saved_for_any_text(monkeypatch, value, is_odd):
    monkeypatch.setenv("CUPY_CACHE_SAVE_CUDA_SOURCE", value)
    assert codes(kernel_cache()) == (["cache-source-saved"] if is_odd else [])


@pytest.mark.parametrize("kind", [str, Path])
def test_imported_cupy_has_settled(monkeypatch, tmp_path, kind):
    backend = SimpleNamespace(_cache_dir=kind(tmp_path / "settled"))
    imported_cupy(monkeypatch, _kernel_cache_backend=backend)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "later"))
    cache = kernel_cache()
    assert cache.path == tmp_path / "settled"
    assert cache.origin == "fixed when CuPy was imported"
    assert codes(cache) == ["cache-dir-changed"]
    assert all(str(tmp_path / name) in cache.notes[0].message for name in ("settled", "later"))
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "settled"))
    cache = kernel_cache()
    assert (cache.origin, cache.notes) == ("CUPY_CACHE_DIR", ())


def test_older_cupy_asks_each_time(monkeypatch, tmp_path):
    imported_cupy(monkeypatch, get_cache_dir=lambda: os.environ["CUPY_CACHE_DIR"])
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "now"))
    cache = kernel_cache()
    assert (cache.path, cache.origin) == (tmp_path / "now", "CUPY_CACHE_DIR")


def test_a_back_end_of_the_users_has_no_folder(monkeypatch):
    class RedisBackend:
        pass

    imported_cupy(monkeypatch, _kernel_cache_backend=RedisBackend())
    cache = kernel_cache()
    assert cache.path is None
    assert "RedisBackend" in cache.origin


def test_cupy_hidden(monkeypatch, no_cupy):
    monkeypatch.setitem(sys.modules, "cupy.cuda.compiler", None)
    assert kernel_cache().origin == "CuPy's default"


CUPY_WRITES = """
import os, sys, warnings
warnings.simplefilter("ignore")
try:
    from cupy.cuda.compiler import _kernel_cache_backend
except ImportError:
    sys.exit("no CuPy of version 14.1 or newer")
os.environ["CUPY_CACHE_DIR"] = "/elsewhere"
_kernel_cache_backend.save(sys.argv[1], sys.stdin.buffer.read(), "a source")
from gpubench.cache import kernel_cache
print(kernel_cache().path)
"""


def test_what_cupy_itself_writes(tmp_path):
    environment = {
        **os.environ,
        "CUPY_CACHE_DIR": str(tmp_path / "kernels"),
        "CUPY_CACHE_SAVE_CUDA_SOURCE": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", CUPY_WRITES, entry_name("key")],
        env=environment,
        input=PTX,
        capture_output=True,
    )
    if b"no CuPy" in done.stderr:
        pytest.skip(done.stderr.decode().strip())
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().strip() == str(tmp_path / "kernels")
    (entry,) = kernel_cache(tmp_path / "kernels").entries
    assert entry.valid
    assert entry.kernel_names == ("cupy_sum",)
    assert entry.source.path.read_text() == "a source"


@pytest.mark.parametrize("kind", [str, Path])
def test_given_path(tmp_path, kind):
    store(tmp_path, "key")
    cache = kernel_cache(kind(tmp_path))
    assert (cache.path, cache.origin) == (tmp_path, "the path given")
    assert len(cache.entries) == 1


def test_given_path_is_expanded_and_absolute(tmp_path):
    assert kernel_cache("~/kernels").path == tmp_path / "kernels"
    assert kernel_cache("kernels").path == tmp_path / "kernels"


@pytest.mark.parametrize("path", ["", "a\0b", b"a", 3, 1.5, ["x"], True])
def test_given_path_that_names_no_folder(path):
    with pytest.raises(gpubench.ArgumentError, match=r"^path must"):
        kernel_cache(path)


def test_plain_file(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        cache = kernel_cache(path)
        assert not cache.exists
        assert not cache.writable
        assert codes(cache) == ["cache-folder-unreadable", "cache-not-writable"]
    assert "(the path given; no such folder, not writable)" in str(cache)


def test_dangling_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    cache = kernel_cache(tmp_path / "link")
    assert (cache.exists, cache.writable) == (False, False)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write")
def test_writable_is_found_out_by_trying():
    cache = kernel_cache("/proc")
    assert cache.exists
    assert not cache.writable
    assert codes(cache) == ["cache-not-writable"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_and_locked_folders(tmp_path):
    store(tmp_path, "key")
    try:
        tmp_path.chmod(0o500)
        cache = kernel_cache(tmp_path)
        assert (cache.exists, cache.writable, len(cache.entries)) == (True, False, 1)
        assert not kernel_cache(tmp_path / "absent").writable
        tmp_path.chmod(0)
        cache = kernel_cache(tmp_path)
        assert (cache.exists, cache.writable, len(cache.entries)) == (True, False, 0)
        assert codes(cache) == ["cache-folder-unreadable", "cache-not-writable"]
        assert not kernel_cache(tmp_path / "below").exists
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.name != "posix", reason="a current folder can't be removed elsewhere")
def test_working_directory_is_gone(monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    cache = kernel_cache("kernels")
    assert (cache.exists, cache.writable) == (False, False)
