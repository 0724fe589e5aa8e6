"""The ways to tell a profiler of a range: the nvtx package, CuPy's NVTX, or none at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from gpubench.ranges.label import Label


@dataclass(frozen=True)
class Annotation:
    """What a back end can do with one label.

    `push` opens a range and `pop` closes the innermost one of the thread. `start` opens a process
    range, which `end` closes by its id, in any order and from any thread. `mark` shows an instant.
    """

    push: Callable[[], object]
    pop: Callable[[], object]
    start: Callable[[], object]
    end: Callable[[Any], object]
    mark: Callable[[], object]


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


SILENT = Annotation(_nothing, _nothing, _nothing, _nothing, _nothing)
"""The annotation that nobody would see."""


@dataclass(frozen=True)
class Backend:
    """What carries ranges and marks to a profiler.

    Attributes
    ----------
    name : str
        ``"nvtx"``, ``"cupy"``, or ``"none"`` if ranges do nothing.
    reason : str
        Why it is this one.
    annotate : callable
        Makes the `Annotation` of a `Label`; `SILENT` if no profiler listens.
    """

    name: str
    reason: str
    annotate: Callable[[Label], Annotation] = field(default=lambda _: SILENT, repr=False)


@cache
def backend() -> Backend:
    """Return what carries ranges to a profiler, chosen at the first call.

    The nvtx package, with its domains or, in versions before 0.2.12, by its older functions,
    which carry no payload and cost microseconds; else CuPy's NVTX, which has one domain, no
    categories and no payloads; else nothing.

    Returns
    -------
    Backend
        Its `name` and `reason` say which and why.
    """
    try:
        return _find_nvtx()
    except Exception as error:  # noqa: BLE001  # a range must not fail what it annotates
        no_nvtx = f"the nvtx package can't be used ({error})"
    try:
        return _find_cupy(reason=no_nvtx)
    except Exception as error:  # noqa: BLE001
        return Backend("none", f"{no_nvtx}, nor can CuPy's NVTX ({error})")


def _find_nvtx() -> Backend:
    import nvtx

    if not getattr(nvtx, "enabled", lambda: True)():
        return Backend("none", "the variable NVTX_DISABLE is set")
    # Version 0.2.11 has domains that can't push; what a version can do is asked, not guessed.
    if hasattr(nvtx, "get_domain") and hasattr(nvtx.get_domain("gpubench"), "push_range"):
        return Backend("nvtx", "the nvtx package is installed", partial(_by_domain, nvtx))
    if not hasattr(nvtx, "push_range"):
        raise ImportError(f"{nvtx!r} has neither get_domain nor push_range")
    reason = "the nvtx package is installed, an older one whose domains can't push ranges"
    return Backend("nvtx", reason, partial(_by_function, nvtx))


def _by_domain(nvtx: Any, label: Label) -> Annotation:
    domain = nvtx.get_domain(label.domain)
    attributes = domain.get_event_attributes(
        label.message, label.color, label.category, label.payload
    )
    if attributes is None:  # the domain's way to say that no profiler is attached
        return SILENT
    return Annotation(
        push=partial(domain.push_range, attributes),
        pop=domain.pop_range,
        start=partial(domain.start_range, attributes),
        end=domain.end_range,
        mark=partial(domain.mark, attributes),
    )


def _by_function(nvtx: Any, label: Label) -> Annotation:
    shown = label._asdict()
    del shown["payload"]
    return Annotation(
        push=partial(nvtx.push_range, **shown),
        pop=partial(nvtx.pop_range, domain=label.domain),
        start=partial(getattr(nvtx, "start_range", _nothing), **shown),
        end=getattr(nvtx, "end_range", _nothing),
        mark=partial(getattr(nvtx, "mark", _nothing), **shown),
    )


def _find_cupy(reason: str) -> Backend:
    import cupy

    nvtx = cupy.cuda.nvtx
    if not nvtx.available:
        raise ImportError("CuPy was built without it")
    return Backend("cupy", reason, partial(_by_cupy, nvtx))


def _by_cupy(nvtx: Any, label: Label) -> Annotation:
    shown: tuple[object, ...] = (label.message,)
    push, mark = nvtx.RangePush, nvtx.Mark
    if label.color is not None:
        shown = (label.message, label.color)
        push, mark = nvtx.RangePushC, nvtx.MarkC
    return Annotation(
        push=partial(push, *shown),
        pop=nvtx.RangePop,
        start=partial(nvtx.RangeStart, label.message, label.color),
        end=nvtx.RangeEnd,
        mark=partial(mark, *shown),
    )
