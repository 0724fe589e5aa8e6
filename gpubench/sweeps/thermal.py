"""Heat: waiting until a GPU has cooled, and telling which samples it slowed down.

Nothing of the card is ever set. A power cap counts for neither: a GPU under full load may well
run at it all the time, so waiting and repeating would find it there again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from gpubench.arguments import finite_number, one_of
from gpubench.devices.nvml import DeviceState
from gpubench.errors import ArgumentError

Mode = Literal["off", "wait"]

StateReader = Callable[[], DeviceState | None]
"""Reads the state of the device under test; None if it is unknown."""

_THERMAL = ("SwThermalSlowdown", "HwThermalSlowdown")

_SLOWDOWNS = (*_THERMAL, "HwSlowdown", "HwPowerBrakeSlowdown")
"""What slows a device down that its load alone doesn't explain."""

_SPARE_REPEATS = 10

_UNKNOWN = "its state is unknown"


@dataclass(frozen=True)
class ThermalWait:
    """What became of one wait.

    Attributes
    ----------
    waited_time : float
        Seconds; 0 if there was nothing to wait for.
    timed_out : bool
        Whether the GPU was still hot when the time was over.
    reason : str
        What was wrong with the GPU, or why that can't be told; empty if nothing was.
    """

    waited_time: float = 0.0
    timed_out: bool = False
    reason: str = ""


@dataclass(frozen=True)
class ThermalPolicy:
    """When to wait for a GPU to cool, and for how long.

    Attributes
    ----------
    mode : {"off", "wait"}
        Whether to wait at all.
    margin : float
        Degrees Celsius below the GPU's threshold for a slowdown; nearer to it than that, a wait
        begins, as it does while the GPU is slowed down for its heat.
    resume_margin : float
        Degrees Celsius below the threshold at which a wait ends; at least `margin`.
    timeout : float
        Seconds after which a wait ends anyway.
    poll : float
        Seconds from one look at the GPU to the next; at most `timeout`.

    Raises
    ------
    ArgumentError
        If a value can't be used, or two of them not together.
    """

    mode: Mode = "off"
    margin: float = 5.0
    resume_margin: float = 10.0
    timeout: float = 120.0
    poll: float = 0.25

    def __post_init__(self) -> None:
        one_of("thermal", self.mode, get_args(Mode))
        finite_number("margin", self.margin, at_least=0)
        finite_number("resume_margin", self.resume_margin, at_least=0)
        finite_number("timeout", self.timeout, above=0)
        finite_number("poll", self.poll, above=0)
        if self.resume_margin < self.margin:
            raise ArgumentError(
                f"resume_margin must be at least margin, or a wait would end where the next one "
                f"begins; got resume_margin={self.resume_margin!r} and margin={self.margin!r}"
            )
        if self.poll > self.timeout:
            raise ArgumentError(
                f"poll must be at most timeout, or a wait would end without a second look; got "
                f"poll={self.poll!r} and timeout={self.timeout!r}"
            )

    def heat(self, state: DeviceState) -> str:
        """Return why a GPU in that state has to cool before a sample; empty if it needn't."""
        return _heat(state, self.margin)

    def is_cool(self, state: DeviceState) -> bool:
        """Whether a wait ends in that state."""
        return not _heat(state, self.resume_margin)


def _heat(state: DeviceState, margin: float) -> str:
    reasons = [reason for reason in state.throttle_reasons if reason in _THERMAL]
    if state.thermal_margin is None and "HwPowerBrakeSlowdown" not in state.throttle_reasons:
        # Older GPUs tell of their heat, and of little else, by this name alone.
        reasons += [reason for reason in state.throttle_reasons if reason == "HwSlowdown"]
    if reasons:
        return f"slowed down ({', '.join(reasons)})"
    if state.thermal_margin is not None and state.thermal_margin < margin:
        return f"{state.thermal_margin:g} °C below its slowdown threshold"
    return ""


class ThermalWatch:
    """Keeps an eye on one GPU's heat in the course of a sweep.

    After a wait in vain there is none until the GPU has been cool once: one that stays hot costs
    one timeout, not one for each sample.

    Parameters
    ----------
    policy : ThermalPolicy
        When to wait, and for how long.
    read : callable
        Returns the GPU's state, or None if it is unknown.
    clock : callable
        Returns the time in seconds.
    sleep : callable
        Lets so many seconds pass.
    """

    def __init__(
        self,
        policy: ThermalPolicy,
        read: StateReader,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._policy = policy
        self._read = read
        self._clock = clock
        self._sleep = sleep
        self._is_patient = True

    def wait(self) -> ThermalWait:
        """Wait until the GPU is cool, if it is hot.

        One that tells no margin is hot while it is slowed down. One that tells nothing isn't
        waited for, and the reason says so.
        """
        if self._policy.mode == "off":
            return ThermalWait()
        state = self._read()
        reason = _UNKNOWN if state is None else self._policy.heat(state)
        if state is None or not reason:
            self._is_patient = True
            return ThermalWait(reason=reason)
        done = self._cooled(reason, self._policy.timeout if self._is_patient else 0.0)
        self._is_patient = not done.timed_out
        return done

    def _cooled(self, reason: str, timeout: float) -> ThermalWait:
        begin = self._clock()
        while (waited_time := self._clock() - begin) < timeout:
            self._sleep(min(self._policy.poll, timeout - waited_time))
            state = self._read()
            if state is None or self._policy.is_cool(state):
                return ThermalWait(self._clock() - begin, False, reason)
        return ThermalWait(waited_time, True, reason)


def was_throttled(before: DeviceState | None, after: DeviceState | None) -> bool:
    """Whether the GPU was slowed down at the begin or at the end of a sample.

    What counts is heat, the hardware's own protection, and an outside power brake; not a power
    cap. An unknown state counts as undisturbed.
    """
    states = (state for state in (before, after) if state is not None)
    return any(reason in _SLOWDOWNS for state in states for reason in state.throttle_reasons)


def may_discard(n_discarded: int, n_kept: int) -> bool:
    """Whether one more throttled sample of a configuration may be thrown away and repeated.

    At most ten, and one for each that was kept: so `n` samples take at most ``2 n + 10`` runs, and
    the last of them are kept, and marked, on a GPU that is always slowed down.
    """
    return n_discarded < n_kept + _SPARE_REPEATS
