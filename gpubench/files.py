"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends, unless by an exception.

    Parameters
    ----------
    path : str or path-like
        What is there stays as it is until then.

    Yields
    ------
    binary file
        Open for writing, under another name in the same folder.

    Raises
    ------
    OSError
        If that folder can't be written to, with `path` as its file name.
    """
    temporary = Path(path).with_name(f".gpubench-{secrets.token_hex(8)}")
    try:
        file = temporary.open("xb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with file:
            yield file
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
