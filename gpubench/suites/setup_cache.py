"""What a ``setup_cache`` returns: made once, kept in a file, read by whatever needs it."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path

from gpubench.errors import GpubenchError
from gpubench.files import replacing
from gpubench.suites.benchmark import Benchmark

_VALUE, _BEGUN = "setup_cache.pickle", "setup_cache.begun"


def folder_of(benchmark: Benchmark, scratch: str) -> Path:
    """Return the folder in which a benchmark runs: those with one ``setup_cache`` share it.

    Parameters
    ----------
    benchmark : Benchmark
        It.
    scratch : str
        In which folder to make it, if it isn't there.
    """
    key = benchmark.setup_cache_key.encode()
    folder = Path(scratch, hashlib.sha256(key).hexdigest()[:16])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached(setup_cache: Callable[[], object], folder: Path) -> object:
    """Return what a ``setup_cache`` made, now or in an earlier process.

    Raises
    ------
    GpubenchError
        If it came to no end in an earlier process, or what it made can't be pickled.
    Exception
        Whatever it raises.
    """
    value, begun = folder / _VALUE, folder / _BEGUN
    if value.exists():
        return pickle.loads(value.read_bytes())
    if begun.exists():
        raise GpubenchError(f"its setup_cache failed before: {begun.read_text()}")
    begun.write_text("it came to no end")
    try:
        made = setup_cache()
        data = pickle.dumps(made)
    except Exception as error:
        begun.write_text(f"{type(error).__name__}: {error}")
        raise
    with replacing(value) as file:
        file.write(data)
    return pickle.loads(data)  # so that the first process gets what the others get
