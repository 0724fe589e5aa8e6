"""The library that draws the charts: Vega-Lite, as the package vl-convert-python carries it."""

from __future__ import annotations

import functools

from gpubench.errors import MissingExtraError


@functools.cache
def chart_library() -> str:
    """Return Vega-Lite and all that it needs as one script, which defines ``vegaEmbed``.

    Raises
    ------
    MissingExtraError
        If the package isn't installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("a report", "vl-convert-python", "report") from error
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script
