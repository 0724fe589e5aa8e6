"""Waiting until a GPU has cooled, and which samples it slowed down."""

import dataclasses
import itertools

import pytest

import gpubench
from gpubench.devices.nvml import DeviceState
from gpubench.sweeps.thermal import (
    ThermalPolicy,
    ThermalWait,
    ThermalWatch,
    may_discard,
    was_throttled,
)

WAIT = ThermalPolicy("wait", margin=5, resume_margin=10, timeout=60, poll=2)


def state(*reasons, margin=40.0):
    return DeviceState(1e9, 1e9, 50.0, reasons, margin)


COOL = state()
HOT = state("SwThermalSlowdown", margin=1.0)


class Machine:
    """A GPU with these states, the last for ever, and a clock that moves while it is slept."""

    def __init__(self, policy, states):
        self.now = 100.0
        self.sleeps = []
        self.n_reads = 0
        self._states = itertools.chain(states[:-1], itertools.repeat(states[-1]))
        self.watch = ThermalWatch(policy, self._read, clock=lambda: self.now, sleep=self._sleep)

    def _read(self):
        self.n_reads += 1
        return next(self._states)

    def _sleep(self, seconds):
        assert seconds > 0
        self.sleeps.append(seconds)
        self.now += seconds

    def wait(self):
        return self.watch.wait()


class TestWaiting:
    def test_off_looks_at_nothing(self):
        machine = Machine(ThermalPolicy("off"), [HOT])
        assert machine.wait() == ThermalWait(0.0, False, "")
        assert machine.n_reads == 0

    def test_a_cool_gpu_is_not_waited_for(self):
        machine = Machine(WAIT, [COOL])
        assert machine.wait() == ThermalWait(0.0, False, "")
        assert (machine.n_reads, machine.sleeps) == (1, [])

    def test_off_is_the_default(self):
        assert ThermalPolicy().mode == "off"

    @pytest.mark.parametrize(
        ("hot", "reason"),
        [
            (state("SwThermalSlowdown"), "slowed down (SwThermalSlowdown)"),
            (
                state("HwThermalSlowdown", "HwSlowdown", "SwPowerCap", margin=None),
                "slowed down (HwThermalSlowdown, HwSlowdown)",
            ),
            (state("HwSlowdown", margin=None), "slowed down (HwSlowdown)"),
            (state(margin=4.0), "4 °C below its slowdown threshold"),
            (state("SwPowerCap", margin=4.5), "4.5 °C below its slowdown threshold"),
            (state(margin=-2.0), "-2 °C below its slowdown threshold"),
        ],
    )
    def test_a_hot_one_is(self, hot, reason):
        machine = Machine(WAIT, [hot, hot, COOL])
        assert machine.wait() == ThermalWait(4.0, False, reason)
        assert machine.sleeps == [2, 2]

    @pytest.mark.parametrize(
        "not_hot",
        [
            state(margin=5.0),
            state(margin=None),
            state("SwPowerCap"),
            state("HwPowerBrakeSlowdown", "HwSlowdown", margin=None),
            state("HwSlowdown", margin=40.0),
            state("SyncBoost"),
        ],
    )
    def test_what_a_wait_would_not_cure_is_not_waited_for(self, not_hot):
        assert Machine(WAIT, [not_hot]).wait() == ThermalWait(0.0, False, "")

    def test_it_cools_to_the_margin_for_resuming(self):
        margins = [4.0, 6.0, 9.9, 10.0, 3.0]
        machine = Machine(WAIT, [state(margin=margin) for margin in margins])
        assert machine.wait().waited_time == 6.0

    def test_it_waits_while_slowed_down_whatever_the_margin(self):
        slow = state("HwThermalSlowdown", margin=50.0)
        assert Machine(WAIT, [slow] * 5 + [COOL]).wait().waited_time == 10.0

    def test_after_the_timeout_it_goes_on_and_says_so(self):
        machine = Machine(dataclasses.replace(WAIT, timeout=5), [HOT])
        assert machine.wait() == ThermalWait(5.0, True, "slowed down (SwThermalSlowdown)")
        assert machine.sleeps == [2, 2, 1]

    def test_one_that_cools_in_the_last_moment_has_not_timed_out(self):
        machine = Machine(dataclasses.replace(WAIT, timeout=5), [HOT, HOT, HOT, COOL])
        assert machine.wait() == ThermalWait(5.0, False, "slowed down (SwThermalSlowdown)")

    def test_one_that_stays_hot_costs_one_timeout_until_it_was_cool(self):
        machine = Machine(WAIT, [HOT] * 34 + [COOL, HOT])
        waits = [machine.wait() for _ in range(6)]
        assert [(wait.waited_time, wait.timed_out) for wait in waits] == [
            (60.0, True),
            (0.0, True),
            (0.0, True),
            (0.0, True),
            (0.0, False),
            (60.0, True),
        ]

    def test_one_that_cools_in_time_is_waited_for_each_time(self):
        machine = Machine(WAIT, [HOT, COOL] * 3)
        assert [machine.wait().waited_time for _ in range(3)] == [2.0] * 3

    def test_an_unknown_state_is_not_waited_for(self):
        assert Machine(WAIT, [None]).wait() == ThermalWait(0.0, False, "its state is unknown")

    def test_nor_one_that_is_lost_on_the_way(self):
        wait = Machine(WAIT, [HOT, None]).wait()
        assert (wait.waited_time, wait.timed_out) == (2.0, False)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_an_interruption_passes(self, error):
        def interrupt(_):
            raise error

        watch = ThermalWatch(WAIT, lambda: HOT, sleep=interrupt)
        with pytest.raises(error):
            watch.wait()

    def test_on_the_clock_of_the_machine(self):
        policy = dataclasses.replace(WAIT, timeout=0.02, poll=0.005)
        wait = ThermalWatch(policy, lambda: HOT).wait()
        assert wait.timed_out
        assert wait.waited_time >= 0.02


class TestPolicy:
    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"mode": "on"}, "thermal must be one of 'off', 'wait'; got 'on'"),
            ({"margin": -1}, "margin must be at least 0, got -1"),
            ({"margin": "5"}, "margin must be a number, got '5'"),
            ({"resume_margin": float("nan")}, "resume_margin must be a number, got NaN"),
            ({"timeout": 0}, "timeout must be above 0, got 0"),
            ({"timeout": float("inf")}, "timeout must be finite, got inf"),
            ({"poll": 0}, "poll must be above 0, got 0"),
            (
                {"margin": 20},
                "resume_margin must be at least margin, .*; got resume_margin=10.0 and margin=20",
            ),
            (
                {"poll": 3, "timeout": 2},
                "poll must be at most timeout, .*; got poll=3 and timeout=2",
            ),
        ],
    )
    def test_values_are_checked_together(self, values, message):
        with pytest.raises(gpubench.ArgumentError, match=message):
            ThermalPolicy(**values)

    def test_equal_margins_and_times_will_do(self):
        assert ThermalPolicy(margin=7, resume_margin=7, timeout=1, poll=1).margin == 7


class TestMarking:
    @pytest.mark.parametrize(
        "reason", ["SwThermalSlowdown", "HwThermalSlowdown", "HwSlowdown", "HwPowerBrakeSlowdown"]
    )
    def test_slowed_down_at_either_end(self, reason):
        assert was_throttled(state(reason), COOL)
        assert was_throttled(COOL, state("SwPowerCap", reason))
        assert was_throttled(None, state(reason))
        assert was_throttled(state(reason), None)

    @pytest.mark.parametrize("reasons", [(), ("SwPowerCap",), ("SyncBoost",)])
    def test_its_load_alone_explains_the_rest(self, reasons):
        assert not was_throttled(state(*reasons, margin=1.0), state(*reasons))

    def test_unknown_states(self):
        assert not was_throttled(None, None)

    @pytest.mark.parametrize("n", [1, 10, 100])
    def test_repeating_always_ends(self, n):
        n_kept = n_discarded = 0
        while n_kept < n:
            if may_discard(n_discarded, n_kept):
                n_discarded += 1
            else:
                n_kept += 1
        assert n_discarded == n + 9

    def test_a_single_one_is_repeated(self):
        assert may_discard(0, 0)
