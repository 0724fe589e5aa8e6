"""The timers: the order of what they do, on a recording device, and the times that result."""

import time

import numpy as np
import pytest
from recording_device import RecordingGpu

import gpubench
from gpubench.devices import simulated
from gpubench.timers.choose import Subject, choose_timer, events_choice
from gpubench.timers.events import EventsTimer
from gpubench.timers.floor import clock_step, floor_time
from gpubench.timers.gated import GatedTimer
from gpubench.timers.graph import CALLS_PER_GRAPH, GraphTimer
from gpubench.timers.host import HostTimer
from gpubench.timers.probe import N_PROBES


@pytest.fixture
def recorder():
    return RecordingGpu()


@pytest.fixture
def pair():
    return RecordingGpu(n_devices=2)


def streams(gpu):
    return [device.stream for device in gpu.devices]


def gated(gpu, **sharing):
    return GatedTimer(streams(gpu), gpu.gate(), gpu.go_home, **sharing)


def choose(gpu, call, method="auto", **subject):
    """Choose a timer for a call; what it is chosen by is not in the log."""
    subject = Subject(lambda: call, **subject)
    choice = choose_timer(method, subject, gpu, gpu.devices, gpu.go_home)
    gpu.log.clear()
    return choice


def codes(choice):
    return [note.code for note in choice.notes]


def fail():
    raise KeyError("mine")


class TestHostTimer:
    def test_only_the_call_is_timed_and_the_device_waited_for(self, recorder):
        samples = HostTimer(recorder.devices).take(recorder.launch, 2)
        assert recorder.log == ["call", "synchronize device"] * 2
        assert samples.cpu.shape == (2,)
        assert samples.gpu.shape == (0, 2)
        assert samples.valid

    def test_without_devices(self):
        samples = HostTimer().take(lambda: time.sleep(2e-3), 3)
        assert samples.cpu.min() >= 2e-3


class TestEventsTimer:
    def test_order(self, recorder):
        samples = EventsTimer(streams(recorder), recorder.go_home).take(recorder.launch, 2)
        assert recorder.log == 2 * [
            "record on stream",
            "go home",
            "call",
            "record on stream",
            "synchronize stream",
        ] + ["go home"]
        assert samples.gpu == pytest.approx(np.array([[1e-3, 1e-3]]))
        assert samples.cpu.shape == (2,)

    def test_every_device_has_its_row(self, pair):
        samples = EventsTimer(streams(pair), pair.go_home).take(pair.launch, 3)
        assert samples.gpu == pytest.approx(np.full((2, 3), 1e-3))
        recorded = [entry for entry in pair.log if entry.startswith("record")]
        assert recorded.count("record on stream") == recorded.count("record on stream 1") == 6
        calls = [i for i, entry in enumerate(pair.log) if entry == "call"]
        assert all(pair.log[i - 1] == "go home" for i in calls)


class TestGatedTimer:
    def test_order(self, recorder):
        samples = gated(recorder).take(recorder.launch, 1)
        log = recorder.log[recorder.log.index("hold stream") - 1 :]
        assert log == [
            "close",
            "hold stream",
            "record on stream",
            "go home",
            "call",
            "record on stream",
            "open",
            "synchronize stream",
            "go home",
        ]
        assert samples.gpu == pytest.approx(np.array([[1e-3]]))
        assert samples.valid

    def test_one_gate_holds_every_device(self, pair):
        samples = gated(pair).take(pair.launch, 1)
        holds = [pair.log.index(f"hold {stream.label}") for stream in streams(pair)]
        records = [pair.log.index(f"record on {stream.label}") for stream in streams(pair)]
        assert max(holds) < min(records) < pair.log.index("call")
        for stream in streams(pair):
            assert pair.log.index(f"synchronize {stream.label}") > pair.log.index("call")
        assert samples.gpu.shape == (2, 1)

    def test_shared_gates_hold_so_many_calls_each(self, recorder):
        timer = gated(recorder, samples_per_gate=4, gates_per_take=3)
        durations = iter(range(1, 11))
        samples = timer.take(lambda: recorder.launch(1e-3 * next(durations)), 10)
        assert samples.gpu == pytest.approx(1e-3 * np.arange(1, 11)[np.newaxis])
        assert samples.cpu.shape == (10,)
        per_gate = [part.count("call") for part in gates(recorder.log)]
        assert per_gate == [4, 4, 2]

    def test_a_take_has_room_for_several_shared_gates(self, recorder):
        assert gated(recorder).samples_per_take == 1
        shared = gated(recorder, samples_per_gate=4, gates_per_take=3)
        assert shared.samples_per_take == 12
        assert shared.take(recorder.launch, 12).gpu.shape == (1, 12)

    def test_an_expired_gate_makes_the_samples_invalid(self, recorder):
        recorder.expires = True
        assert not gated(recorder).take(recorder.launch, 1).valid

    @pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
    def test_whatever_the_call_raises_the_gate_opens_and_streams_drain(self, pair, error):
        def interrupted():
            raise error("mine")

        with pytest.raises(error, match="mine"):
            gated(pair).take(interrupted, 1)
        last_hold = max(i for i, entry in enumerate(pair.log) if entry.startswith("hold"))
        end = pair.log[last_hold:]
        assert end.index("open") < end.index("synchronize stream")
        assert "synchronize stream 1" in end
        assert "close" not in end

    def test_the_calls_exception_wins_over_one_of_synchronizing(self, recorder, monkeypatch):
        def broken():
            raise RuntimeError("the device is gone")

        monkeypatch.setattr(recorder.devices[0].stream, "synchronize", broken)
        with pytest.raises(KeyError, match="mine"):
            gated(recorder).take(fail, 1)
        with pytest.raises(RuntimeError, match="gone"):
            gated(recorder).take(recorder.launch, 1)

    def test_nothing_of_the_host_is_in_the_gpus_time(self, gpu):
        def call():
            time.sleep(2e-3)
            gpu.launch(10e-6)
            time.sleep(2e-3)

        timer = GatedTimer([gpu.current_stream(0)], gpu.gate(), lambda: None)
        samples = timer.take(call, 1)
        expected = simulated.EVENT_TIME + simulated.LAUNCH_GAP + 10e-6
        assert samples.valid
        assert samples.gpu[0, 0] == pytest.approx(expected, abs=64e-9)
        assert samples.cpu[0] >= 4e-3


def gates(log):
    """What stands between the holds of a gate and its opening, for each gate."""
    parts, inside = [], False
    for entry in log:
        if entry.startswith("hold") and not inside:
            inside = True
            parts.append([])
        elif entry == "open":
            inside = False
        elif inside:
            parts[-1].append(entry)
    return parts


class TestGraphTimer:
    def test_captured_once_and_replayed_for_each_sample(self, recorder):
        timer = GraphTimer(recorder.devices[0], recorder.gate(), recorder.go_home)
        call = recorder.launch
        assert timer.capture(call) is recorder.devices[0].stream
        samples = timer.take(call, 3)
        assert recorder.log.count("capture") == 1
        assert [part.count("launch graph") for part in gates(recorder.log)] == [1, 1, 1]
        assert samples.gpu == pytest.approx(np.full((1, 3), 1e-3))
        assert samples.cpu.shape == (3,)

    def test_a_replay_is_so_many_calls(self, recorder):
        n_calls = []
        timer = GraphTimer(recorder.devices[0], recorder.gate(), recorder.go_home)
        timer.capture(lambda: n_calls.append(1))
        assert len(n_calls) == CALLS_PER_GRAPH

    def test_a_call_that_was_not_captured_is_so_at_its_first_take(self, recorder):
        timer = GraphTimer(recorder.devices[0], recorder.gate(), recorder.go_home)
        timer.take(recorder.launch, 1)
        timer.take(lambda: recorder.launch(2e-3), 1)
        assert recorder.log.count("capture") == 2

    def test_nothing_captured_has_no_stream(self, recorder):
        timer = GraphTimer(recorder.devices[0], recorder.gate(), recorder.go_home)
        assert timer.capture(lambda: None) is None

    def test_a_refused_capture_is_passed_on(self, recorder):
        recorder.devices[0].capture_refusal = "it allocates"
        timer = GraphTimer(recorder.devices[0], recorder.gate(), recorder.go_home)
        with pytest.raises(gpubench.UnsupportedError, match="it allocates"):
            timer.capture(recorder.launch)

    def test_one_expired_gate_makes_the_samples_invalid(self, recorder):
        timer = GraphTimer(recorder.devices[0], recorder.gate(), recorder.go_home)
        assert timer.take(recorder.launch, 2).valid
        recorder.expires = True
        assert not timer.take(recorder.launch, 2).valid


class TestFloor:
    def test_of_the_host_is_short_and_not_negative(self):
        assert 0 <= floor_time(HostTimer(), ()) < 1e-3

    def test_of_a_gate_is_the_time_between_two_events(self, gpu):
        used = (gpu.current_stream(0),)
        timer = GatedTimer(used, gpu.gate(), lambda: None)
        floor = floor_time(timer, used)
        assert floor == pytest.approx(simulated.EVENT_TIME, abs=gpu.clock_step)

    def test_is_measured_once_for_each_kind_of_timer_and_stream(self, recorder):
        used = tuple(streams(recorder))
        floor_time(gated(recorder), used)
        recorder.log.clear()
        floor_time(gated(recorder), used)
        assert recorder.log == []
        floor_time(EventsTimer(used, recorder.go_home), used)
        assert "record on stream" in recorder.log
        recorder.log.clear()
        context = recorder.devices[0].context
        floor_time(GatedTimer([context], recorder.gate(), recorder.go_home), (context,))
        assert "hold every stream" in recorder.log

    def test_is_the_slowest_devices(self):
        with gpubench.simulated_gpu(n_devices=2, jitter=0) as gpu:
            used = tuple(gpu.device(i).default_stream for i in (0, 1))
            floor = floor_time(GatedTimer(used, gpu.gate(), lambda: None), used)
        assert floor >= simulated.EVENT_TIME - gpu.clock_step

    @pytest.mark.parametrize("step", [32e-9, 0.5e-6, 1e-6])
    def test_step_of_the_clock_is_found(self, step):
        with gpubench.simulated_gpu(clock_step=step, jitter=0) as gpu:
            assert clock_step(gpu.current_stream(0)) == pytest.approx(step, rel=1e-3)

    def test_a_clock_that_shows_no_step_is_unknown(self, recorder):
        assert clock_step(recorder.devices[0].stream) is None


class TestChoice:
    def test_without_devices_the_host_is_timed(self, recorder):
        choice = choose_timer("auto", Subject(lambda: fail), recorder, (), recorder.go_home)
        assert (choice.timer.method, choice.streams, choice.notes) == ("host", (), ())

    @pytest.mark.parametrize(
        ("asked", "method"),
        [("auto", "gated"), ("gated", "gated"), ("events", "events"), ("host", "host")],
    )
    def test_what_is_asked_for_is_taken_where_it_works(self, recorder, asked, method):
        choice = choose(recorder, recorder.launch, asked)
        assert (choice.timer.method, choice.notes) == (method, ())

    def test_graph(self, recorder):
        choice = choose(recorder, recorder.launch, "graph")
        assert (choice.timer.method, choice.notes) == ("graph", ())
        assert choice.timer.take(recorder.launch, 1).gpu == pytest.approx(np.array([[1e-3]]))

    @pytest.mark.parametrize("asked", ["auto", "gated", "graph", "events"])
    def test_without_a_gate_plain_events_are_taken(self, recorder, asked):
        recorder.refusal = "launches block"
        choice = choose(recorder, fail, asked)
        assert choice.timer.method == "events"
        assert choice.n_calls == 0
        assert codes(choice) == ([] if asked == "events" else ["no-gate"])
        assert all("launches block" in str(note) for note in choice.notes)

    def test_a_call_that_may_not_be_probed_is_not_made(self, recorder):
        choice = choose(recorder, fail, unprobed="asked so")
        assert (choice.timer.method, codes(choice)) == ("events", ["not-probed"])
        assert choose(recorder, fail, "events", unprobed="asked so").notes == ()

    def test_a_call_that_waits_is_timed_by_plain_events(self, recorder):
        recorder.expires = True
        choice = choose(recorder, recorder.launch)
        assert (choice.timer.method, codes(choice)) == ("events", ["waits-inside"])

    def test_without_context_events_the_stream_is_gated(self, recorder):
        recorder.devices[0].is_blind = True
        choice = choose(recorder, recorder.launch)
        assert (choice.timer.method, codes(choice)) == ("gated", ["no-context-events"])
        assert choice.streams == (recorder.devices[0].stream,)
        assert "this recorder is blind" in str(choice.notes[0])

    def test_probes_are_counted(self, recorder):
        n_calls = []

        def call():
            n_calls.append(1)
            recorder.launch()

        choice = choose(recorder, call)
        assert choice.n_calls == len(n_calls) == N_PROBES

    def test_many_samples_share_gates(self, gpu):
        choice = choose_simulated(gpu, lambda: gpu.launch(1e-6), many=True)
        assert choice.timer.samples_per_gate > 1
        assert choose_simulated(gpu, lambda: gpu.launch(1e-6)).timer.samples_per_gate == 1

    def test_long_calls_have_gates_of_their_own(self, gpu):
        choice = choose_simulated(gpu, lambda: gpu.launch(2e-3), many=True)
        assert choice.timer.samples_per_gate == 1

    def test_what_is_prepared_before_each_call_cannot_share_gates(self, gpu):
        choice = choose_simulated(gpu, lambda: gpu.launch(1e-6), many=True, is_fixed=False)
        assert choice.timer.samples_per_gate == 1

    def test_side_stream_is_timed_with_all_others(self, gpu):
        side = gpu.stream()
        choice = choose_simulated(gpu, lambda: side.launch(1e-3), many=True)
        assert choice.streams == (gpu.device(0).every_stream(),)
        assert choice.timer.samples_per_gate == 1
        assert codes(choice) == ["side-stream"]
        assert "1.00 ms" in str(choice.notes[0])

    def test_a_busier_stream_of_another_framework_is_timed(self, gpu, monkeypatch):
        other = gpu.stream()
        candidates = (gpu.current_stream(0), other)
        monkeypatch.setattr(gpu.device(0), "current_streams", lambda: candidates)
        choice = choose_simulated(gpu, lambda: other.launch(1e-3))
        assert choice.streams == (other,)
        assert codes(choice) == ["other-stream"]
        assert "stream 1" in str(choice.notes[0])

    @pytest.mark.parametrize(
        ("reason", "prepare"),
        [
            (
                "it allocates",
                lambda gpu: setattr(gpu.devices[0], "capture_refusal", "it allocates"),
            ),
            ("several are timed", lambda gpu: gpu.devices.append(gpu.devices[0])),
        ],
    )
    def test_what_no_graph_can_hold_is_gated(self, recorder, reason, prepare):
        prepare(recorder)
        choice = choose(recorder, recorder.launch, "graph")
        assert (choice.timer.method, codes(choice)) == ("gated", ["no-graph"])
        assert reason in str(choice.notes[0])

    def test_what_queues_nothing_is_no_graph(self, recorder):
        choice = choose(recorder, lambda: None, "graph")
        assert (choice.timer.method, codes(choice)) == ("gated", ["no-graph"])

    def test_plain_events_are_recorded_on_the_first_of_the_current_streams(self, pair):
        choice = events_choice(pair.devices, pair.go_home)
        assert choice.streams == tuple(streams(pair))


def choose_simulated(gpu, call, **subject):
    subject = Subject(lambda: call, **subject)
    return choose_timer("gated", subject, gpu, [gpu.device(0)], lambda: None)


class TestPhases:
    """The order of all phases of a sample, as `benchmark` goes through them."""

    @pytest.fixture
    def log(self, recorder, monkeypatch):
        monkeypatch.setattr("gpubench.bench.current_platform", lambda: recorder)
        return recorder.log

    def bench(self, recorder, **options):
        setup = {"setup": lambda: recorder.log.append("setup")}
        return gpubench.benchmark(recorder.launch, n_repeat=1, **{**setup, **options})

    def last_sample(self, log):
        begin = max(i for i, entry in enumerate(log) if entry == "setup")
        return [entry for entry in log[begin:] if entry != "go home"]

    def test_gated(self, recorder, log):
        self.bench(recorder, cache="cold")
        sample = self.last_sample(log)
        assert [entry for entry in sample if entry not in ("close", "open")] == [
            "setup",
            "flush",
            "synchronize device",
            "hold stream",
            "record on stream",
            "call",
            "record on stream",
            "synchronize stream",
            "free",
            "restore",
        ]
        held = sample.index("hold stream")
        assert sample[held - 1] == "close"
        assert sample[sample.index("synchronize stream") - 1] == "open"

    def test_events(self, recorder, log):
        self.bench(recorder, method="events", cache="cold")
        assert self.last_sample(log) == [
            "setup",
            "flush",
            "synchronize device",
            "record on stream",
            "call",
            "record on stream",
            "synchronize stream",
            "free",
            "restore",
        ]

    def test_host(self, recorder, log):
        self.bench(recorder, method="host")
        assert self.last_sample(log) == [
            "setup",
            "synchronize device",
            "call",
            "synchronize device",
            "restore",
        ]

    def test_first_call_waits_for_the_device_and_no_gate_is_near(self, recorder, log):
        self.bench(recorder)
        first = [entry for entry in log[: log.index("call") + 2] if entry != "go home"]
        assert first == ["preserve", "setup", "synchronize device", "call", "synchronize device"]

    @pytest.mark.parametrize("method", ["gated", "events", "graph", "host"])
    def test_as_many_calls_as_asked_for(self, recorder, log, method):
        n_calls = []

        def call():
            n_calls.append(1)
            recorder.launch()

        result = gpubench.benchmark(call, n_repeat=3, n_warmup=20, method=method)
        captured = CALLS_PER_GRAPH if method == "graph" else 0
        assert result.n_warmup == 20 + captured
        samples = 0 if method == "graph" else 3
        assert len(n_calls) == 20 + captured + samples

    def test_calls_that_wait_are_warmed_up_as_often_as_asked_for(self, recorder, log):
        recorder.expires = True
        result = gpubench.benchmark(recorder.launch, n_repeat=3, n_warmup=20)
        assert (result.method, result.n_warmup) == ("events", 20)
        assert log.count("call") == 23

    def test_no_gate_and_no_fewer_warmups(self, recorder, log):
        recorder.refusal = "launches block"
        result = gpubench.benchmark(recorder.launch, n_repeat=3)
        assert (result.method, result.n_warmup) == ("events", 10)

    def test_buffers_are_freed_and_the_device_restored_after_an_exception(self, recorder, log):
        with pytest.raises(KeyError, match="mine"):
            gpubench.benchmark(fail, n_repeat=1, cache="cold")
        assert log[:2] == ["preserve", "allocate"]
        assert log[-2:] == ["free", "restore"]
