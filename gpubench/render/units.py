"""Times, sizes, values and ratios as text; times are rounded before their unit is chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class TimeUnit:
    """A unit in which times are written.

    Attributes
    ----------
    symbol : str
        For example ``"us"``.
    per_second : float
        How many of it make a second.
    """

    symbol: str
    per_second: float

    def number(self, seconds: float) -> str:
        """Return `seconds` in this unit with three significant digits, without the symbol."""
        value = _round(_round(seconds) * self.per_second)
        exponent = int(f"{value:e}".partition("e")[2])
        return f"{value:.{max(0, 2 - exponent)}f}" if value else "0"

    def text(self, seconds: float) -> str:
        """Return `seconds` in this unit with three significant digits and the symbol."""
        return f"{self.number(seconds)} {self.symbol}"


_UNITS = (TimeUnit("s", 1), TimeUnit("ms", 1e3), TimeUnit("us", 1e6), TimeUnit("ns", 1e9))


def common_unit(*times: float) -> TimeUnit:
    """Return the unit in which to write several times that are to be compared.

    Parameters
    ----------
    *times : float
        Seconds.

    Returns
    -------
    TimeUnit
        The one of ns, us, ms and s that gives the smallest time other than zero one to three
        digits before the point, so that none shrinks to leading zeros.
    """
    smallest = min((abs(_round(time)) for time in times if time), default=0.0)
    return next((unit for unit in _UNITS if smallest * unit.per_second >= 1), _UNITS[-1])


def format_time(seconds: float) -> str:
    """Return a time in the unit that suits it best, for example ``"6.05 us"``.

    Parameters
    ----------
    seconds : float
        The time; negative ones are differences.
    """
    return common_unit(seconds).text(seconds)


def format_bytes(size_bytes: int) -> str:
    """Return a size in the unit that suits it, for example ``"56.7 MiB"``."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} B"


def format_value(value: float, unit: str) -> str:
    """Return a value with its unit, ``"10 items"``; sizes and times in one that suits them."""
    if unit in ("bytes", "B") and value >= 0 and float(value).is_integer():
        return format_bytes(int(value))
    if unit in ("s", "seconds") and math.isfinite(value):
        return format_time(value)
    return f"{value:.6g} {unit}".rstrip()


def format_ratio(ratio: float, interval: tuple[float, float] | None = None) -> str:
    """Return a ratio and, if known, its interval: ``"0.512 [0.508, 0.517]"``.

    It has three decimals; a small one has three significant digits.
    """
    form = ".3f" if ratio >= 0.1 else ".3g"
    if interval is None:
        return f"{ratio:{form}}"
    low, high = interval
    return f"{ratio:{form}} [{low:{form}}, {high:{form}}]"


def _round(value: float) -> float:
    return float(f"{value:.2e}")
