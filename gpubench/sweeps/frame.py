"""The rows of a sweep as a table of pandas, or as a file of comma-separated values.

`gpubench.sweeps.long_table` says what the columns are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING

from gpubench.errors import MissingExtraError
from gpubench.files import replacing
from gpubench.sweeps.long_table import (
    OF_SAMPLE,
    Record,
    columns_of,
    parameter_columns,
    records,
    sample_records,
)

if TYPE_CHECKING:
    import pandas as pd

    from gpubench.sweeps.outcome import SweepResult


def to_dataframe(result: SweepResult) -> pd.DataFrame:
    """Return `records` as a table of pandas.

    Raises
    ------
    MissingExtraError
        If pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("to_dataframe()", "pandas", "dataframe") from error
    table = records(result)
    return pd.DataFrame(
        {
            name: pd.Series([row[name] for row in table], dtype=dtype)
            for name, dtype in columns_of(result).items()
        }
    )


def to_csv(result: SweepResult, path: str | PathLike[str], samples: bool) -> None:
    """Write `records`, or `sample_records`, to a file of comma-separated values in UTF-8."""
    table: Iterable[Record] = sample_records(result) if samples else records(result)
    columns = (
        ["region", *parameter_columns(result).values(), *OF_SAMPLE]
        if samples
        else columns_of(result)
    )
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        writer = csv.DictWriter(text, columns)
        writer.writeheader()
        writer.writerows(table)
        text.detach()
