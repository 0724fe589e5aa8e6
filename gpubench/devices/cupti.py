"""The kernels that ran while a function worked, by CUPTI's activity records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from gpubench.devices.base import Device, Work
from gpubench.errors import UnsupportedError

_BUFFER_BYTES = 8 << 20
"""Size of the buffers that CUPTI asks for, one after the other; about 40,000 records each."""


def record_kernels(work: Work, device: Device) -> tuple[str, ...]:
    """Run `work` and name the kernels that ran on `device` meanwhile.

    Returns
    -------
    tuple of str
        As the compiler mangled them, in the order of their launch.

    Raises
    ------
    UnsupportedError
        If CUPTI can't be used, or not now; the message says why.
    """
    refuse_beside_pytorchs_profiler()
    cupti = load_cupti()
    kind = cupti.ActivityKind.CONCURRENT_KERNEL
    records: list[tuple[int, int, str]] = []
    problems: list[Exception] = []

    def keep(activities: Iterable[Any]) -> None:
        try:
            # The records' memory is CUPTI's again once this returns, and their classes are
            # renamed at each release: so their fields are copied, and only their kind is asked.
            records.extend(
                (activity.correlation_id, activity.start, activity.name)
                for activity in activities
                if activity.kind == kind and activity.device_id == device.id
            )
        except Exception as error:  # noqa: BLE001  # CUPTI, which calls this, can't handle any
            problems.append(error)

    device.synchronize()
    with _delivered(cupti, kind, keep):
        work()
        device.synchronize()
    if problems:
        raise UnsupportedError(f"the records of this cupti-python can't be read: {problems[0]!r}")
    # Records come as kernels end. The correlation id counts launches; the kernels of a graph
    # share one.
    return tuple(name for _, _, name in sorted(records))


def load_cupti() -> Any:
    """Import cupti-python, or raise `UnsupportedError` that says why it can't be."""
    try:
        from cupti import cupti
    except Exception as error:  # a broken installation fails in more ways than ImportError
        if isinstance(error, ModuleNotFoundError) and error.name == "cupti":
            raise UnsupportedError(
                'cupti-python is not installed; pip install "gpubench[activity]"'
            ) from None
        raise UnsupportedError(f"cupti-python can't be imported: {error}") from error
    return cupti


def refuse_beside_pytorchs_profiler() -> None:
    """Raise while that one records: it needn't have subscribed to CUPTI.

    PyTorch 2.11 never came back from its profiler's block once the callbacks were replaced in it.
    """
    profiler = sys.modules.get("torch.autograd.profiler")
    if getattr(profiler, "_is_profiler_enabled", False):
        raise UnsupportedError("PyTorch's profiler uses CUPTI now; end it first")


@contextmanager
def _delivered(cupti: Any, kind: int, keep: Callable[[Iterable[Any]], None]) -> Iterator[None]:
    """Have records of one kind kept while a block runs; all have been when it is left."""
    with ExitStack() as stack:
        with refusals():
            # There is one set of callbacks for records, and registering ours would silently rob
            # another profiler of its own. Most subscribe first, as this does: the second can't.
            stack.callback(cupti.unsubscribe, cupti.subscribe(lambda *_: None, None))
            cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), keep)
            cupti.activity_enable(kind)
            stack.callback(cupti.activity_disable, kind)
            stack.callback(cupti.activity_flush_all, 1)
        try:
            yield
        finally:
            with refusals():
                stack.close()


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what cupti-python raises into an `UnsupportedError`."""
    try:
        yield
    except Exception as error:
        hint = "; end the profiler that uses CUPTI now" if "SUBSCRIBER" in str(error) else ""
        raise UnsupportedError(f"CUPTI refuses to record: {error}{hint}") from error
