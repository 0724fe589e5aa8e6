"""One source of activity records, shared by all that record at the same time.

CUPTI serves one recorder in a process. Blocks that nest, or run in several threads, so have
shares in one source: each gets every record that came while it was open.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

from gpubench.devices.base import ActivitySource, Platform
from gpubench.devices.records import Records
from gpubench.errors import UnsupportedError


class Share:
    """A part in the source of a platform's records.

    Attributes
    ----------
    source : ActivitySource
        The source, open.
    """

    def __init__(self, hub: _Hub, source: ActivitySource) -> None:
        self._hub = hub
        self.source = source
        self.chunks: list[Records] = []

    def collect(self) -> Records:
        """Return the records that came since the last call, of what is done by now."""
        self._hub.distribute()
        chunks, self.chunks = self.chunks, []
        names = chunks[-1].names if chunks else ()  # a source's names only grow
        return Records.joined(chunks, names, sum(chunk.n_dropped for chunk in chunks))


class _Hub:
    """A platform's source, open while anybody has a share in it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a collected generator may leave while records are
        self._source: ActivitySource | None = None
        self._shares: list[Share] = []

    @property
    def is_open(self) -> bool:
        return self._source is not None

    def join(self, platform: Platform, kinds: Collection[str]) -> Share:
        with self._lock:
            source = self._source or platform.activity_source()
            try:
                source.enable(kinds)
                self._distribute(source)
            except BaseException:
                if not self._shares:
                    source.close()
                raise
            self._source = source
            share = Share(self, source)
            self._shares.append(share)
            return share

    def leave(self, share: Share) -> None:
        with self._lock:
            self._shares.remove(share)
            if not self._shares:
                self.close()

    def close(self) -> None:
        with self._lock:
            source, self._source = self._source, None
            if source is not None:
                source.close()

    def distribute(self) -> None:
        with self._lock:
            if self._source is not None:
                self._distribute(self._source)

    def _distribute(self, source: ActivitySource) -> None:
        records = source.collect()
        for share in list(self._shares):
            share.chunks.append(records)


_hubs: WeakKeyDictionary[Platform, _Hub] = WeakKeyDictionary()


def is_recording(platform: Platform) -> bool:
    """Whether anybody records a platform's activities now."""
    return platform in _hubs and _hubs[platform].is_open


@contextmanager
def shared(platform: Platform, kinds: Collection[str]) -> Iterator[Share]:
    """Have a share in a platform's activity records while the block runs.

    Parameters
    ----------
    platform : Platform
        Whose devices.
    kinds : collection of str
        What to record, as `ActivitySource.enable` takes it. More may come, for others.

    Raises
    ------
    UnsupportedError
        If nothing can be recorded, or not now; the message says why.
    """
    hub = _hubs.setdefault(platform, _Hub())
    share = hub.join(platform, kinds)
    try:
        yield share
    finally:
        with suppress(UnsupportedError):  # no record that is wanted hangs on this
            hub.leave(share)


@atexit.register
def _close_all() -> None:
    """Let no source call back into an interpreter that is gone."""
    for hub in list(_hubs.values()):
        with suppress(UnsupportedError):
            hub.close()
