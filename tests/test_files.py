"""Files that are there whole or not at all."""

import os
import stat
import threading

import pytest

from gpubench.files import replacing

POSIX = pytest.mark.skipif(os.name != "posix", reason="links and pipes are made in another way")


def write(path, content):
    with replacing(path) as file:
        file.write(content)


def test_a_file_is_replaced_when_it_is_whole(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def fail_half_way(path):
    with replacing(path) as file:
        file.write(b"half")
        raise KeyError("stop")


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(KeyError):
        fail_half_way(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_that_is_not_there(tmp_path):
    path = tmp_path / "nowhere" / "a"
    with pytest.raises(FileNotFoundError) as caught:
        write(path, b"")
    assert caught.value.filename == str(path)


@POSIX
def test_permissions_stay(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@POSIX
def test_links_are_followed(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@POSIX
def test_a_pipe_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=write, args=(path, b"through"))
    writer.start()
    assert path.read_bytes() == b"through"
    writer.join()
    assert stat.S_ISFIFO(path.stat().st_mode)
