"""An empty picture to draw on, and the colours to draw with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpubench.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Told apart by the colour-blind: Okabe and Ito, "Color Universal Design", 2008, but its yellow,
which is too pale for lines."""

GREY, PALE, DARK = "#6e6e6e", "#dddddd", "#333333"


def empty_figure(width: float, height: float) -> Figure:
    """Return a figure of that many inches that knows nothing of pyplot's windows.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plot()", "matplotlib", "plot") from error
    picture = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(picture)
    return picture
