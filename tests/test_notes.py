"""Each note's rule on both sides of its threshold, and what it says."""

import inspect
import re
from dataclasses import replace

import numpy as np
import pytest

from gpubench import Note, benchmark, notes
from gpubench.compilation import Compilation
from gpubench.devices.nvml import DeviceState
from gpubench.rules import RULES, Evidence, diagnose
from gpubench.stats import summarize


def times(median_us, n=50):
    """Statistics of `n` times in microseconds that are all the same."""
    return summarize(np.full(n, median_us * 1e-6))


def evidence(gpu_us=100.0, cpu_us=10.0, **changes):
    """What a run leaves that no rule objects to, but for the changes."""
    gpu = () if gpu_us is None else (times(gpu_us),)
    quiet = Evidence(
        method="gated",
        asked="auto",
        cpu=times(cpu_us),
        gpu=gpu,
        devices=tuple(range(len(gpu))),
        floor=1e-6,
        clock_step=32e-9,
        first_call_time=1e-3,
    )
    return replace(quiet, **changes)


def codes(seen):
    return [note.code for note in diagnose(seen)]


def state(clock=1.98e9, *reasons):
    return DeviceState(
        sm_clock=clock, memory_clock=2.6e9, temperature=40.0, throttle_reasons=reasons
    )


def spread(relative, n=100, median_us=100.0):
    """Evidence of times whose middle half spreads so far, without order among them."""
    half = relative / 2
    x = median_us * 1e-6 * np.tile([1 - half, 1 - half, 1, 1 + half, 1 + half], n // 5)
    return evidence(gpu=(summarize(np.random.default_rng(1).permutation(x)),))


def ramp(relative, n=99):
    """Evidence of times whose last third is so much longer than the first."""
    x = 100e-6 * np.repeat([1.0, 1.0 + relative / 2, 1.0 + relative], n // 3)
    noise = np.random.default_rng(0).normal(0, 1e-9, n)
    return evidence(gpu=(summarize(x + noise),))


def correlated(coefficient, n=2000):
    """Evidence of times whose lag-1 correlation is near that."""
    rng = np.random.default_rng(2)
    x = np.zeros(n)
    for i in range(1, n):
        x[i] = coefficient * x[i - 1] + rng.normal()
    return evidence(gpu=(summarize(100e-6 * (1 + 0.001 * x)),))


SIDES = {
    "no-gpu-work": (evidence(1.09), evidence(1.11)),
    "no-activity": (
        evidence(0.0, method="cupti", floor=0.0),
        evidence(1.0, method="cupti", floor=0.0),
    ),
    "other-threads": (evidence(n_unattributed=1), evidence(n_unattributed=0)),
    "dropped-records": (evidence(n_dropped=1), evidence(n_dropped=0)),
    "near-floor": (evidence(9.9, cpu_us=1), evidence(10.1, cpu_us=1)),
    "coarse-clock": (evidence(1.59, clock_step=32e-9), evidence(1.61, clock_step=32e-9)),
    "launch-bound": (evidence(100, cpu_us=201), evidence(100, cpu_us=199)),
    "launch-included": (
        evidence(500, cpu_us=10.1, method="events", asked="events"),
        evidence(500, cpu_us=9.9, method="events", asked="events"),
    ),
    "unstable": (spread(0.11), spread(0.09)),
    "drifting": (ramp(0.021), ramp(0.019)),
    "autocorrelated": (correlated(0.6), correlated(0.4)),
    "slow-first-call": (
        evidence(100, cpu_us=900, first_call_time=51e-3),
        evidence(100, cpu_us=900, first_call_time=49e-3),
    ),
    "compiled-late": (
        evidence(compilations=(Compilation(("sum",), "nvrtc", 0.2),)),
        evidence(compilations=()),
    ),
    "expired-gate": (evidence(n_expired=1), evidence(n_expired=0)),
    "pool-growth": (evidence(pool_growth_bytes=1), evidence(pool_growth_bytes=0)),
    "throttled": (
        evidence(states=[(state(), state(1.98e9, "SwPowerCap"))]),
        evidence(states=[(state(), state())]),
    ),
    "clock-changed": (
        evidence(states=[(state(1.0e9), state(1.06e9))]),
        evidence(states=[(state(1.0e9), state(1.04e9))]),
    ),
}


class TestThresholds:
    @pytest.mark.parametrize("code", SIDES)
    def test_seen_on_one_side_only(self, code):
        beyond, within = SIDES[code]
        assert codes(beyond).count(code) == 1
        assert code not in codes(within)

    def test_each_rule_has_its_sides(self):
        assert list(SIDES) == [rule.__name__.replace("_", "-") for rule in RULES]

    def test_nothing_is_said_of_a_quiet_run(self):
        assert diagnose(evidence()) == ()

    @pytest.mark.parametrize(
        ("seen", "code"),
        [
            (evidence(1.9, clock_step=0.5e-6), "coarse-clock"),  # more it can't tell
            (evidence(1.05, floor=None), "coarse-clock"),
            # a first call is slow from 10 ms on, however short the others are
            (evidence(first_call_time=10.1e-3), "slow-first-call"),
            (evidence(None, cpu_us=10, first_call_time=10.1e-3), "slow-first-call"),
            (evidence(None, cpu=spread(0.2).gpu[0]), "unstable"),
            (evidence(states=[(state(1.06e9), state(1.0e9))]), "clock-changed"),
            (evidence(states=[(state(1e9, "HwSlowdown"), None)]), "throttled"),
            (ramp(-0.03), "drifting"),
        ],
    )
    def test_also_seen(self, seen, code):
        assert code in codes(seen)

    @pytest.mark.parametrize(
        ("seen", "code"),
        [
            (evidence(2.1, clock_step=0.5e-6), "no-gpu-work"),
            (evidence(1.0, method="events"), "no-gpu-work"),
            (evidence(1.0), "near-floor"),  # an empty call has one note, not four
            (evidence(1.0), "coarse-clock"),
            (evidence(1.0), "launch-bound"),
            (evidence(5.0, floor=None), "near-floor"),
            (evidence(0.5, clock_step=None), "coarse-clock"),
            (evidence(None, cpu_us=0.1), "coarse-clock"),
            (evidence(100, cpu_us=900, method="graph"), "launch-bound"),
            (evidence(100, cpu_us=90), "launch-included"),
            (evidence(first_call_time=9.9e-3), "slow-first-call"),
            (evidence(first_call_time=None), "slow-first-call"),
            (evidence(states=[(None, None)]), "throttled"),
            (evidence(states=[(state(1e9), None)]), "clock-changed"),
            (evidence(states=[(state(0), state(1e9))]), "clock-changed"),
            (evidence(gpu=(summarize([1e-6, 2e-6, 3e-6]),)), "unstable"),
            (evidence(gpu=(times(0),)), "unstable"),
            (evidence(gpu=(summarize(np.arange(1, 30) * 1e-4),)), "drifting"),
            (evidence(gpu=(summarize(np.arange(1, 30) * 1e-4),)), "autocorrelated"),
        ],
    )
    def test_not_seen(self, seen, code):
        assert code not in codes(seen)

    def test_two_steps_of_the_clock_are_no_instability(self):
        seen = spread(0.2, median_us=1.0)
        assert "unstable" in codes(replace(seen, clock_step=None))
        assert "unstable" not in codes(replace(seen, clock_step=0.11e-6))

    def test_the_busiest_device_counts(self):
        idle, busy = times(1.0), times(100.0)
        both = evidence(gpu=(idle, busy), devices=(0, 1))
        assert both.longest is busy
        assert diagnose(both) == ()
        assert evidence(None, cpu_us=7).longest.median == pytest.approx(7e-6)

    def test_the_device_at_fault_is_named(self):
        seen = evidence(
            gpu=(times(100), times(100)),
            devices=(2, 5),
            states=[(state(), state()), (state(1e9), state(2e9, "SwPowerCap"))],
        )
        (throttled, changed) = diagnose(seen)
        assert "GPU-5 was slowed down (SwPowerCap)" in throttled.message
        assert "GPU-5's clock went from 1000 to 2000 MHz" in changed.message


MADE = {
    "no-gpu": notes.no_gpu("CuPy is not installed"),
    "no-gate": notes.no_gate("launches block"),
    "not-probed": notes.not_probed("n_warmup=0 leaves no call for that"),
    "no-context-events": notes.no_context_events("the driver is old"),
    "waits-inside": notes.waits_inside(),
    "gaps-included": notes.gaps_included(),
    "overlapping-regions": notes.overlapping_regions("load", "solve"),
    "side-stream": notes.side_stream(1, 101.4e-6, 1.3e-6),
    "other-stream": notes.other_stream("PyTorch's current stream"),
    "no-graph": notes.no_graph("it allocates"),
    "no-cold-cache": notes.cold_without_gpu(),
    "interrupted": notes.interrupted(7),
    "sweep-interrupted": notes.sweep_interrupted(3, 7),
    "thermal-wait": notes.waited_for_heat(4, 2.5, 1, "slowed down (HwThermalSlowdown)"),
    "methods-differ": notes.methods_differ({"a": "gated", "b": "events"}),
    "rounds-differ": notes.rounds_differ(["gated", "events"]),
    "imbalanced": notes.imbalanced(2, 3e-3, 0.25),
    "shared-gpu": notes.shared_gpu([0, 2], "GPU-1"),
    "fewer-blocks": notes.fewer_blocks(15, 20),
    "not-interleaved": notes.not_interleaved(),
    "not-checked": notes.not_checked({"cub": "can't be sent"}),
    "no-accelerators": notes.no_accelerators("CuPy is not installed"),
    "kernels-unknown": notes.kernels_unknown("it can't be captured"),
    "repeated-setting": notes.repeated_settings(["CUB", "cub,cub"]),
}


class TestTexts:
    @pytest.mark.parametrize(
        ("code", "figures"),
        [
            ("no-gpu-work", ["1.09 us", "1.00 us"]),
            ("near-floor", ["9.90 us", "1.00 us", "graph"]),
            ("coarse-clock", ["32.0 ns", "2.0%", "graph"]),
            ("launch-bound", ["201 us", "100 us"]),
            ("launch-included", ["500 us", "10.1 us", "gated"]),
            ("unstable", ["11%"]),
            ("drifting", ["2.1%", "slower"]),
            ("autocorrelated", ["lag-1 correlation 0.5"]),
            ("slow-first-call", ["51.0 ms", "1.00 ms"]),
            ("compiled-late", ["200 ms", "(sum)"]),
            ("expired-gate", ["1 of 50 samples"]),
            ("pool-growth", ["0.0 MiB"]),
            ("throttled", ["GPU-0", "SwPowerCap"]),
            ("clock-changed", ["GPU-0", "1000", "1060 MHz"]),
        ],
    )
    def test_figures_and_units_of_a_rule(self, code, figures):
        (note,) = [note for note in diagnose(SIDES[code][0]) if note.code == code]
        for figure in figures:
            assert figure in str(note)

    @pytest.mark.parametrize(
        ("code", "figures"),
        [
            ("no-gpu", ["CuPy is not installed"]),
            ("no-gate", ["launches block"]),
            ("not-probed", ["n_warmup=0"]),
            ("no-context-events", ["the driver is old"]),
            ("waits-inside", ["100 ms", ".get()"]),
            ("side-stream", ["GPU-1", "101 us", "1.30 us"]),
            ("other-stream", ["PyTorch's current stream"]),
            ("no-graph", ["it allocates"]),
            ("no-cold-cache", ["cache='cold'"]),
            ("methods-differ", ["a gated, b events", "method='events'"]),
            ("rounds-differ", ["(gated, events)", "gpu_method = 'events'"]),
            ("imbalanced", ["Rank 2", "3.00 ms", "25%"]),
            ("shared-gpu", ["Ranks 0, 2", "GPU-1"]),
            ("fewer-blocks", ["15 of 20"]),
            ("not-interleaved", ["compare()"]),
            ("not-checked", ["cub's can't be sent"]),
            ("no-accelerators", ["CuPy is not installed", "CUPY_ACCELERATORS"]),
            ("kernels-unknown", ["it can't be captured", "gpubench[activity]"]),
            ("repeated-setting", ["'CUB', 'cub,cub'"]),
            ("interrupted", ["taken by then: 7"]),
        ],
    )
    def test_figures_and_units_of_what_a_run_meets(self, code, figures):
        assert MADE[code].code == code
        for figure in figures:
            assert figure in str(MADE[code])

    def test_advice_depends_on_the_method(self):
        advice = {
            asked: diagnose(evidence(5.0, cpu_us=1, method=method, asked=asked))[0].advice
            for asked, method in [
                ("events", "events"),
                ("gated", "gated"),
                ("graph", "graph"),
                ("auto", "events"),
            ]
        }
        assert "method='gated'" in advice["events"]
        assert "method='cupti'" in advice["gated"]
        assert "method='graph'" in advice["gated"]
        assert "method='cupti'" in advice["graph"]
        assert "time several calls" in advice["graph"]
        assert "Time several calls" in advice["auto"]  # gates had their chance

    def test_a_drift_downwards_is_faster(self):
        (note,) = [note for note in diagnose(ramp(-0.03)) if note.code == "drifting"]
        assert "3.0% faster" in note.message

    @pytest.mark.parametrize("code", [*SIDES, *MADE])
    def test_each_is_one_line_of_whole_sentences(self, code):
        note = MADE.get(code) or next(n for n in diagnose(SIDES[code][0]) if n.code == code)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*: [A-Z][^\n]*\.", str(note))
        assert ".." not in str(note)
        assert note.message.endswith(".")
        assert note.advice == "" or note.advice.endswith(".")

    def test_each_kind_of_note_has_a_code_of_its_own(self):
        all_codes = [*SIDES, *MADE]
        assert len(set(all_codes)) == len(all_codes)

    def test_each_kind_of_note_is_tested_here(self):
        made = [
            name
            for name, function in inspect.getmembers(notes, inspect.isfunction)
            if function.__module__ == notes.__name__
            and function not in RULES
            and function.__annotations__.get("return") == "Note"
        ]
        assert len(made) == len(MADE)

    def test_a_note_without_advice_ends_with_its_message(self):
        assert str(Note("code", "Seen.")) == "code: Seen."
        assert str(Note("code", "Seen.", "Do.")) == "code: Seen. Do."


def test_a_run_says_each_thing_once(gpu):
    result = benchmark(gpu.launch, (5e-6,), n_repeat=40)
    found = [note.code for note in result.notes]
    assert len(set(found)) == len(found)
    assert "near-floor" in found
