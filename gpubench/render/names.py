"""Names short enough for a column, long C++ names above all, and still told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from gpubench.render.content import visible

_HEAD = 18
"""Characters that are kept of a name's beginning if another one begins like it."""

_TAIL = 8
"""Characters that are kept of a name's end if no other one begins like it."""

_WORD = 12
"""Characters that are shown of a word before the place where it differs from another."""


def short_names(names: Iterable[str], width: int = 48) -> dict[str, str]:
    """Return each name in one line, short but no two of them alike.

    A C++ name that is too long loses its parameters, then its namespaces, then its middle.
    Several that begin alike show the parts in which they differ, and numbers in the end.

    Parameters
    ----------
    names : iterable of str
        Any text; repeats count once.
    width : int
        About how many characters a name may take, 36 or more.

    Returns
    -------
    dict of str to str
        For each name, what to show.
    """
    texts = {name: visible(name) or "(no name)" for name in names}
    shown = _compacted(dict.fromkeys(texts.values()), width)
    long = {text: compact for text, compact in shown.items() if len(compact) > width}
    for head, group in _grouped(long, 0, _HEAD).items():
        shown |= _told_apart(group, head, _HEAD, width)
    return {name: shown[text] for name, text in texts.items()}


def _compacted(texts: Iterable[str], width: int) -> dict[str, str]:
    """Return each text compact, if that is like no other text, compact or not."""
    compact = {text: _compact(text, width) for text in texts}
    repeats = Counter([*compact, *(short for text, short in compact.items() if short != text)])
    return {text: short if repeats[short] == 1 else text for text, short in compact.items()}


def _compact(text: str, width: int) -> str:
    for shorten in (_without_signature, _without_namespaces):
        if len(text) > width:
            text = shorten(text)
    return text


def _without_signature(text: str) -> str:
    """Return the name of a C++ function without what it returns and takes."""
    depth = 0
    for place in range(len(text) - 1, 0, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if depth == 0:
            # Where the text ends with parentheses, this is the one that opened them.
            return text[: place if text[place] == "(" else None].removeprefix("void ")
    return text


def _without_namespaces(text: str) -> str:
    return re.sub(r"(\b\w+|\(anonymous namespace\))::", "", text)


def _told_apart(texts: Mapping[str, str], beginning: str, place: int, width: int) -> dict[str, str]:
    """Return for each key how to show its text.

    All texts are the same up to `place`, and `beginning` shows them up to there.
    """
    if len(texts) == 1:
        return {key: f"{text[: width - _TAIL - 1]}…{text[-_TAIL:]}" for key, text in texts.items()}
    start = max(place, _start_of_difference(min(texts.values()), max(texts.values())))
    beginning += "…" if start > place else ""
    room = width - len(beginning)
    if room <= _WORD + 1:
        return {key: f"{beginning.rstrip('…')}… #{n}" for n, key in enumerate(texts, start=1)}
    shown: dict[str, str] = {}
    for part, group in _grouped(texts, start, _WORD + 1).items():
        if len(group) == 1:
            shown |= {key: beginning + _cut(text[start:], room) for key, text in group.items()}
        else:
            shown |= _told_apart(group, beginning + part, start + len(part), width)
    return shown


def _grouped(texts: Mapping[str, str], start: int, size: int) -> dict[str, dict[str, str]]:
    """Return the items of `texts` by the `size` characters from `start` on."""
    groups: dict[str, dict[str, str]] = {}
    for key, text in texts.items():
        groups.setdefault(text[start : start + size], {})[key] = text
    return groups


def _start_of_difference(one: str, other: str) -> int:
    """Return where the first word begins in which two texts differ, or shortly before that."""
    pairs = enumerate(zip(one, other, strict=False))
    first = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
    word = first
    while word > max(first - _WORD, 0) and (one[word - 1].isalnum() or one[word - 1] == "_"):
        word -= 1
    return word


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
