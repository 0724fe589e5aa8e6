"""Rows as CSV that a spreadsheet shows as text and never takes for formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""With what a text begins that a spreadsheet would run; see OWASP's "CSV Injection"."""


def csv_text(rows: Iterable[Mapping[str, object]], heads: Sequence[str]) -> str:
    """Return rows as CSV.

    Parameters
    ----------
    rows : iterable of mapping of str to object
        Cells by their column. Numbers stand as they are, None as an empty cell; a text that a
        spreadsheet would run is preceded by an apostrophe, as spreadsheets themselves mark text.
    heads : sequence of str
        The columns, in their order.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(harmless, heads))
    writer.writerows([harmless(row.get(head)) for head in heads] for row in rows)
    return file.getvalue()


def harmless(value: object) -> object:
    """Return a cell's value, a text so that no spreadsheet runs it."""
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA):
        return f"'{value}"
    return value
