"""What a profiler shows with a range or a mark: text, color, domain, category, payload.

All of it is checked when the label is made: the back ends look at it only when a profiler is
attached, and a program must not fail under the profiler alone.
"""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex

from gpubench.arguments import real_number, whole_number
from gpubench.errors import ArgumentError

NAMED_COLORS = {
    "green": 0xFF008000,
    "blue": 0xFF0000FF,
    "yellow": 0xFFFFFF00,
    "purple": 0xFF800080,
    "rapids": 0xFF7400FF,
    "cyan": 0xFF00FFFF,
    "red": 0xFFFF0000,
    "white": 0xFFFFFFFF,
    "darkgreen": 0xFF006400,
    "orange": 0xFFFFA500,
}
"""The color names of the nvtx package, as 0xAARRGGBB."""

PALETTE = (
    *(0xFF00FF00, 0xFF007FFF, 0xFF7F00FF, 0xFFFF0000, 0xFF7FFF00),
    *(0xFF00FF7F, 0xFF0000FF, 0xFFFF007F, 0xFFFF7F00, 0xFF7F7F7F),
)
"""The colors that ``cupy.cuda.nvtx`` gives to color ids, which count round and round."""


class Label(NamedTuple):
    """The attributes of one range or mark, as `time_range` explains them."""

    message: str
    color: int | None  # 0xAARRGGBB
    domain: str
    category: str | int | None
    payload: int | float | None


def checked_label(
    message: str,
    color: int | None,
    domain: str,
    category: str | SupportsIndex | None,
    payload: float | SupportsIndex | None,
) -> Label:
    """Return a label, or raise `ArgumentError` if NVTX can't carry it; for colors see `argb`."""
    if isinstance(category, str):
        category = _text("category", category)
    elif category is not None:
        category = _integer("category (a name or a number)", category)
    if payload is not None:
        if isinstance(payload, SupportsIndex):
            payload = _integer("payload", payload, at_least=-(2**63), below=2**63)
        else:
            payload = real_number("payload", payload)
    return Label(_text("message", message), color, _text("domain", domain), category, payload)


def argb(
    color_id: SupportsIndex | None = None,
    argb_color: SupportsIndex | None = None,
    color: str | SupportsIndex | None = None,
) -> int | None:
    """Return as 0xAARRGGBB what one of the ways to give a color stands for.

    None if none is given; `ArgumentError` if more than one is, or one that is no color.
    """
    if (color_id is not None) + (argb_color is not None) + (color is not None) > 1:
        raise ArgumentError(
            "color_id, argb_color and color are three ways to give one color: give one of them, "
            f"not {color_id=}, {argb_color=}, {color=}"
        )
    if color_id is not None:
        number = whole_number("color_id", color_id, at_least=-1)
        return None if number < 0 else PALETTE[number % len(PALETTE)]
    if argb_color is not None:
        return _integer("argb_color (0xAARRGGBB)", argb_color)
    if not isinstance(color, str):
        return None if color is None else _integer("color (a name or 0xAARRGGBB)", color)
    if color not in NAMED_COLORS:
        names = ", ".join(NAMED_COLORS)
        raise ArgumentError(f"color must be 0xAARRGGBB or one of {names}; got {color!r}")
    return NAMED_COLORS[color]


def _text(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a str, got {value!r}")
    # A file's name may hold bytes that aren't UTF-8, as surrogates, which can't be encoded.
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def _integer(name: str, value: SupportsIndex, *, at_least: int = 0, below: int = 2**32) -> int:
    number = whole_number(name, value, at_least=at_least)
    if number >= below:
        raise ArgumentError(f"{name} must be below {below:#x}, got {number:#x}")
    return number
