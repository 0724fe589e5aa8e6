"""Elements of HTML that are safe by the way they are made: what isn't one is shown as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape

from gpubench.render.content import visible


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


_VOID = ("input",)
"""Elements that have no end tag."""

Child = str | int | None
"""Something within an element: HTML as it is, text escaped, None left out."""


def element(name: str, *children: Child | Iterable[Child], **attributes: object) -> Html:
    """Return an element.

    Parameters
    ----------
    name : str
        Its tag.
    *children : Html, str, int, None or iterable of them
        What is in it.
    **attributes : object
        By name, with ``_`` for ``-``, and ``_`` at the end where Python has the name for itself.
        True stands for an attribute without a value; None and False are left out.

    Returns
    -------
    Html
        Whatever the texts hold, they are shown, and never become elements or attributes.
    """
    pairs = (
        (key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    written = "".join(
        f" {key}" if value is True else f' {key}="{escape(shown(str(value)))}"'
        for key, value in pairs
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Child | Iterable[Child]) -> Html:
    """Return several children of an element, one after the other."""
    return Html("".join(map(_child, children)))


def shown(text: str) -> str:
    """Return a text whose characters can all be seen, in as many lines as it has."""
    return "\n".join(map(visible, text.splitlines()))


def embedded(value: object) -> Html:
    """Return a value as JSON in an element that keeps it for the page's script.

    Nothing in it ends the element, and no character is outside ASCII.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Html(f'<script type="application/json">{text.replace("<", chr(92) + "u003c")}</script>')


def _child(child: Child | Iterable[Child]) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return escape(shown(child))
    if isinstance(child, int):
        return f"{child:,}"
    return "".join(map(_child, child))
