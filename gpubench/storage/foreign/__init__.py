"""Files of results that other tools wrote, as records."""

from __future__ import annotations

from gpubench.errors import ArgumentError
from gpubench.storage.document import Document
from gpubench.storage.foreign import asv, nvbench, pytest_benchmark
from gpubench.storage.foreign.common import DAMAGE
from gpubench.storage.record import SavedResults

_TOOLS = {
    pytest_benchmark.TOOL: (pytest_benchmark.wrote, pytest_benchmark.read),
    nvbench.TOOL: (nvbench.wrote, nvbench.read),
    asv.TOOL: (asv.wrote, asv.read),
}
"""How each tool's files are known, and read."""


def read_foreign(document: Document) -> SavedResults | None:
    """Return the results of another tool's file, None if no known tool wrote it.

    Raises
    ------
    ArgumentError
        If one did, and the file isn't as that tool makes it.
    """
    for tool, (wrote, read) in _TOOLS.items():
        if wrote(document.value):
            try:
                return read(document)
            except DAMAGE as error:
                raise ArgumentError(f"it isn't as {tool} writes it: {error}") from error
    return None
