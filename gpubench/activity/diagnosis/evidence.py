"""A recording, and what several rules of `diagnose` ask of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpubench.activity.diagnosis.findings import Finding
from gpubench.activity.diagnosis.idleness import CAUSES, idle_gaps
from gpubench.activity.intervals import Integers, Intervals, union
from gpubench.activity.recording import Recording
from gpubench.devices.records import RecordArray
from gpubench.render.names import short_names
from gpubench.render.units import format_time

_N_EXAMPLES = 3


@dataclass(frozen=True)
class Loss:
    """What the device that lost most lost.

    Attributes
    ----------
    device : int
        Its id.
    cost : int
        Nanoseconds.
    others : str
        A sentence, with a space before it, on the shares that other devices lost; empty if they
        lost nothing.
    """

    device: int
    cost: int
    others: str


@dataclass(frozen=True, eq=False)
class Evidence:
    """A recording, and what several rules ask of it.

    Attributes
    ----------
    recording : Recording
        What is looked at.
    """

    recording: Recording

    @cached_property
    def launches(self) -> Integers:
        """The row of the call that launched each activity, or -1."""
        return np.asarray(self.recording.launches(), np.int64)

    @cached_property
    def compiled(self) -> Intervals:
        """When something was compiled."""
        records = self.recording.compilations
        return self.union(records["start"], records["end"])

    @cached_property
    def gaps(self) -> RecordArray:
        """The times in which devices were idle, as rows of `GAP`."""
        return idle_gaps(self.recording, self.launches, self.compiled)

    @cached_property
    def devices(self) -> list[int]:
        """The ids of the devices that did something."""
        ids: list[int] = np.unique(self.recording.activities["device"]).tolist()
        return ids

    def gaps_by(self, *causes: str) -> RecordArray:
        """Return the gaps with one of these causes."""
        return self.gaps[np.isin(self.gaps["cause"], [CAUSES.index(cause) for cause in causes])]

    def union(self, start: Integers, end: Integers) -> Intervals:
        """Return what these intervals cover of the recording's time."""
        begin, stop = self.recording.begin, self.recording.end
        return union(np.clip(start, begin, stop), np.clip(end, begin, stop))

    def share(self, cost: int) -> float:
        """Return a cost in nanoseconds in relation to the recording's time."""
        return cost / self.recording.duration if self.recording.duration > 0 else 0.0

    def figures(self, cost: int) -> str:
        """Return a cost in nanoseconds as text, with its share."""
        return f"{format_time(cost * 1e-9)} ({self.share(cost):.1%} of the recording)"

    def lost(self, gaps: RecordArray) -> tuple[Loss, RecordArray]:
        """Return the loss of the device that lost most in these gaps, and those of them."""
        costs = {
            device: int(gaps["lost"][gaps["device"] == device].sum()) for device in self.devices
        }
        loss = self.worst(costs)
        return loss, gaps[gaps["device"] == loss.device]

    def worst(self, costs: Mapping[int, int]) -> Loss:
        """Return the loss of the device that lost most; of none, if nobody lost anything.

        Parameters
        ----------
        costs : mapping of int to int
            Nanoseconds by the device's id.
        """
        device = max(costs, key=costs.__getitem__, default=-1)
        others = [
            f"GPU-{other} {self.share(cost):.1%}"
            for other, cost in costs.items()
            if other != device and cost > 0
        ]
        listed = f" Others: {', '.join(others)}." if others else ""
        return Loss(device, costs.get(device, 0), listed)

    def called(self, names: Integers) -> str:
        """Return how often each name is among these, as text; the most frequent first."""
        counts = Counter(self.recording.names[name] for name in names.tolist())
        shown = short_names(counts)
        listed = [f"{shown[name]} ({count:,})" for name, count in counts.most_common(_N_EXAMPLES)]
        rest = counts.total() - sum(count for _, count in counts.most_common(_N_EXAMPLES))
        return ", ".join([*listed, *([f"others ({rest:,})"] if rest else [])])

    def finding(
        self,
        code: str,
        message: str,
        advice: str,
        *,
        cost: int,
        table: str,
        rows: Integers,
        costs: Integers,
    ) -> Finding:
        """Return a finding that these records show.

        Parameters
        ----------
        code, message, advice : str
            As in `Note`.
        cost : int
            Nanoseconds.
        table : str
            Where the records are.
        rows, costs : ndarray of int, shape (n,)
            Which they are, in any order, and the nanoseconds that each costs.
        """
        order = np.argsort(-costs, kind="stable")
        first = order[:_N_EXAMPLES]
        return Finding(
            code,
            message,
            advice,
            share=self.share(cost),
            cost_time=cost * 1e-9,
            table=table,
            rows=rows[order],
            examples=self._examples(table, rows[first], costs[first]),
        )

    def _examples(self, table: str, rows: Integers, costs: Integers) -> tuple[str, ...]:
        records = getattr(self.recording, table)[rows]
        names = [self.recording.names[name] for name in records["name"]]
        shown = short_names(names)
        since = (records["start"] - self.recording.begin) / 1e6
        durations = records["end"] - records["start"]
        return tuple(
            f"at {at:.3f} ms: {shown[name]}, {format_time(duration * 1e-9)}"
            + (f", costs {format_time(cost * 1e-9)}" if cost != duration else "")
            for at, name, duration, cost in zip(
                since.tolist(), names, durations.tolist(), costs.tolist(), strict=True
            )
        )
