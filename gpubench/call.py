"""The call to be timed, with what has to happen before it each time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpubench.arguments import finished
from gpubench.devices.base import Device, Work


class TimedCall:
    """A function with its arguments, a setup and cache flushes.

    Parameters
    ----------
    func : callable
        What is timed.
    args, kwargs : tuple, mapping
        Its arguments.
    setup : callable or None
        Called before each call. If it returns a tuple, that is the call's args.
    flushes : sequence of callable
        Each flushes one device's cache; called after `setup`.
    devices : sequence of Device
        Waited for when setup and flushes are through, so that their work isn't timed.
    go_home : callable
        Makes the caller's device current.
    meet : callable, optional
        Called last before each call: processes that measure together wait for each other there.
    """

    def __init__(
        self,
        func: Callable[..., object],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        setup: Callable[[], object] | None,
        flushes: Sequence[Work],
        devices: Sequence[Device],
        go_home: Work,
        meet: Work | None = None,
    ) -> None:
        self._func = func
        self._kwargs = kwargs
        self._setup = setup
        self._flushes = flushes
        self._devices = devices
        self._go_home = go_home
        self._meet = meet
        self._call = self._bind(args)
        self.is_fixed = setup is None and not flushes and meet is None

    def _bind(self, args: tuple[Any, ...]) -> Callable[[], object]:
        if not args and not self._kwargs:
            return self._func
        return functools.partial(self._func, *args, **self._kwargs)

    def first(self) -> Callable[[], object]:
        """Do as `next`; the call returned refuses a function that only looks synchronous."""
        call = self.next()

        def checked() -> object:
            returned = call()
            finished("func", returned)
            return returned

        return checked

    def next(self) -> Callable[[], object]:
        """Do what comes before a call, and return the call."""
        call = self._call
        if self._setup is not None:
            made = self._setup()
            finished("setup", made)
            if isinstance(made, tuple):
                call = self._bind(made)
        for flush in self._flushes:
            flush()
        if not self.is_fixed:
            self.synchronize()
        if self._meet is not None:
            self._meet()
        return call

    def synchronize(self) -> None:
        """Wait until the devices are idle, and make the caller's device current."""
        for device in self._devices:
            device.synchronize()
        self._go_home()
