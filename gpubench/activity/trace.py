"""`Trace`: what a recording shows, as tables, findings, files and pictures."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from gpubench.activity import archive, diagnosis, frame
from gpubench.activity.diagnosis import Diagnosis
from gpubench.activity.recording import Recording
from gpubench.errors import UnsupportedError
from gpubench.render import activity, chrome, lanes, timeline

if TYPE_CHECKING:
    import pandas as pd
    from IPython.lib.pretty import RepresentationPrinter
    from matplotlib.figure import Figure


class Trace:
    """What ran on the GPUs, and what the host asked of them, while a block ran.

    `record_activity` makes it; there is something in it once the block has ended. Printed, it is
    `table`.

    Attributes
    ----------
    recording : Recording
        The records, as arrays.

    Raises
    ------
    UnsupportedError
        By everything here, while the block still runs.
    """

    def __init__(self, recording: Recording | None = None) -> None:
        self._recording = recording

    @property
    def recording(self) -> Recording:
        """The records, as arrays."""
        if self._recording is None:
            raise UnsupportedError("a trace holds nothing before its block has ended")
        return self._recording

    def complete(self, recording: Recording) -> None:
        """Let this be the trace of a recording; what `record_activity` does at the end."""
        self._recording = recording

    def __repr__(self) -> str:
        if self._recording is None:
            return "<Trace: its block hasn't ended>"
        return activity.short_form(self._recording)

    def __str__(self) -> str:
        return self.table()

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self) if self._recording else repr(self))

    def table(self) -> str:
        """Return what the host and the devices spent their time on, by name.

        Host calls first, then the devices' kernels, copies and sets: share of the trace, total,
        calls, mean ± standard deviation, min and max of each. Columns that say nothing are left
        out.
        """
        return activity.table(self.recording)

    def ranges(self) -> str:
        """Return the same for each range: its own time on the host, and what was launched in it.

        An activity belongs to the ranges that were open, on the thread that launched it, when it
        was launched. That needs the records of calls (kinds ``"runtime"`` and ``"driver"``).
        """
        return activity.range_table(self.recording)

    def timeline(self) -> str:
        """Return the activities in the order of their start, one in a line."""
        return activity.timeline_table(self.recording)

    def activity_summary(self) -> str:
        """Return how often each activity ran and what it took, by name."""
        return activity.activity_table(self.recording)

    def device_summary(self) -> str:
        """Return what each device spent on kernels, copies and sets."""
        return activity.device_table(self.recording)

    def diagnose(self) -> Diagnosis:
        """Return what keeps the GPU from its work, what it costs, and what to do about it."""
        return diagnosis.diagnose(self.recording)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row for each activity, call, range and compilation, by start.

        Returns
        -------
        pandas.DataFrame
            See `gpubench.activity.frame.to_dataframe` for the columns.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        return frame.to_dataframe(self.recording)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the records to a file that `load` reads: compressed arrays, NumPy's ``.npz``.

        Parameters
        ----------
        path : str or path-like
            Where to; a file that is there is replaced once the new one is complete.
        """
        archive.save(self.recording, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Trace:
        """Read a trace that `save` wrote, of this release or an earlier one.

        Raises
        ------
        ArgumentError
            If the file is no such trace, or is damaged; the message names it.
        OSError
            If it can't be read.
        """
        return cls(archive.load(path))

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write a file that Perfetto (ui.perfetto.dev) and chrome://tracing open.

        Parameters
        ----------
        path : str or path-like
            Compressed if it ends in ``.gz``.
        """
        chrome.write(self.recording, path)

    def timeline_html(self, path: str | PathLike[str]) -> None:
        """Write a page that shows the timeline in any browser, with nothing else to fetch."""
        timeline.write(self.recording, path)

    def plot(self, begin: float = 0.0, end: float | None = None) -> Figure:
        """Draw the timeline: the host's threads above the devices' streams.

        Each thread has a lane for each depth of its ranges, and one for its calls, of those that
        lie in another the outer. A line leads from each call to what it launched, if there are
        60 at most.

        Parameters
        ----------
        begin, end : float, optional
            What to show, in seconds from the beginning of the trace; by default all of it.

        Returns
        -------
        matplotlib.figure.Figure
            To be shown by a notebook, or written by its ``savefig``.

        Raises
        ------
        ArgumentError
            If `end` isn't after `begin`.
        MissingExtraError
            If matplotlib is not installed.
        """
        return lanes.figure(self.recording, begin, end)
