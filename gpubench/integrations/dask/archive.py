"""A folder of benchmarks as bytes, to be sent to machines that share no files."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from gpubench.errors import ArgumentError

MAX_BYTES = 100 * 2**20
"""More is not sent: it is not a suite, but data, or somebody's whole home."""


def packed(root: str) -> bytes:
    """Return what is in a folder, without hidden files and what Python keeps of compiled ones.

    Parameters
    ----------
    root : str
        The folder.

    Raises
    ------
    ArgumentError
        If there is too much.
    """
    buffer, n_bytes = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for folder, subfolders, names in os.walk(root):
            subfolders[:] = [name for name in subfolders if _belongs(name)]
            for path in (Path(folder, name) for name in names if _belongs(name)):
                if not path.is_file():  # a socket, for example, or a link to nowhere
                    continue
                n_bytes += path.stat().st_size
                if n_bytes > MAX_BYTES:
                    raise ArgumentError(
                        f"path: the folder {root!r} holds more than {MAX_BYTES / 2**20:g} MiB, "
                        "too much to be sent to each worker; give the benchmarks a folder of "
                        "their own, and install or mount what is large"
                    )
                archive.write(path, path.relative_to(root))
    return buffer.getvalue()


def unpack(archive: bytes, root: Path) -> None:
    """Write what `packed` has packed to a folder."""
    root.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        file.extractall(root)


def _belongs(name: str) -> bool:
    return not name.startswith(".") and name != "__pycache__"
