"""`ScopedTimer`: how long a block of code takes, on the host and on the GPU."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from functools import partial
from types import FrameType
from typing import ClassVar, SupportsIndex

from gpubench.activity.scope.timed_block import Block, Lap, Settings
from gpubench.activity.scope.timing import TimingResult
from gpubench.arguments import text, whole_number
from gpubench.errors import ArgumentError, UnsupportedError
from gpubench.ranges import suspension
from gpubench.ranges.covering import Covering, settle
from gpubench.ranges.label import argb

_INDENT = "    "

_around: ContextVar[tuple[Block, ...]] = ContextVar("gpubench.scoped_timer", default=())
"""The blocks around the running code, outermost first; some may have ended elsewhere."""


class ScopedTimer(Covering):
    """Print how long a block of code, or each call of a function, takes.

    This is the ``ScopedTimer`` of NVIDIA Warp for the code of any framework. The arguments, the
    printed line (``Demo took 4.91 ms``) and its indentation in nested blocks are the same. Like
    `time_range`, it decorates functions of all kinds, and one object may be nested in itself and
    shared by threads and tasks. Lines are indented by the number of blocks around that print;
    tasks inherit it from their maker, threads begin at none.

    The time that is printed is the host's. A GPU may still be at work when it ends, unless
    `synchronize` is set. The GPU's own time, `gpu_elapsed`, is always taken too, by events for
    which the host needn't wait. It lasts from when the GPU has done what was queued before the
    block until it has done what the block queued. What it waited for the host in between is part
    of it, on an idle GPU the first launch too. It is that of the device and of the streams that
    are current as the block begins; of several streams (PyTorch's and CuPy's), the longest time
    counts. It is printed where that doesn't mean to wait for it, with `synchronize` or
    `activity_filter` (``Demo took 4.91 ms (GPU 4.88 ms)``).

    A timer doesn't make a process use a GPU: before the process does so itself, there is no GPU
    time. If the block raises, the time is printed and the exception goes on.

    Parameters
    ----------
    name : str
        What is printed before the time.
    active : bool, optional
        If False, the timer does nothing.
    print : bool, optional
        Whether to print the time, and before it the list of activities, when the block ends.
    detailed : bool, optional
        Whether to print a profile of the block by cProfile as well. Since Python 3.12, that one
        mixes up what several threads do at the same time.
    dict : mutable mapping of str to list of float, optional
        `elapsed` is appended to its list under `name`.
    use_nvtx : bool, optional
        Whether to show the block as a range on a profiler's timeline as well; see `time_range`.
    color : str or int, optional
        Color of that range by the nvtx package's name for it, or as 0xAARRGGBB.
    synchronize : bool, optional
        Whether to wait for all GPUs that this process uses before each reading of the clock.
    activity_filter : int, optional
        What to list of that which the GPUs do: a sum of `TIMING_KERNEL`, `TIMING_MEMCPY`,
        `TIMING_MEMSET` and `TIMING_GRAPH`, or `TIMING_ALL`. The GPUs are waited for before the
        block, and after its time was taken. If they can't be recorded, a line says why.
    report_func : callable, optional
        Called with the list of `TimingResult` and the indentation instead of `timing_print`, if
        there is anything in the list.

    Attributes
    ----------
    enabled : bool
        An attribute of the class: no timer that is made while it is False is active.

    Raises
    ------
    ArgumentError
        If an argument can't be used.

    Examples
    --------
    >>> with ScopedTimer("solve") as timer:  # doctest: +SKIP
    ...     assemble()
    ...     timer.split("assembly")
    ...     with ScopedTimer("factorization"):
    ...         factorize()
    solve: assembly took 2.07 ms
        factorization took 11.32 ms
    solve took 13.41 ms
    >>> timer.gpu_elapsed  # doctest: +SKIP
    12.86
    """

    enabled: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        active: bool = True,
        print: bool = True,  # noqa: A002  # Warp's name
        detailed: bool = False,
        dict: MutableMapping[str, list[float]] | None = None,  # noqa: A002  # Warp's name
        use_nvtx: bool = False,
        color: str | int = "rapids",
        synchronize: bool = False,
        activity_filter: SupportsIndex = 0,
        report_func: Callable[[list[TimingResult], str], object] | None = None,
    ) -> None:
        if callable(name):
            raise ArgumentError(f'name must be a string, got {name!r}: write @ScopedTimer("name")')
        argb(color=color)  # a program must not fail only when use_nvtx is set
        if report_func is not None and not callable(report_func):
            raise ArgumentError(f"report_func must be callable or None, got {report_func!r}")
        self._settings = Settings(
            text("name", name),
            bool(active and self.enabled),
            bool(print),
            bool(detailed),
            _checked_dict(name, dict),
            bool(use_nvtx),
            color,
            bool(synchronize),
            whole_number("activity_filter", activity_filter, at_least=0),
            report_func,
        )
        if dict is not None:
            dict.setdefault(name, [])
        self._extra_msg = ""
        self._open: list[Block] = []
        self._ended: Block | None = None
        self._ended_here = _EndedHere()

    def __reduce__(self) -> tuple[object, ...]:
        # Decorated functions travel to other processes; blocks and threads' own data can't.
        return type(self), tuple(vars(self._settings).values())

    def __enter__(self) -> ScopedTimer:
        if self._settings.active:
            self._begin(sys._getframe(1))
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._settings.active:
            settle(partial(self._end, sys._getframe(1)), error)

    def split(self, label: str) -> None:
        """Print the time since the block began, or since the last split, as a lap.

        It is kept in `splits`, with the GPU's time. With `synchronize`, the GPUs are waited for.

        Parameters
        ----------
        label : str
            What the lap was spent on.

        Raises
        ------
        UnsupportedError
            Outside of the timer's block.
        """
        label = text("label", label)
        if not self._settings.active:
            return
        block = self._block_around(sys._getframe(1))
        if block is None:
            raise UnsupportedError(f"split({label!r}) was called outside of the timer's block")
        block.split(label)

    @property
    def elapsed(self) -> float:
        """The host's milliseconds.

        Like the other results, it is that of the block that ended last in this thread; in any
        thread if none did in this; before that, zero or empty.
        """
        ended = self._last_ended()
        return ended.whole.elapsed if ended else 0.0

    @property
    def gpu_elapsed(self) -> float | None:
        """The GPU's milliseconds; waits, the first time, until the GPU is done with its work.

        None if there is no GPU, or the process didn't use it before the block.
        """
        ended = self._last_ended()
        return ended.whole.gpu_elapsed if ended else None

    @property
    def splits(self) -> tuple[Lap, ...]:
        """The laps, with ``label``, ``elapsed`` and ``gpu_elapsed`` each."""
        ended = self._last_ended()
        return tuple(ended.splits) if ended else ()

    @property
    def timing_results(self) -> list[TimingResult]:
        """The activities that `activity_filter` asked for."""
        ended = self._last_ended()
        return ended.results if ended else []

    @property
    def extra_msg(self) -> str:
        """What the printed line ends with: set in a block, of that one; else, of those to come."""
        block = self._block_around(sys._getframe(1))
        return block.extra_msg if block else self._extra_msg

    @extra_msg.setter
    def extra_msg(self, message: str) -> None:
        block = self._block_around(sys._getframe(1))
        if block:
            block.extra_msg = message
        else:
            self._extra_msg = message

    def _is_idle(self) -> bool:
        return not self._settings.active

    def _begin(self, frame: FrameType) -> None:
        around = _open_blocks()
        indent = _INDENT * sum(block.prints for block in around)
        block = Block(self._settings, _owner(frame), indent, self._extra_msg)
        block.begin()
        self._open.append(block)
        _around.set((*around, block))

    def _end(self, frame: FrameType) -> None:
        # A block may be left to another task or thread, by an ExitStack for example.
        own = [block for block in self._open if block.owner == _owner(frame)] or self._open
        block = own[-1]
        self._open.remove(block)
        try:
            block.end()
        finally:
            self._ended = self._ended_here.block = block
            if self._settings.dict is not None:
                lists = self._settings.dict
                lists.setdefault(self._settings.name, []).append(block.whole.elapsed)
            block.report()

    def _last_ended(self) -> Block | None:
        return self._ended_here.block or self._ended

    def _block_around(self, frame: FrameType | None) -> Block | None:
        """Return the timer's innermost block that code of a frame runs in.

        Generators share their caller's context: of several blocks, those of the frames' owners
        come first.
        """
        own = [block for block in _open_blocks() if block in self._open]
        owners = set()
        while frame and len(own) > 1:
            owners.add(_owner(frame))
            frame = frame.f_back
        chosen = [block for block in own if block.owner in owners] or own
        return chosen[-1] if chosen else None


class _EndedHere(threading.local):
    """The block that ended last in each thread."""

    block: Block | None = None


def _open_blocks() -> tuple[Block, ...]:
    return tuple(block for block in _around.get() if block.is_open)


def _owner(frame: FrameType) -> int:
    return suspension.owner(frame) or threading.get_ident()


def _checked_dict(
    name: str, lists: MutableMapping[str, list[float]] | None
) -> MutableMapping[str, list[float]] | None:
    if lists is not None and not isinstance(lists, MutableMapping):
        raise ArgumentError(f"dict must be a dict or None, got {lists!r}")
    if lists and not isinstance(lists.get(name, []), list):
        raise ArgumentError(f"dict must hold a list as {name!r}, got {lists[name]!r}")
    return lists
