"""Records as plain values, for strict JSON, and back again.

A file is ``{"format": "gpubench", "version": 1, "environment": {...}, "records": [...]}``. Keys
that a reader doesn't know are left out, and what isn't there is unknown: so further keys are no
reason for another version. Before there were versions, files held what `BenchmarkResult.to_dict`
makes, one or a list of them, which may carry ``status`` and ``reason``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from gpubench.arguments import shown, text, whole_number
from gpubench.errors import ArgumentError
from gpubench.plain import each_plain, from_plain, number_from_plain, number_to_plain
from gpubench.reading import mapping
from gpubench.result import BenchmarkResult
from gpubench.storage.document import short_message
from gpubench.storage.record import FORMAT, VERSION, Record, Status


def file_to_dict(records: Sequence[Record], environment: Mapping[str, object]) -> dict[str, Any]:
    """Return what a file holds."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "environment": dict(environment),
        "records": [record_to_dict(record) for record in records],
    }


def record_to_dict(record: Record) -> dict[str, Any]:
    """Return a record as plain values, under the same keys whatever it holds.

    Returns
    -------
    dict
        What strict JSON can hold: parameters as `gpubench.plain.plain` makes them, ``result`` as
        `BenchmarkResult.to_dict` or None, an infinite ``value`` as ``"inf"`` or ``"-inf"``.
    """
    return {
        "name": record.name,
        "params": each_plain(record.params),
        "status": record.status,
        "reason": record.reason,
        "blocks": list(record.blocks),
        "value": None if record.value is None else number_to_plain(record.value),
        "unit": record.unit,
        "summary": dict(record.summary),
        "result": None if record.result is None else record.result.to_dict(),
    }


def record_from_dict(values: Any) -> Record:
    """Return the record of which `record_to_dict` made these values, or an older release.

    Parameters
    ----------
    values : mapping
        As `record_to_dict` makes them, or `BenchmarkResult.to_dict`; also after a trip through
        JSON. Keys that aren't known are ignored; of those that are, only ``name`` has to be there.

    Returns
    -------
    Record
        One that is ``"unavailable"``, with the reason, where a value but the name is of the wrong
        kind; a record with nothing in it that should have something is ``"unavailable"`` too.

    Raises
    ------
    ArgumentError
        If the values are no mapping, or the name is missing or no string.
    """
    values = mapping("a record", values)
    known = {key: value for key, value in values.items() if value is not None}
    if "name" not in known:
        raise ArgumentError("name is missing, and a record can't do without")
    name = text("name", known["name"])
    try:
        return _record(name, known)
    except ArgumentError as error:
        return Record(name=name, status="unavailable", reason=f"unreadable: {short_message(error)}")


def _record(name: str, known: Mapping[str, Any]) -> Record:
    params = mapping("params", known.get("params", {}))
    status, reason = _status(known.get("status", "ok"), text("reason", known.get("reason", "")))
    result = _result(known)
    value = number_from_plain("value", known.get("value"))
    summary = mapping("summary", known.get("summary", {}))
    if status == "ok" and result is None and math.isnan(value) and not summary:
        status, reason = "unavailable", reason or "no times"
    return Record(
        name=name,
        params={key: from_plain(each) for key, each in params.items()},
        status=status,
        reason=reason,
        result=result,
        blocks=_blocks(known.get("blocks", [])),
        value=value,
        unit=text("unit", known.get("unit", "")),
        summary=summary,
    )


def _result(known: Mapping[str, Any]) -> BenchmarkResult | None:
    values = known.get("result", known if "cpu_times_s" in known else None)
    if values is None or mapping("result", values).get("cpu_times_s") == []:
        return None
    return BenchmarkResult.from_dict(values)


def _status(value: Any, reason: str) -> tuple[Status, str]:
    """Return the status; one that isn't known counts as unavailable, and is the reason."""
    status = text("status", value)
    for known in get_args(Status):
        if status == known:
            return known, reason
    return "unavailable", f"{status}: {reason}" if reason else status


def _blocks(values: Any) -> tuple[int, ...]:
    if not isinstance(values, (list, tuple)):
        raise ArgumentError(f"blocks must be a list, got {shown(values)}")
    return tuple(whole_number("blocks", value, at_least=0) for value in values)
