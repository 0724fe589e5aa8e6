"""Which cases of a suite are to run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gpubench.errors import ArgumentError
from gpubench.suites.case import Case
from gpubench.suites.files import HOW_TO_BEGIN

_N_LISTED = 5


def select(cases: Sequence[Case], only: str | None, params: Mapping[str, object]) -> list[Case]:
    """Return the cases that are to run.

    Parameters
    ----------
    cases : sequence of Case
        All.
    only : str or None
        A regular expression that the name matches somewhere, or the name with the parameters,
        as in ``"Sort.time_sort(n=1000)"``.
    params : mapping of str to value or list of values
        A case must have each of these parameters with such a value, or a value of such text.

    Raises
    ------
    ArgumentError
        If no case is there or left, or the expression is none.
    """
    try:
        pattern = re.compile(only or "")
    except re.error as error:
        raise ArgumentError(f"only={only!r} is not a regular expression: {error}") from error
    if not cases:
        raise ArgumentError(f"the suite has no benchmarks; {HOW_TO_BEGIN}")
    for name in params:
        known = sorted({each for case in cases for each in case.params})
        if name not in known:
            listed = ", ".join(map(repr, known)) or "none"
            raise ArgumentError(f"params: no benchmark has {name!r}; there are {listed}")
    selected = [
        case
        for case in cases
        if (pattern.search(case.key) or pattern.search(case.name))
        and all(_has(case, name, values) for name, values in params.items())
    ]
    if not selected:
        found = ", ".join(repr(case.key) for case in cases[:_N_LISTED])
        raise ArgumentError(
            f"no benchmark is selected by only={only!r} and params={dict(params)!r}; "
            f"of the {len(cases)} that are there, the first are: {found}"
        )
    return selected


def _has(case: Case, name: str, wanted: object) -> bool:
    if name not in case.params:
        return False
    value = case.params[name]
    several = isinstance(wanted, (list, tuple, set, frozenset, range))
    values: Iterable[object] = wanted if several else (wanted,)  # type: ignore[assignment]
    return any(each == value or each in (str(value), repr(value)) for each in values)
