"""Where the runs of a report were taken, and in what these places differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpubench.render.report.elements import Html, element, joined
from gpubench.render.report.runs import Run

_UNKNOWN = "—"


def environment_section(runs: Sequence[Run]) -> Html:
    """Return a table with a column for each run; what they differ in comes first, and is marked."""
    values = [dict(_flat(run.environment)) for run in runs]
    names = list(dict.fromkeys(name for each in values for name in each))
    different = [name for name in names if len({each.get(name) for each in values}) > 1]
    same = [name for name in names if name not in different]
    if not names:
        return element("p", "The files say nothing of where they were taken.")
    if len(runs) == 1:
        return _table(runs, values, same)
    return joined(
        element("h3", f"Different: {len(different)}"),
        _table(runs, values, different, class_="differs") if different else None,
        element(
            "details",
            element("summary", f"The same in all files: {len(same)}"),
            _table(runs, values, same),
        ),
    )


def _table(
    runs: Sequence[Run],
    values: Sequence[Mapping[str, str]],
    names: Sequence[str],
    class_: str | None = None,
) -> Html:
    heads = [element("th", run.label, scope="col") for run in runs]
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            (element("td", each.get(name, _UNKNOWN)) for each in values),
        )
        for name in names
    ]
    table = element(
        "table",
        element("thead", element("tr", element("td"), heads)),
        element("tbody", rows),
        class_=class_,
    )
    return element("div", table, class_="scroll", tabindex=0)


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of all that is in a JSON value."""
    if isinstance(value, Mapping) and (value or not name):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)) and any(
        isinstance(item, (Mapping, list, tuple)) for item in value
    ):
        for number, item in enumerate(value):
            yield from _flat(item, f"{name}[{number}]")
    else:
        yield name, _text(value)


def _text(value: object) -> str:
    if value is None or value in ("", [], {}):
        return _UNKNOWN
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)
