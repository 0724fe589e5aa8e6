"""cupti-python: how it is come by, and why it may not serve."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpubench.errors import UnsupportedError


def load_cupti() -> Any:
    """Import cupti-python, or raise `UnsupportedError` that says why it can't be."""
    try:
        from cupti import cupti
    except Exception as error:  # a broken installation fails in more ways than ImportError
        if isinstance(error, ModuleNotFoundError) and error.name == "cupti":
            raise UnsupportedError(
                'cupti-python is not installed; pip install "gpubench[activity]"'
            ) from None
        raise UnsupportedError(f"cupti-python can't be imported: {error}") from error
    return cupti


def refuse_beside_pytorchs_profiler() -> None:
    """Raise while that one records: it needn't have subscribed to CUPTI.

    PyTorch 2.11 never came back from its profiler's block once the callbacks were replaced in it.
    """
    profiler = sys.modules.get("torch.autograd.profiler")
    if getattr(profiler, "_is_profiler_enabled", False):
        raise UnsupportedError("PyTorch's profiler uses CUPTI now; end it first")


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what cupti-python raises into an `UnsupportedError`."""
    try:
        yield
    except Exception as error:
        hint = ""
        if "SUBSCRIBER" in str(error):
            hint = (
                "; end the profiler that uses CUPTI now (PyTorch's keeps it for as long as the "
                "process lives)"
            )
        raise UnsupportedError(f"CUPTI refuses to record: {error}{hint}") from error
