"""A fresh process that imports files and runs benchmarks of one: the parent's end."""

from __future__ import annotations

import os
import pickle
import queue
import re
import subprocess
import tempfile
import threading
from contextlib import suppress
from types import TracebackType
from typing import IO, cast

from gpubench.errors import GpubenchError
from gpubench.processes import command, kill, obituary
from gpubench.suites.case import Event, Order

LOAD_TIMEOUT = 60.0
"""Seconds in which a file must be imported."""

_GRACE = 5.0
"""Seconds that a child may take to end itself when its time is over."""

_POLL_TIME = 0.2

_MAX_OUTPUT = 2**16
"""Bytes at the end of what a child has printed that are looked at."""

_TIMEOUT = re.compile(r"Timeout \(\d+:\d+:\d+(\.\d+)?\)!$", re.MULTILINE)
_EXTENSIONS = re.compile(r"^Extension modules: .*", re.MULTILINE)
"""What faulthandler says, and what isn't worth saying of it."""


class ChildError(GpubenchError):
    """A child came to no good end; the message says how, with its last words."""


class Child:
    """A child process; it is ended when the ``with`` block is left.

    Parameters
    ----------
    order : Order
        What it is to do.
    """

    def __init__(self, order: Order) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by __exit__
        self._process = subprocess.Popen(
            command("gpubench.suites.child:serve"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            # Ctrl-C is for the parent alone
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        # It stays open: when this process ends, however that is, the child sees so, and ends too.
        self._orders = cast(IO[bytes], self._process.stdin)
        with suppress(OSError):
            self._orders.write(pickle.dumps(order))
            self._orders.flush()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(subprocess.TimeoutExpired):
            if exc_type is None:
                self._process.wait(_GRACE)  # it frees the GPU
        kill(self._process)
        self._process.wait()
        self._reader.join(_GRACE)
        with suppress(OSError):
            self._orders.close()
        self._output.close()

    def receive(self, timeout: float) -> Event:
        """Return the next thing that the child says.

        Parameters
        ----------
        timeout : float
            Seconds in which it should.

        Raises
        ------
        ChildError
            If it doesn't.
        """
        left = timeout + _GRACE
        while left > 0:
            wait = min(left, _POLL_TIME)
            with suppress(queue.Empty):
                event = self._events.get(timeout=wait)
                if event is None:  # it is about to end
                    raise ChildError(self._obituary(_GRACE))
                return event
            left -= wait
            # What it has forked may keep the pipe open, so that its end doesn't show there.
            if self._process.poll() is not None and self._events.empty():
                raise ChildError(self._obituary())
        raise ChildError(f"it took over {timeout:g} s; " + self._obituary())

    def _read(self) -> None:
        with cast(IO[bytes], self._process.stdout) as pipe:
            while True:
                try:
                    event = pickle.load(pipe)
                except Exception:  # noqa: BLE001  # the end, be it in the middle of an event
                    break
                self._events.put(event)
        self._events.put(None)

    def _obituary(self, grace: float = 0.0) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        kill(self._process)
        status = self._process.wait()
        end = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, end - _MAX_OUTPUT))
        words = self._output.read().decode(errors="replace")
        late = "it took too long; " if _TIMEOUT.search(words) else ""
        return late + obituary(status, _EXTENSIONS.sub("", words))
