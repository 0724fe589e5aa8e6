"""Regions of a function, timed each by itself on a simulated GPU."""

import asyncio
import math
import threading
import time

import pytest

import gpubench
from gpubench import ArgumentError, UnsupportedError
from gpubench.call import TimedCall
from gpubench.devices import current_platform
from gpubench.devices.sharing import shared
from gpubench.devices.simulated.gpu import SimulatedDevice, SimulatedGpu
from gpubench.session import Budget
from gpubench.sweeps.region_session import RegionSession
from gpubench.sweeps.regions import annotate, timing
from gpubench.timers.cupti import RECORDED

FLOOR = 1.25e-6
GAP = 0.9e-6


@pytest.fixture
def gpu():
    with gpubench.simulated_gpu(jitter=0) as gpu:
        yield gpu


class Measured:
    """The last of `n` samples of each region of a function, in seconds, and what is known."""

    def __init__(self, func, method="gated", n=3, n_devices=1):
        platform = current_platform()
        devices = [platform.device(i) for i in range(min(n_devices, platform.device_count()))]
        with platform.preserved() as home, shared(platform, RECORDED) as share:
            call = TimedCall(func, (), {}, None, (), devices, home)
            used = share if method == "cupti" else None
            self.session = RegionSession(call, platform, devices, home, method, used)
            self.session.warm_up(2, Budget(math.inf))
            self.session.choose()
            self.restarts = 0
            for _ in range(n):
                self.samples = self.session.take()
                self.restarts += self.session.must_restart()
        self.regions = self.session.regions

    def gpu(self, name, device=0):
        return float(self.samples[name].gpu[device, 0])

    def codes(self, name):
        return [note.code for note in self.regions[name].notes]


class TestTimes:
    def test_each_region_by_itself(self, gpu):
        def f():
            gpu.launch(500e-6)
            with annotate("a"):
                gpu.launch(10e-6)
            with annotate("b"):
                gpu.launch(20e-6)

        seen = Measured(f)
        assert list(seen.regions) == ["a", "b"]
        assert seen.gpu("a") == pytest.approx(10e-6 + GAP + FLOOR, abs=0.1e-6)
        assert seen.gpu("b") == pytest.approx(20e-6 + GAP + FLOOR, abs=0.1e-6)
        assert seen.regions["a"].method == "gated"
        assert seen.regions["a"].floor == pytest.approx(FLOOR, abs=0.1e-6)
        assert seen.codes("a") == []

    def test_nested_regions_share_the_outer_gate(self, gpu):
        def f():
            with annotate("outer"):
                gpu.launch(5e-6)
                with annotate("inner"):
                    gpu.launch(10e-6)

        seen = Measured(f)
        assert seen.gpu("inner") == pytest.approx(10e-6 + GAP + FLOOR, abs=0.1e-6)
        assert seen.gpu("outer") == pytest.approx(15e-6 + 2 * (GAP + FLOOR) + FLOOR, abs=0.2e-6)

    def test_entries_are_summed(self, gpu):
        def f():
            for _ in range(3):
                with annotate("a"):
                    gpu.launch(10e-6)

        seen = Measured(f)
        assert seen.regions["a"].entries == 3
        assert seen.gpu("a") == pytest.approx(3 * (10e-6 + GAP + FLOOR), abs=0.3e-6)
        assert seen.regions["a"].floor == pytest.approx(3 * FLOOR, abs=0.2e-6)

    def test_a_region_in_itself_counts_once(self, gpu):
        @annotate("a")
        def f(depth=2):
            gpu.launch(10e-6)
            if depth:
                f(depth - 1)

        seen = Measured(f)
        assert seen.regions["a"].entries == 1
        assert 30e-6 < seen.gpu("a") < 45e-6

    def test_a_decorated_function_is_known_by_its_name(self, gpu):
        @annotate()
        def step():
            gpu.launch(10e-6)

        assert list(Measured(lambda: step()).regions) == ["step"]

    def test_identity_decides_not_the_order_of_launches(self, gpu):
        n_runs = 0

        def f():
            nonlocal n_runs
            n_runs += 1
            names = ["a", "b"] if n_runs % 2 else ["b", "a"]
            for name in names:
                with annotate(name):
                    for _ in range(5 if name == "a" else 1):
                        gpu.launch(10e-6)

        seen = Measured(f, n=4)
        assert seen.gpu("a") == pytest.approx(50e-6, rel=0.15)
        assert seen.gpu("b") == pytest.approx(10e-6 + GAP + FLOOR, abs=0.1e-6)

    def test_threads(self, gpu):
        def work():
            with gpu.stream(), annotate("worker"):
                gpu.launch(30e-6)

        def f():
            with annotate("main"):
                gpu.launch(10e-6)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        seen = Measured(f)
        assert seen.gpu("worker") == pytest.approx(30e-6 + GAP, abs=5e-6)
        assert seen.gpu("main") == pytest.approx(10e-6 + GAP + FLOOR, abs=0.1e-6)

    def test_a_region_with_a_stream_of_its_own(self, gpu):
        side = gpu.stream()

        def f():
            with annotate("a"), side:
                gpu.launch(100e-6)

        seen = Measured(f)
        assert seen.gpu("a") == pytest.approx(101e-6, abs=2e-6)
        assert seen.codes("a") == ["side-stream"]

    def test_two_devices(self):
        with gpubench.simulated_gpu(n_devices=2, jitter=0) as gpu:

            def f():
                with annotate("a"):
                    gpu.launch(10e-6)
                    gpu.use_device(1)
                    gpu.launch(40e-6)
                    gpu.use_device(0)

            seen = Measured(f, n_devices=2)
        assert seen.gpu("a", 0) == pytest.approx(10e-6 + GAP + FLOOR, abs=0.2e-6)
        assert seen.gpu("a", 1) == pytest.approx(40e-6 + GAP + FLOOR, abs=0.2e-6)

    def test_tasks(self, gpu):
        async def part(name, duration):
            with annotate(name):
                gpu.launch(duration)
                await asyncio.sleep(0)

        async def both():
            await asyncio.gather(part("a", 10e-6), part("b", 20e-6))

        seen = Measured(lambda: asyncio.run(both()), method="cupti")
        assert set(seen.regions) == {"a", "b"}


class TestMethods:
    def test_records(self, gpu):
        def f():
            with annotate("outer"):
                gpu.launch(5e-6, "x")
                with annotate("inner"):
                    gpu.launch(10e-6, "y")

        seen = Measured(f, method="cupti")
        assert seen.gpu("inner") == pytest.approx(10e-6, abs=2e-9)
        assert seen.gpu("outer") == pytest.approx(15e-6 + GAP + 2 * FLOOR, abs=1.5e-6)
        assert float(seen.samples["outer"].busy[0, 0]) == pytest.approx(15e-6, abs=4e-9)
        assert set(seen.samples["outer"].kernels) == {"x", "y"}
        assert set(seen.samples["inner"].kernels) == {"y"}
        assert seen.regions["inner"].floor == 0

    def test_plain_events_include_launches(self, gpu):
        def f():
            with annotate("a"):
                gpu.launch(10e-6)

        seen = Measured(f, method="events")
        assert seen.gpu("a") > 13e-6
        assert seen.regions["a"].method == "events"

    def test_the_hosts_clock(self, gpu):
        def f():
            with annotate("a"):
                time.sleep(2e-3)

        seen = Measured(f, method="host")
        assert seen.samples["a"].gpu.shape == (0, 1)
        assert 2e-3 <= seen.samples["a"].cpu[0] < 20e-3
        assert seen.regions["a"].method == "host"

    def test_without_a_gpu(self, no_cupy):
        def f():
            with annotate("a"):
                time.sleep(2e-3)

        platform = current_platform()
        with platform.preserved() as home:
            session = RegionSession(
                TimedCall(f, (), {}, None, (), (), home), platform, (), home, "auto"
            )
            session.warm_up(1, Budget(math.inf))
            session.choose()
            assert 2e-3 <= session.take()["a"].cpu[0] < 20e-3
        assert session.regions["a"].method == "host"

    def test_a_graph_is_not_captured(self, gpu):
        def f():
            with annotate("a"):
                gpu.launch(10e-6)

        seen = Measured(f, method="graph")
        assert seen.codes("a") == ["no-graph"]
        assert seen.regions["a"].method == "gated"

    def test_no_gate(self, gpu, monkeypatch):
        def refuse(self):
            raise UnsupportedError("not today")

        monkeypatch.setattr(SimulatedGpu, "gate", refuse)

        def f():
            with annotate("a"):
                gpu.launch(10e-6)

        seen = Measured(f)
        assert seen.codes("a") == ["no-gate"]
        assert seen.regions["a"].method == "events"

    def test_no_context_events(self, gpu, monkeypatch):
        def refuse(self):
            raise UnsupportedError("old driver")

        monkeypatch.setattr(SimulatedDevice, "every_stream", refuse)

        def f():
            with annotate("a"):
                gpu.launch(10e-6)

        seen = Measured(f)
        assert seen.codes("a") == ["no-context-events"]
        assert seen.gpu("a") == pytest.approx(10e-6 + GAP + FLOOR, abs=0.1e-6)


class TestCrossing:
    def test_threads_that_are_in_regions_at_once(self, gpu):
        def work(name, seconds):
            with annotate(name):
                gpu.launch(20e-6)
                time.sleep(seconds)

        def f():
            threads = [
                threading.Thread(target=work, args=each) for each in (("a", 5e-3), ("b", 8e-3))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        seen = Measured(f)
        assert "overlapping-regions" in seen.codes("a")
        assert "overlapping-regions" in seen.codes("b")

    def test_blocks_that_cross_in_one_thread(self, gpu):
        def f():
            a, b = annotate("a"), annotate("b")
            a.__enter__()
            gpu.launch(10e-6)
            b.__enter__()
            a.__exit__(None, None, None)
            b.__exit__(None, None, None)

        assert "overlapping-regions" in Measured(f).codes("a")

    def test_those_that_nest_do_not_cross(self, gpu):
        def f():
            with annotate("a"):
                with annotate("b"):
                    gpu.launch(10e-6)
                with annotate("c"):
                    gpu.launch(10e-6)
            with annotate("d"):
                gpu.launch(10e-6)

        seen = Measured(f)
        assert [seen.codes(name) for name in "abcd"] == [[]] * 4

    def test_a_block_that_is_left_in_a_later_run(self, gpu):
        def steps():
            while True:
                with annotate("load"):
                    gpu.launch(10e-6)
                    yield

        running = steps()
        seen = Measured(lambda: next(running))
        assert seen.samples == {}
        running.close()

    def test_the_floor_counts_the_events_of_regions_inside(self, gpu):
        def f():
            with annotate("outer"):
                for _ in range(10):
                    with annotate("inner"):
                        pass

        seen = Measured(f)
        assert seen.gpu("outer") == pytest.approx(seen.regions["outer"].floor, rel=0.1)

    def test_work_of_other_threads_in_a_region(self, gpu):
        def f():
            with annotate("a"):
                thread = threading.Thread(target=gpu.launch, args=(40e-6,))
                thread.start()
                thread.join()
                gpu.launch(10e-6)

        seen = Measured(f, method="cupti")
        assert seen.samples["a"].n_unattributed == 1


class TestWaiting:
    def test_only_the_region_that_waits_loses_its_gate(self, gpu):
        def f():
            with annotate("waits"):
                gpu.launch(10e-6)
                gpu.synchronize()
            with annotate("runs"):
                gpu.launch(10e-6)

        seen = Measured(f)
        assert seen.regions["waits"].method == "events"
        assert seen.codes("waits") == ["waits-inside"]
        assert seen.regions["runs"].method == "gated"
        assert seen.restarts == 0

    def test_a_region_inside_that_waits(self, gpu):
        def f():
            with annotate("outer"):
                with annotate("waits"):
                    gpu.launch(10e-6)
                    gpu.synchronize()
                with annotate("runs"):
                    gpu.launch(10e-6)

        seen = Measured(f, n=6)
        assert seen.regions["outer"].method == "events"
        assert seen.regions["waits"].method == "events"
        assert seen.regions["runs"].method == "gated"

    def test_waiting_that_begins_late_starts_anew(self, gpu):
        n_runs = 0

        def f():
            nonlocal n_runs
            n_runs += 1
            with annotate("a"):
                gpu.launch(10e-6)
                if n_runs > 12:
                    gpu.synchronize()

        seen = Measured(f, n=12)
        assert seen.restarts == 1
        assert seen.regions["a"].method == "events"
        assert seen.codes("a") == ["waits-inside"]

    def test_records_of_a_region_that_waits(self, gpu):
        def f():
            with annotate("a"):
                gpu.launch(10e-6)
                gpu.synchronize()

        seen = Measured(f, method="cupti")
        assert seen.codes("a") == ["gaps-included"]
        assert seen.gpu("a") == pytest.approx(10e-6, abs=2e-9)

    def test_notes_are_not_said_twice(self, gpu):
        n_runs = 0

        def f():
            nonlocal n_runs
            n_runs += 1
            with annotate("a"):
                gpu.launch(10e-6)
                if n_runs > 12:
                    gpu.synchronize()

        seen = Measured(f, method="graph", n=12)
        assert seen.restarts == 1
        assert seen.codes("a") == ["no-graph", "waits-inside"]


def test_a_region_that_is_entered_late_is_described_too(gpu):
    n_runs = 0

    def f():
        nonlocal n_runs
        n_runs += 1
        with annotate("early"):
            gpu.launch(10e-6)
        if n_runs > 9:
            with annotate("late"):
                gpu.launch(10e-6)

    seen = Measured(f)
    assert seen.regions["late"].method == "gated"
    assert seen.regions["late"].floor == pytest.approx(FLOOR, abs=0.1e-6)
    assert seen.regions["late"].n_warmup > 0


class TestErrors:
    def test_an_exception_opens_the_gate(self, gpu):
        fails = False

        def f():
            with annotate("a"):
                gpu.launch(10e-6)
                if fails:
                    raise KeyError("mine")

        session = Measured(f).session
        fails = True
        begin = time.perf_counter()
        with pytest.raises(KeyError, match="mine"):
            session.take()
        assert time.perf_counter() - begin < 0.09
        fails = False
        assert session.take()["a"].gpu[0, 0] < 15e-6

    def test_a_region_that_is_never_left(self, gpu):
        def f():
            annotate("a").__enter__()
            gpu.launch(10e-6)

        begin = time.perf_counter()
        seen = Measured(f)
        assert seen.samples == {}
        assert time.perf_counter() - begin < 2

    def test_a_region_that_fails_to_begin_leaves_the_gate_open(self, gpu, monkeypatch):
        def f():
            with annotate("a"):
                gpu.launch(10e-6)

        session = Measured(f).session

        def fail(self):
            raise UnsupportedError("no event")

        monkeypatch.setattr(SimulatedDevice, "create_event", fail)
        with pytest.raises(UnsupportedError, match="no event"):
            session.take()
        begin = time.perf_counter()
        gpu.synchronize()
        assert time.perf_counter() - begin < 0.05

    def test_regions_need_a_name(self):
        with pytest.raises(ArgumentError, match="must not be empty"):
            annotate("")
        with pytest.raises(ArgumentError, match="needs a name"), annotate():
            pass
        with pytest.raises(ArgumentError, match="name must be a"):
            annotate(3)


class TestElsewhere:
    def test_outside_of_a_sweep_it_is_a_range(self, gpu):
        with gpubench.record_activity() as trace, annotate("a"):
            pass
        recording = trace.recording
        assert [recording.names[row["name"]] for row in recording.ranges] == ["a"]

    def test_a_clock_is_put_back(self, gpu):
        class Clock:
            def __init__(self):
                self.log = []

            def enter(self, name, outer):
                self.log.append(f"enter {name}")

            def leave(self, entry):
                self.log.append("leave")

        outer, inner = Clock(), Clock()
        with timing(outer):
            with timing(inner), annotate("a"):
                pass
            with annotate("b"):
                pass
        with annotate("c"):
            pass
        assert inner.log == ["enter a", "leave"]
        assert outer.log == ["enter b", "leave"]
