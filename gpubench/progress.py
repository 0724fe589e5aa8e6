"""A progress bar for runs that take long enough to want one."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from gpubench.errors import ArgumentError
from gpubench.render.content import visible

_LABEL_WIDTH = 30

_DELAY = 2.0
"""Seconds before a bar appears that nobody asked for."""


@contextmanager
def progress_bar(
    progress: bool | None, total: int | None, name: str, unit: str = "sample"
) -> Iterator[Callable[[int], object]]:
    """Show a bar on standard error while the block runs.

    Parameters
    ----------
    progress : bool or None
        True: at once; None: on a terminal only and after two seconds; False: never.
    total : int or None
        How many steps there are, if that is known.
    name : str
        What the bar says in front.
    unit : str
        What a step is.

    Yields
    ------
    callable
        Advances the bar by a number of steps.
    """
    if progress is not None and not isinstance(progress, (bool, np.bool_)):
        raise ArgumentError(f"progress must be True, False or None, got {progress!r}")
    output = sys.stderr
    is_open = output is not None and not output.closed
    if not is_open or not (output.isatty() if progress is None else progress):
        yield lambda _: None
        return
    from tqdm.auto import tqdm

    delay = _DELAY if progress is None else 0.0
    label = textwrap.shorten(visible(name), _LABEL_WIDTH, placeholder="…")
    with tqdm(total=total, desc=label, unit=unit, leave=False, delay=delay) as bar:
        yield bar.update
