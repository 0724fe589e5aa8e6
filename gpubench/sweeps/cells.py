"""Any value as something that a table, a CSV file and JSON can hold."""

from __future__ import annotations

import math

import numpy as np

from gpubench.arguments import callable_name
from gpubench.render.content import visible

Cell = str | int | float | bool | None


def cell(value: object) -> Cell:
    """Return numbers, strings, booleans and None as they are, anything else as a short text.

    Parameters
    ----------
    value : object
        For example a parameter's value in one configuration.

    Returns
    -------
    str, int, float, bool or None
        NumPy's scalars as Python's. Classes and functions by their names, so that ``np.float32``
        is ``"float32"``; arrays by dtype and shape; NaN, infinities and the rest as `str` has
        them, in one line.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if callable(value):  # np.float32, for one, has a dtype and a shape that are no array's
        return callable_name(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {tuple(value.shape)}"
    return visible(str(value))
