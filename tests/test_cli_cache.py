"""``gpubench cache``."""

import json
import sys

import pytest
from cache_files import PTX, entry_name, store

from gpubench.cli import main


@pytest.fixture
def run(capsys):
    """Run ``cache`` with the arguments; return its exit status and what it printed."""

    def run(*words):
        return main(["cache", *map(str, words)]), capsys.readouterr().out

    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy.cuda.compiler", raising=False)  # keeps its own folder
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    store(tmp_path, "old", age_time=3 * 86400)
    store(tmp_path, "new", PTX * 2)
    return tmp_path


def test_list(run, folder, monkeypatch):
    status, text = run()
    assert status == 0
    assert text.startswith(f"CuPy's kernel cache: {folder} (")
    assert [line.split()[0] for line in text.splitlines()[-2:]] == [
        entry_name("new"),
        entry_name("old"),
    ]
    monkeypatch.setenv("CUPY_CACHE_DIR", "/elsewhere")
    for words in (("list", "--path", folder), ("--path", folder, "list"), ("--path", folder)):
        status, text = run(*words)
        assert f"{folder} (the path given" in text
        assert status == 0


def test_list_of_an_absent_folder(run, tmp_path):
    assert run("--path", tmp_path / "absent") == (
        0,
        f"CuPy's kernel cache: {tmp_path / 'absent'} (the path given; no such folder, writable)\n"
        "    0 entries\n",
    )


def test_list_as_json(run, folder):
    for words in (("--json",), ("--json", "list"), ("list", "--json")):
        status, text = run(*words)
        listed = json.loads(text)
        assert status == 0
        assert listed["path"] == str(folder)
        assert [entry["name"] for entry in listed["entries"]] == [
            entry_name("old"),
            entry_name("new"),
        ]
        assert listed["entries"][0]["size_bytes"] == 40 + len(PTX)


def test_verify(run, folder):
    assert run("verify") == (0, "2 valid, 0 corrupt, 0 unreadable, 0 vanished\n")
    (folder / entry_name("old")).write_bytes(b"damaged")
    status, text = run("verify", "--json")
    assert status == 1
    (corrupt,) = json.loads(text)["corrupt"]
    assert corrupt["name"] == entry_name("old")


def test_prune_says_what_it_would_do_and_does_it_for_yes(run, folder):
    size = 40 + len(PTX)
    hint = "Nothing was removed: that takes --yes.\n"
    for words in (("--older-than", "1d"), ("--max-bytes", 2 * size)):
        would = f"Would remove {size} B (entries: 1, leftovers: 0)\n{hint}"
        assert run("prune", *words) == (0, would)
    assert len(list(folder.iterdir())) == 2
    done = f"Removed {size} B (entries: 1, leftovers: 0)\n"
    assert run("prune", "--older-than", "1d", "--yes") == (0, done)
    assert [path.name for path in folder.iterdir()] == [entry_name("new")]


def test_prune_without_a_limit_is_an_error(folder, capsys):
    assert main(["cache", "prune", "--yes"]) == 1
    assert capsys.readouterr().err.startswith("gpubench: prune needs older_than")
    assert len(list(folder.iterdir())) == 2


def test_clear(run, folder):
    status, text = run("clear", "--json")
    assert status == 0
    assert json.loads(text)["dry_run"] is True
    assert len(list(folder.iterdir())) == 2
    status, text = run("clear", "--yes")
    assert status == 0
    assert list(folder.iterdir()) == []


def test_a_file_that_stays_is_the_exit_status(run, folder, monkeypatch):
    def refuse(path, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(folder), "unlink", refuse)
    status, text = run("clear", "--yes")
    assert status == 1
    assert text.count("Permission denied") == 2
