"""What calls caused on the devices, told by the external ids that were pushed around them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpubench.devices.base import Device
from gpubench.devices.records import KERNEL, RecordArray, Records, rows_by_id
from gpubench.stats import FloatArray

_external_ids = itertools.count(1)


def next_external_id() -> int:
    """Return an external id that is nobody else's in this process."""
    return next(_external_ids)


@dataclass(frozen=True)
class Caused:
    """What `n` calls caused.

    Attributes
    ----------
    span : ndarray, shape (n_devices, n)
        Seconds from the first thing that a device did for a call to the last.
    busy : ndarray, shape (n_devices, n)
        Seconds in which it did something for the call.
    kernels : mapping of str to ndarray, shape (n_runs,)
        Seconds of each run of each kernel, by its name.
    n_unattributed : int
        How many records are linked to no external id at all.
    n_streams : int
        On how many streams of one device the calls worked.
    """

    span: FloatArray
    busy: FloatArray
    kernels: Mapping[str, FloatArray]
    n_unattributed: int
    n_streams: int


def attribute(records: Records, calls: Mapping[int, int], devices: Sequence[Device]) -> Caused:
    """Tell which call caused which activity.

    Parameters
    ----------
    records : Records
        With links.
    calls : mapping of int to int
        The number of the call, from 0, that each external id was pushed for.
    devices : sequence of Device
        In the order of the rows.
    """
    linked = external_ids(records)
    ids = np.array(sorted(calls), np.int64)
    numbers = np.array([calls[id_] for id_ in ids.tolist()], np.int64)
    n = int(numbers.max(initial=-1)) + 1
    is_ours = np.isin(linked, ids)
    ours, place = records.activities[is_ours], numbers[np.searchsorted(ids, linked[is_ours])]
    span, busy = np.zeros((2, len(devices), n))
    for row, device in enumerate(devices):
        is_here = ours["device"] == device.id
        span[row], busy[row] = spans(ours[is_here], place[is_here], n)
    is_kernel = ours["kind"] == KERNEL
    return Caused(
        span=span,
        busy=busy,
        kernels=_durations(ours[is_kernel], records.names),
        n_unattributed=int(np.sum(linked == 0)),
        n_streams=max(
            (len(np.unique(ours["stream"][ours["device"] == each.id])) for each in devices),
            default=0,
        ),
    )


def external_ids(records: Records) -> npt.NDArray[np.int64]:
    """Return the external id of each activity, 0 where there is none."""
    place = rows_by_id(records.links["correlation_id"], records.activities["correlation_id"])
    found = np.zeros(len(place), np.int64)
    is_linked = place >= 0
    found[is_linked] = records.links["external_id"][place[is_linked]]
    return found


def spans(
    activities: RecordArray, place: npt.NDArray[np.int64], n: int
) -> tuple[FloatArray, FloatArray]:
    """Return the seconds from first to last of each call's activities, and of their union.

    Parameters
    ----------
    activities : ndarray of `ACTIVITY`, shape (n_activities,)
        Of one device.
    place : ndarray of int, shape (n_activities,)
        Which call each belongs to, below `n`.
    """
    span, busy = np.zeros(n), np.zeros(n)
    if not len(activities):
        return span, busy
    order = np.lexsort((activities["start"], place))
    place = place[order]
    # Far enough apart, calls can't overlap, and all are looked at in one go.
    origin = activities["start"].min()
    apart = (activities["end"].max() - origin + 1) * place
    start, end = (activities[edge][order] - origin + apart for edge in ("start", "end"))
    reached = np.maximum.accumulate(end)
    added = end - start
    added[1:] = np.maximum(reached[1:] - np.maximum(start[1:], reached[:-1]), 0)
    np.add.at(busy, place, added * 1e-9)
    is_first = np.append(True, place[1:] != place[:-1])
    is_last = np.append(is_first[1:], True)
    span[place[is_first]] = (reached[is_last] - start[is_first]) * 1e-9
    return span, busy


def _durations(kernels: RecordArray, names: Sequence[str]) -> dict[str, FloatArray]:
    seconds = (kernels["end"] - kernels["start"]) * 1e-9
    return {
        names[index]: seconds[kernels["name"] == index]
        for index in dict.fromkeys(kernels["name"].tolist())
    }
