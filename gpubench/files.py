"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends, unless by an exception.

    Parameters
    ----------
    path : str or path-like
        What is there stays as it is until then, and lends its permissions. Links are followed;
        what is no regular file, a pipe for example, is written to at once.

    Yields
    ------
    binary file
        Open for writing, under another name in the same folder.

    Raises
    ------
    OSError
        If that folder can't be written to, with `path` as its file name.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe or a device, say, can't be replaced
        with target.open("wb") as file:
            yield file
        return
    temporary = target.with_name(f".gpubench-{secrets.token_hex(8)}")
    try:
        file = temporary.open("xb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with file:
            yield file
        with suppress(FileNotFoundError):
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
