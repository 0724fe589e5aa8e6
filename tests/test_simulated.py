"""The simulated GPU as a promise: what its streams, events and gates do, to the modelled time.

A gate that closes before the work is queued takes the host out of the modelled times, so that
they are exact however busy the machine is.
"""

import itertools
import math
import threading
import time

import numpy as np
import pytest

import gpubench
from gpubench.devices import current_platform, simulated
from gpubench.devices.base import GATE_DEADLINE
from gpubench.devices.simulated import EVENT_TIME, GRAPH_GAP, LAUNCH_GAP


def kernels(gpu):
    """The kernels that ran, by name."""
    return {op.name: op for op in gpu.history if op.name not in ("event", "gate", "wait")}


def gated(gpu, *streams):
    """Close a gate for the streams and return it."""
    gate = gpu.gate()
    gate.close()
    for stream in streams:
        stream.hold(gate)
    return gate


def release(gate):
    """Open a gate once everything that is queued has arrived at the device."""
    time.sleep(1e-3)
    gate.open()


def two_events(gpu):
    return gpu.device(0).create_event(), gpu.device(0).create_event()


class TestStreams:
    def test_a_launch_returns_at_once_and_synchronize_waits(self, gpu):
        begin = time.perf_counter()
        gpu.launch(0.2)
        launched = time.perf_counter()
        gpu.synchronize()
        assert launched - begin < 0.1
        assert time.perf_counter() - begin >= 0.2

    def test_a_stream_runs_in_order(self, gpu):
        for number in range(20):
            gpu.launch(1e-6, f"kernel {number}")
        gpu.synchronize()
        ran = [op for op in gpu.history if op.device == 0]
        assert [op.name for op in ran] == [f"kernel {number}" for number in range(20)]
        for earlier, later in itertools.pairwise(ran):
            assert later.start_time >= earlier.end_time + LAUNCH_GAP * 0.999

    def test_streams_are_independent(self, gpu):
        first, second = gpu.stream(), gpu.stream()
        gate = gated(gpu, first)
        first.launch(0, "held")
        second.launch(0, "free")
        second.synchronize()
        assert set(kernels(gpu)) == {"free"}
        gate.open()
        first.synchronize()
        assert set(kernels(gpu)) == {"free", "held"}

    def test_streams_run_beside_each_other(self, gpu):
        first, second = gpu.stream(), gpu.stream()
        gate = gated(gpu, first, second)
        first.launch(1e-3, "first")
        second.launch(1e-3, "second")
        release(gate)
        gpu.synchronize()
        ran = kernels(gpu)
        assert ran["first"].start_time == ran["second"].start_time

    def test_default_stream_is_one_of_them(self, gpu):
        stream = gpu.stream()
        gpu.launch(0, "default")
        with stream:
            gpu.launch(0, "side")
        gpu.synchronize()
        ran = kernels(gpu)
        assert ran["default"].stream == 0
        assert ran["side"].stream == stream.number != 0

    def test_an_idle_device_begins_one_latency_after_the_launch(self):
        with gpubench.simulated_gpu(launch_latency=3e-3, jitter=0) as gpu:
            gpu.launch(1e-6, "first")
            gpu.synchronize()
            gpu.launch(1e-6, "second")
            gpu.synchronize()
        for op in kernels(gpu).values():
            assert op.start_time - op.queued_time == pytest.approx(3e-3 + LAUNCH_GAP, abs=1e-9)
            assert op.end_time - op.start_time == pytest.approx(1e-6, abs=1e-9)

    def test_latency_hides_behind_running_work(self):
        with gpubench.simulated_gpu(launch_latency=3e-3, jitter=0) as gpu:
            gate = gated(gpu, gpu.current_stream(0))
            gpu.launch(1e-6, "first")
            gpu.launch(1e-6, "second")
            time.sleep(4e-3)
            gate.open()
            gpu.synchronize()
        ran = kernels(gpu)
        gap = ran["second"].start_time - ran["first"].end_time
        assert gap == pytest.approx(LAUNCH_GAP, abs=1e-9)

    def test_a_full_queue_blocks_the_host(self):
        with gpubench.simulated_gpu(queue_depth=8, jitter=0) as gpu:
            gate = gated(gpu, gpu.current_stream(0))
            done = threading.Event()

            def fill():
                for _ in range(20):
                    gpu.launch(0)
                done.set()

            # The deadline would open the gate, so the test has to look before it passes.
            threading.Thread(target=fill, daemon=True).start()
            assert not done.wait(GATE_DEADLINE / 4)
            gate.open()
            assert done.wait(5)
            gpu.synchronize()
            assert len([op for op in gpu.history if op.name == "kernel"]) == 20

    def test_each_kernel_leaves_an_operation(self, gpu):
        before = time.perf_counter()
        gpu.launch(10e-6, "mine")
        gpu.synchronize()
        (op,) = gpu.history
        assert (op.name, op.device, op.stream) == ("mine", 0, 0)
        assert before <= op.queued_time < op.start_time < op.end_time
        assert op.end_time <= time.perf_counter()


class TestEvents:
    @pytest.mark.parametrize("duration", [0, 1e-6, 123e-6])
    def test_events_carry_the_time_that_the_stream_reached_them(self, gpu, duration):
        stream = gpu.current_stream(0)
        start, end = two_events(gpu)
        gate = gated(gpu, stream)
        stream.record(start)
        gpu.launch(duration)
        stream.record(end)
        release(gate)
        expected = EVENT_TIME + LAUNCH_GAP + duration
        assert end.seconds_since(start) == pytest.approx(expected, abs=gpu.clock_step)

    @pytest.mark.parametrize("clock_step", [32e-9, 0.5e-6, 1e-3])
    def test_times_are_whole_steps_of_the_clock(self, clock_step):
        with gpubench.simulated_gpu(clock_step=clock_step) as gpu:
            stream = gpu.current_stream(0)
            start, end = two_events(gpu)
            for number in range(10):
                stream.record(start)
                gpu.launch(1e-6 * number)
                stream.record(end)
                steps = end.seconds_since(start) / clock_step
                assert steps == pytest.approx(round(steps), abs=1e-6)

    def test_a_coarse_clock_sees_nothing_short(self):
        with gpubench.simulated_gpu(clock_step=10.0, jitter=0) as gpu:
            stream = gpu.current_stream(0)
            start, end = two_events(gpu)
            stream.record(start)
            gpu.launch(1e-6)
            stream.record(end)
            assert end.seconds_since(start) in (0.0, 10.0)

    def test_reading_waits_until_the_event_has_happened(self, gpu):
        stream = gpu.current_stream(0)
        start, end = two_events(gpu)
        stream.record(start)
        gpu.launch(20e-3)
        stream.record(end)
        assert end.seconds_since(start) >= 20e-3

    def test_earlier_minus_later_is_negative(self, gpu):
        stream = gpu.current_stream(0)
        start, end = two_events(gpu)
        stream.record(start)
        gpu.launch(1e-3)
        stream.record(end)
        assert start.seconds_since(end) == -end.seconds_since(start) < -1e-3

    def test_an_event_can_be_recorded_again(self, gpu):
        stream = gpu.current_stream(0)
        start, end = two_events(gpu)
        for duration in (1e-3, 5e-3):
            stream.record(start)
            gpu.launch(duration)
            stream.record(end)
            assert duration < end.seconds_since(start) < duration + GATE_DEADLINE

    def test_an_event_that_was_never_recorded_has_no_time(self, gpu):
        recorded, never = two_events(gpu)
        gpu.current_stream(0).record(recorded)
        with pytest.raises(gpubench.UnsupportedError, match="before it is recorded"):
            recorded.seconds_since(never)
        with pytest.raises(gpubench.UnsupportedError, match="before it is recorded"):
            never.seconds_since(recorded)

    def test_a_stream_can_wait_for_an_event_of_another(self, gpu):
        first, second = gpu.stream(), gpu.stream()
        event, _ = two_events(gpu)
        gate = gated(gpu, first)
        first.launch(2e-3, "first")
        first.record(event)
        second.wait(event)
        second.launch(0, "second")
        gate.open()
        gpu.synchronize()
        ran = kernels(gpu)
        assert ran["second"].start_time >= ran["first"].end_time

    def test_a_stream_waits_for_the_last_recording_not_for_the_next(self, gpu):
        first, second = gpu.stream(), gpu.stream()
        event, _ = two_events(gpu)
        second.wait(event)  # nothing recorded: nothing to wait for
        first.record(event)
        second.wait(event)
        second.record(event)  # would block for ever if the wait were for this one
        second.launch(0, "through")
        gpu.synchronize()
        assert "through" in kernels(gpu)

    def test_foreign_objects_are_refused(self, gpu):
        stream, event = gpu.current_stream(0), gpu.device(0).create_event()
        every = gpu.device(0).every_stream()
        for refused in (
            lambda: stream.record(object()),
            lambda: every.record(object()),
            lambda: stream.hold(object()),
            lambda: event.seconds_since(object()),
        ):
            with pytest.raises(TypeError, match="object object"):
                refused()


class TestGates:
    def test_one_gate_holds_streams_of_several_devices(self):
        with gpubench.simulated_gpu(n_devices=2, jitter=0) as gpu:
            streams = []
            for device in (0, 1):
                gpu.use_device(device)
                streams += [gpu.stream(), gpu.stream()]
            gate = gated(gpu, *streams)
            for number, stream in enumerate(streams):
                stream.launch(1e-6, f"kernel {number}")
            time.sleep(5e-3)
            assert not kernels(gpu)
            opened = time.perf_counter()
            gate.open()
            for device in (0, 1):
                gpu.device(device).synchronize()
            starts = {op.start_time for op in kernels(gpu).values()}
            assert len(kernels(gpu)) == 4
            assert {op.device for op in kernels(gpu).values()} == {0, 1}
            assert len(starts) == 1  # all released at the same moment
            assert starts.pop() >= opened

    def test_work_queued_before_the_gate_is_not_held(self, gpu):
        stream = gpu.stream()
        stream.launch(0, "before")
        gate = gated(gpu, stream)
        stream.launch(0, "behind")
        wait_until(lambda: kernels(gpu))
        assert set(kernels(gpu)) == {"before"}
        gate.open()
        stream.synchronize()
        assert set(kernels(gpu)) == {"before", "behind"}

    def test_an_open_gate_holds_nothing(self, gpu):
        gate = gpu.gate()
        gate.open()
        gpu.current_stream(0).hold(gate)
        gpu.launch(0)
        gpu.synchronize()
        assert not gate.has_expired(1)

    def test_the_deadline_opens_a_gate_that_is_forgotten(self, gpu):
        gate = gpu.gate()
        closing = gate.close()
        gpu.current_stream(0).hold(gate)
        gpu.launch(0)
        gpu.synchronize()
        hold = gpu.history[0]
        assert hold.name == "gate"
        assert hold.end_time - hold.start_time == pytest.approx(GATE_DEADLINE, abs=1e-9)
        assert gate.has_expired(closing)
        assert "kernel" in kernels(gpu)

    def test_an_expired_closing_does_not_accuse_the_next(self, gpu):
        gate = gpu.gate()
        expired = gate.close()
        gpu.current_stream(0).hold(gate)
        gpu.synchronize()
        closing = gate.close()
        gpu.current_stream(0).hold(gate)
        gate.open()
        gpu.synchronize()
        assert closing == expired + 1
        assert gate.has_expired(expired)
        assert not gate.has_expired(closing)

    def test_closing_again_leaves_held_streams_to_the_deadline(self, gpu):
        gate = gpu.gate()
        first = gate.close()
        gpu.current_stream(0).hold(gate)
        gate.close()
        gate.open()
        gpu.synchronize()
        assert gate.has_expired(first)


class TestEveryStream:
    def test_its_events_span_all_streams(self, gpu):
        every, side = gpu.device(0).every_stream(), gpu.stream()
        start, end = two_events(gpu)
        gate = gpu.gate()
        gate.close()
        every.hold(gate)
        every.record(start)
        gpu.launch(1e-3)
        side.launch(3e-3)
        every.record(end)
        release(gate)
        every.synchronize()
        expected = EVENT_TIME + LAUNCH_GAP + 3e-3
        assert end.seconds_since(start) == pytest.approx(expected, abs=2e-6)

    def test_its_gate_holds_streams_made_later(self, gpu):
        gate = gpu.gate()
        gate.close()
        gpu.device(0).every_stream().hold(gate)
        late = gpu.stream()
        late.launch(0, "late")
        time.sleep(5e-3)
        assert not kernels(gpu)
        gate.open()
        late.synchronize()
        assert set(kernels(gpu)) == {"late"}

    def test_it_is_one_object_of_its_device(self, gpu):
        device = gpu.device(0)
        assert device.every_stream() is device.every_stream()
        assert device.every_stream().device is device
        assert device.every_stream().label == "every stream"


class TestGraphs:
    def test_captured_work_runs_at_launch_only(self, gpu):
        graph = gpu.device(0).capture(lambda: [gpu.launch(1e-3, "captured") for _ in range(3)])
        gpu.synchronize()
        assert not kernels(gpu)
        graph.launch()
        graph.stream.synchronize()
        (op,) = kernels(gpu).values()
        assert op.name == "graph"
        assert op.end_time - op.start_time == pytest.approx(3 * (1e-3 + GRAPH_GAP), abs=1e-9)

    def test_a_graph_can_be_launched_again(self, gpu):
        graph = gpu.device(0).capture(lambda: gpu.launch(1e-6))
        for _ in range(5):
            graph.launch()
        graph.stream.synchronize()
        assert [op.name for op in gpu.history] == ["graph"] * 5

    def test_what_queues_no_kernel_is_empty(self, gpu):
        side = gpu.stream()
        assert gpu.device(0).capture(lambda: None).is_empty
        assert gpu.device(0).capture(lambda: side.launch(0)).is_empty
        assert not gpu.device(0).capture(lambda: gpu.launch(0)).is_empty

    def test_synchronizing_while_captured_is_refused(self, gpu):
        for synchronize in (gpu.synchronize, lambda: gpu.current_stream(0).synchronize()):
            with pytest.raises(gpubench.UnsupportedError, match="being captured"):
                gpu.device(0).capture(synchronize)
        gpu.launch(0)
        gpu.synchronize()

    def test_a_failed_capture_leaves_the_stream_as_it_was(self, gpu):
        before = gpu.current_stream(0)

        def work():
            gpu.launch(0)
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            gpu.device(0).capture(work)
        assert gpu.current_stream(0) is before
        assert not before.is_capturing


class TestNoise:
    def durations(self, n=2000, seconds=1e-6, **parameters):
        with gpubench.simulated_gpu(**parameters) as gpu:
            return np.array([gpu.device(0).noisy(seconds) for _ in range(n)])

    def test_jitter_is_the_relative_standard_deviation(self):
        x = self.durations(jitter=0.05)
        assert x.mean() == pytest.approx(1e-6, rel=0.01)
        assert x.std() / x.mean() == pytest.approx(0.05, rel=0.1)

    def test_without_jitter_durations_are_exact(self):
        assert set(self.durations(10, jitter=0)) == {1e-6}

    @pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
    def test_correlation_is_between_neighbours(self, correlation):
        x = self.durations(5000, jitter=0.05, correlation=correlation)
        assert np.corrcoef(x[:-1], x[1:])[0, 1] == pytest.approx(correlation, abs=0.06)
        assert x.std() / x.mean() == pytest.approx(0.05, rel=0.2)

    def test_a_seed_makes_the_jitter_repeatable(self):
        assert np.array_equal(self.durations(50, seed=1), self.durations(50, seed=1))
        assert not np.array_equal(self.durations(50, seed=1), self.durations(50, seed=2))

    def test_devices_have_jitters_of_their_own(self):
        with gpubench.simulated_gpu(n_devices=2) as gpu:
            assert gpu.device(0).noisy(1.0) != gpu.device(1).noisy(1.0)

    @pytest.mark.parametrize("drift", [10.0, -10.0])
    def test_drift_is_relative_growth_per_second(self, drift):
        with gpubench.simulated_gpu(jitter=0, drift=drift) as gpu:
            begin, first = time.perf_counter(), gpu.device(0).noisy(1.0)
            time.sleep(0.02)
            last, passed = gpu.device(0).noisy(1.0), time.perf_counter() - begin
        assert 0.02 <= (last - first) / drift <= passed

    def test_no_duration_is_negative(self):
        assert self.durations(jitter=5.0).min() == 0

    def test_jitter_shows_in_event_times(self):
        with gpubench.simulated_gpu(jitter=0.2, seed=3) as gpu:
            result = gpubench.benchmark(gpu.launch, (100e-6,), n_repeat=100)
        relative = result.gpu[0].std / 100e-6
        assert 0.1 < relative < 0.3


class TestCurrent:
    def test_stream_is_current_inside_its_block(self, gpu):
        outer, inner = gpu.stream(), gpu.stream()
        default = gpu.current_stream(0)
        with outer as entered:
            assert entered is outer
            with inner:
                assert gpu.current_stream(0) is inner
            assert gpu.current_stream(0) is outer
        assert gpu.current_stream(0) is default

    def test_stream_is_left_when_the_block_raises(self, gpu):
        with pytest.raises(KeyError), gpu.stream():
            raise KeyError
        assert gpu.current_stream(0).number == 0

    def test_current_stream_is_of_its_device_and_thread(self):
        with gpubench.simulated_gpu(n_devices=2) as gpu:
            seen = []
            with gpu.stream():
                assert gpu.current_stream(1).number == 0
                thread = threading.Thread(target=lambda: seen.append(gpu.current_stream(0).number))
                thread.start()
                thread.join()
            assert seen == [0]

    def test_device_is_current_in_its_thread(self):
        with gpubench.simulated_gpu(n_devices=2) as gpu:
            gpu.use_device(1)
            seen = []
            thread = threading.Thread(target=lambda: seen.append(gpu.current_device()))
            thread.start()
            thread.join()
            assert (gpu.current_device(), seen) == (1, [0])
            gpu.launch(0, "on 1")
            gpu.synchronize()
            assert kernels(gpu)["on 1"].device == 1

    def test_preserved_restores_device_and_stream(self):
        with gpubench.simulated_gpu(n_devices=2) as gpu:
            with gpu.preserved() as go_home:
                gpu.use_device(1)
                gpu.stream().__enter__()
                go_home()
                assert gpu.current_device() == 0
                gpu.use_device(1)
            assert gpu.current_device() == 0
            assert gpu.current_stream(1).number == 0

    def test_blocks_nest(self):
        with gpubench.simulated_gpu() as outer:
            with gpubench.simulated_gpu() as inner:
                assert simulated.active() is inner
                assert current_platform() is inner
            assert current_platform() is outer
        assert simulated.active() is None


class TestClosed:
    def closed(self):
        with gpubench.simulated_gpu() as gpu:
            stream = gpu.stream()
            gpu.launch(1e-3, "last")
        return gpu, stream

    def test_leaving_the_block_finishes_the_work(self):
        gpu, _ = self.closed()
        assert "last" in kernels(gpu)

    def test_its_threads_have_ended(self):
        self.closed()
        deadline = time.perf_counter() + 5
        while any(t.name.startswith("gpu ") for t in threading.enumerate()):
            assert time.perf_counter() < deadline
            time.sleep(0.01)

    def test_further_work_is_refused(self):
        gpu, stream = self.closed()
        for use in (
            lambda: gpu.launch(0),
            lambda: stream.launch(0),
            gpu.stream,
            gpu.__enter__,
            lambda: gpu.device(0).capture(lambda: None),
        ):
            with pytest.raises(gpubench.UnsupportedError, match="closed; work inside its with"):
                use()
        assert simulated.active() is None

    def test_synchronizing_returns_at_once(self):
        gpu, stream = self.closed()
        returned = threading.Event()

        def synchronize():
            gpu.synchronize()
            stream.synchronize()
            returned.set()

        threading.Thread(target=synchronize, daemon=True).start()
        assert returned.wait(5)


class TestArguments:
    @pytest.mark.parametrize(
        ("parameter", "value", "message"),
        [
            ("n_devices", 0, "n_devices must be at least 1, got 0"),
            ("n_devices", 1.0, "n_devices must be an integer, got 1.0"),
            ("n_devices", True, "n_devices must be an integer, got True"),
            ("launch_latency", -1e-6, "launch_latency must be at least 0, got -1e-06"),
            ("launch_latency", math.inf, "launch_latency must be finite, got inf"),
            ("clock_step", 0, "clock_step must be above 0, got 0"),
            ("clock_step", math.nan, "clock_step must be a number, got NaN"),
            ("jitter", -0.1, "jitter must be at least 0, got -0.1"),
            ("jitter", "1", "jitter must be a number, got '1'"),
            ("correlation", 1, "correlation must be below 1, got 1"),
            ("correlation", -0.5, "correlation must be at least 0, got -0.5"),
            ("drift", -math.inf, "drift must be finite, got -inf"),
            ("queue_depth", 0, "queue_depth must be at least 1, got 0"),
            ("seed", -1, "seed must be at least 0, got -1"),
            ("seed", None, "seed must be an integer, got None"),
        ],
    )
    def test_each_names_itself_and_its_value(self, parameter, value, message):
        with pytest.raises(gpubench.ArgumentError) as caught:
            gpubench.simulated_gpu(**{parameter: value})
        assert str(caught.value) == message

    def test_parameters_are_named_only(self):
        with pytest.raises(TypeError, match="positional"):
            gpubench.simulated_gpu(2)

    @pytest.mark.parametrize("duration", [-1e-6, math.nan, math.inf, "1", None])
    def test_durations_are_finite_and_not_negative(self, gpu, duration):
        for launch in (gpu.launch, gpu.stream().launch):
            with pytest.raises(gpubench.ArgumentError, match="duration must be"):
                launch(duration)
        gpu.synchronize()

    @pytest.mark.parametrize("device", [1, -1, 0.0, "0", True])
    def test_devices_are_numbered_from_zero(self, gpu, device):
        with pytest.raises(gpubench.ArgumentError, match="device_id must be"):
            gpu.use_device(device)
        assert gpu.current_device() == 0

    def test_numpy_numbers_will_do(self):
        with gpubench.simulated_gpu(n_devices=np.int64(2), jitter=np.float32(0)) as gpu:
            gpu.use_device(np.uint8(1))
            gpu.launch(np.float64(1e-6))
            gpu.synchronize()
            assert gpu.current_device() == 1


def test_platform_and_device_describe_themselves(gpu):
    assert (gpu.name, gpu.device_count(), gpu.current_device()) == ("simulated", 1, 0)
    device = gpu.device(0)
    assert (device.id, device.reserved_bytes()) == (0, 0)
    assert repr(device) == "<SimulatedDevice 0>"
    assert (device.properties.name, device.properties.l2_bytes > 0) == ("simulated GPU", True)
    assert gpu.current_stream(0).label == "the default stream"
    assert gpu.stream().label == "stream 1"


def test_a_cache_flush_takes_its_time_and_waits(gpu):
    gpu.history.clear()
    with gpu.device(0).cold_cache() as flush:
        flush()
        assert [op.name for op in gpu.history] == ["flush"]


def wait_until(condition, timeout=5.0):
    """Wait until a condition holds."""
    end = time.perf_counter() + timeout
    while not condition():
        assert time.perf_counter() < end, "timed out"
        time.sleep(1e-3)
