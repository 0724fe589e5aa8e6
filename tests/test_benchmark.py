"""`benchmark`: its arguments, phases and rules, on the host and on the simulated GPU."""

import asyncio
import dataclasses
import functools
import gc
import math
import sys
import threading
import time
import warnings
from types import ModuleType

import numpy as np
import pytest

import gpubench
from gpubench import benchmark
from gpubench.devices import simulated
from gpubench.timers import choose
from gpubench.timers.graph import GraphTimer


def codes(result):
    return [note.code for note in result.notes]


def nothing(*args, **kwargs):
    pass


class Adder:
    def __call__(self, *args):
        return sum(args)

    def method(self):
        pass


class TestFunc:
    @pytest.mark.parametrize(
        ("func", "args", "name"),
        [
            (nothing, (), "nothing"),
            (functools.partial(max, 1), (2,), "max"),
            (functools.partial(functools.partial(nothing, 1), 2), (), "nothing"),
            (Adder(), (1, 2), "Adder"),
            (Adder().method, (), "method"),
            (lambda: None, (), "<lambda>"),
            (np.sqrt, (4.0,), "sqrt"),
            (int, ("3",), "int"),
        ],
    )
    def test_any_callable_has_a_name(self, func, args, name):
        assert benchmark(func, args, n_repeat=1).name == name

    def test_given_name_wins(self):
        assert benchmark(nothing, n_repeat=1, name="mine").name == "mine"

    @pytest.mark.parametrize("func", [3, None, "f", object()])
    def test_what_is_not_callable_is_refused_by_name(self, func):
        with pytest.raises(gpubench.ArgumentError, match="func must be callable"):
            benchmark(func)

    def test_a_call_in_place_of_the_function_is_told_in_one_short_line(self):
        called = np.ones((50, 50))
        with pytest.raises(gpubench.ArgumentError) as caught:
            benchmark(called)
        message = str(caught.value)
        assert message.startswith("func must be callable, got array([[1., 1., 1.")
        assert message.endswith("…; did you mean f or lambda: f(x), instead of f(x)?")
        assert "\n" not in message
        assert len(message) < 200

    def test_callables_whose_call_only_builds_something_are_refused(self):
        async def coroutine():
            await asyncio.sleep(0.05)

        def generator():
            yield 1

        async def async_generator():
            yield 1

        class Later:
            async def __call__(self):
                pass

        class Lazily:
            def __call__(self):
                yield

        for func, remedy in [
            (coroutine, "asyncio.run"),
            (functools.partial(coroutine), "asyncio.run"),
            (Later(), "asyncio.run"),
            (generator, "list"),
            (Lazily(), "list"),
            (async_generator, "consumes"),
        ]:
            with pytest.raises(gpubench.ArgumentError, match=remedy):
                benchmark(func, n_repeat=1)

    def test_what_a_plain_function_returns_lazily_is_refused(self):
        async def coroutine():
            pass

        with pytest.raises(gpubench.ArgumentError, match="coroutine"):
            benchmark(lambda: coroutine(), n_repeat=1)
        with pytest.raises(gpubench.ArgumentError, match="generator"):
            benchmark(lambda: (i for i in range(3)), n_repeat=1)


class TestArguments:
    @pytest.mark.parametrize("name", ["n_repeat", "n_warmup"])
    @pytest.mark.parametrize("value", [-1, True, np.True_, 3.0, "3", np.float64(2), [1]])
    def test_counts_are_integers(self, name, value):
        with pytest.raises(gpubench.ArgumentError, match=f"{name} must be") as caught:
            benchmark(nothing, **{name: value})
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, TypeError)
        assert repr(value) in str(caught.value)

    def test_zero_repeats_are_refused_and_zero_warmups_accepted(self):
        with pytest.raises(gpubench.ArgumentError, match="n_repeat must be at least 1, got 0"):
            benchmark(nothing, n_repeat=0)
        assert benchmark(nothing, n_repeat=2, n_warmup=0).n_warmup == 0

    @pytest.mark.parametrize("kind", [int, np.int64, np.uint8])
    def test_numpy_integers_count_as_integers(self, kind):
        assert benchmark(nothing, n_repeat=kind(3), n_warmup=kind(1)).cpu_times.shape == (3,)

    @pytest.mark.parametrize("args", [5, "ab", b"ab", np.ones(3), None, {1: 2}, {1}, 2.5])
    def test_args_must_be_a_tuple_or_list(self, args):
        with pytest.raises(gpubench.ArgumentError, match=r"did you mean \(x,\)"):
            benchmark(nothing, args, n_repeat=1)

    def test_a_list_of_args_is_spread_and_left_alone(self):
        seen = []
        args, kwargs = [1, 2], {"c": 3}
        benchmark(lambda *a, **k: seen.append((a, k)), args, kwargs, n_repeat=1, n_warmup=0)
        assert seen == [((1, 2), {"c": 3})]
        assert (args, kwargs) == ([1, 2], {"c": 3})

    @pytest.mark.parametrize("kwargs", [[("a", 1)], 5, "ab", {1: 2}])
    def test_kwargs_must_be_a_mapping_of_names(self, kwargs):
        with pytest.raises(gpubench.ArgumentError, match="kwargs must"):
            benchmark(nothing, (), kwargs, n_repeat=1)

    @pytest.mark.parametrize("value", [math.nan, -1, -math.inf, "1", None, True])
    def test_max_duration_is_a_number_of_seconds(self, value):
        with pytest.raises(gpubench.ArgumentError, match="max_duration must be"):
            benchmark(nothing, max_duration=value)

    @pytest.mark.parametrize(
        ("argument", "value"),
        [("method", "best"), ("cache", "hot"), ("name", 3), ("setup", 3), ("progress", "yes")],
    )
    def test_other_arguments_name_themselves(self, argument, value):
        with pytest.raises(gpubench.ArgumentError, match=f"{argument} must be"):
            benchmark(nothing, n_repeat=1, **{argument: value})

    def test_arguments_are_checked_before_anything_runs(self):
        with pytest.raises(gpubench.ArgumentError, match="n_warmup"):
            benchmark(pytest.fail, ("called",), n_warmup=-1)

    def test_positional_order_is_cupys(self):
        result = benchmark(nothing, (1,), {"a": 2}, 7)
        assert result.cpu_times.size == 7


class TestDevices:
    @pytest.mark.parametrize("devices", [0, [0], (np.int64(0),), np.array([0]), range(1), None])
    def test_one_device_however_it_is_named(self, gpu, devices):
        result = benchmark(gpu.launch, (1e-6,), n_repeat=2, devices=devices)
        assert result.devices == (0,)
        assert result.gpu_times.shape == (1, 2)

    @pytest.mark.parametrize(
        ("devices", "message"),
        [
            ((), "at least one"),
            ((0, 0), "repeat"),
            ((99,), "no GPU 99"),
            (-1, "at least 0"),
            (True, "integer"),
            ("0", "sequence of ints"),
            (0.0, "integer"),
            ({0: 1}, "sequence of ints"),
        ],
    )
    def test_other_devices_are_refused_by_name(self, gpu, devices, message):
        with pytest.raises(gpubench.ArgumentError, match=message) as caught:
            benchmark(gpu.launch, (1e-6,), n_repeat=2, devices=devices)
        assert "devices" in str(caught.value)

    def test_each_device_has_its_row(self):
        with gpubench.simulated_gpu(n_devices=2, jitter=0) as gpu:

            def on_second():
                gpu.use_device(1)
                gpu.launch(100e-6)

            result = benchmark(on_second, n_repeat=5, devices=(0, 1))
            assert gpu.current_device() == 0
        assert result.gpu_times.shape == (2, 5)
        assert result.gpu[0].median == pytest.approx(simulated.EVENT_TIME, abs=64e-9)
        assert result.gpu[1].median == pytest.approx(102e-6, abs=1e-6)

    def test_device_and_stream_are_restored_after_an_exception(self):
        with gpubench.simulated_gpu(n_devices=2) as gpu:

            def leaves_a_mess():
                gpu.use_device(1)
                gpu.stream().__enter__()
                raise KeyError("mine")

            with pytest.raises(KeyError, match="mine"):
                benchmark(leaves_a_mess, n_repeat=5)
            assert gpu.current_device() == 0
            assert gpu.current_stream(1).number == 0

    @pytest.mark.parametrize("options", [{"devices": 0}, {"method": "gated"}])
    def test_asking_for_a_gpu_where_there_is_none_says_why(self, no_cupy, options):
        with pytest.raises(gpubench.UnsupportedError, match="CuPy is not installed") as caught:
            benchmark(nothing, n_repeat=1, **options)
        assert next(iter(options)) in str(caught.value)


class TestHost:
    def test_without_a_gpu_the_host_is_timed_and_a_note_says_why(self, no_cupy):
        result = benchmark(time.sleep, (1e-3,), n_repeat=5)
        assert result.method == "host"
        assert result.gpu_times.shape == (0, 5)
        assert result.devices == ()
        assert result.cpu.min >= 1e-3
        assert "CuPy is not installed" in str(result)

    def test_no_note_where_the_host_was_asked_for(self, no_cupy):
        assert "no-gpu" not in codes(benchmark(nothing, n_repeat=5, method="host"))

    def test_host_method_on_a_gpu_gives_no_gpu_times(self, gpu):
        result = benchmark(gpu.launch, (20e-3,), n_repeat=2, n_warmup=1, method="host")
        assert result.gpu_times.shape == (0, 2)
        assert result.cpu.median < 5e-3

    def test_cold_cache_without_a_gpu_is_a_note(self, no_cupy):
        assert "no-cold-cache" in codes(benchmark(nothing, n_repeat=1, cache="cold"))


class TestPhases:
    def test_explicit_counts_are_exact_on_the_host(self, no_cupy):
        calls = []
        result = benchmark(lambda: calls.append(1), n_repeat=7, n_warmup=3)
        assert len(calls) == 10
        assert result.n_warmup == 3
        assert result.cpu_times.size == 7
        assert result.stopped_by == "n_repeat"

    def test_probes_are_among_the_warmup_calls(self, gpu):
        calls = []

        def call():
            calls.append(1)
            gpu.launch(1e-6)

        result = benchmark(call, n_repeat=7)
        assert result.n_warmup == 10
        assert len(calls) == 17

    def test_order_of_phases(self, gpu):
        log = []

        def setup():
            log.append("setup")
            return (len(log),)

        def call(n):
            log.append("call")
            gpu.launch(1e-6, f"call {n}")

        gpu.history.clear()
        benchmark(call, setup=setup, n_repeat=2, n_warmup=1, cache="cold")
        assert log == ["setup", "call"] * (len(log) // 2)
        stream = [op.name for op in gpu.history if op.stream == 0]
        last = f"call {len(log) - 1}"
        end = stream.index(last)
        assert stream[end - 3 : end + 2] == ["flush", "gate", "event", last, "event"]

    def test_setups_tuple_becomes_the_args_and_other_values_do_not(self, no_cupy):
        seen = []
        benchmark(seen.append, (0,), setup=lambda: (1,), n_repeat=1, n_warmup=0)
        benchmark(seen.append, (0,), setup=lambda: [1], n_repeat=1, n_warmup=0)
        assert seen == [1, 0]

    def test_setup_is_not_timed(self, no_cupy):
        result = benchmark(nothing, setup=lambda: time.sleep(0.01), n_repeat=3, n_warmup=0)
        assert result.cpu.max < 5e-3

    def test_setups_gpu_work_is_not_timed(self, gpu):
        result = benchmark(
            gpu.launch, (10e-6,), setup=lambda: gpu.launch(5e-3), n_repeat=3, n_warmup=1
        )
        assert result.gpu[0].max < 20e-6

    def test_first_call_is_timed_until_the_gpu_is_done(self, gpu):
        result = benchmark(gpu.launch, (5e-3,), n_repeat=1)
        assert result.first_call_time >= 5e-3

    def test_without_warmup_the_first_call_is_a_sample(self, gpu):
        calls = []

        def call():
            calls.append(1)
            gpu.launch(1e-6)

        result = benchmark(call, n_repeat=3, n_warmup=0)
        assert len(calls) == 3
        assert result.first_call_time is None
        assert (result.method, "not-probed" in codes(result)) == ("events", True)

    def test_garbage_collector_is_off_while_sampling_and_restored(self, no_cupy):
        states = []
        benchmark(lambda: states.append(gc.isenabled()), n_repeat=3, n_warmup=1)
        assert states[-3:] == [False] * 3
        assert gc.isenabled()

    @pytest.mark.parametrize("enabled", [True, False])
    def test_garbage_collector_is_restored_after_an_exception(self, no_cupy, enabled):
        def fail():
            raise KeyError

        if not enabled:
            gc.disable()
        try:
            with pytest.raises(KeyError):
                benchmark(fail, n_warmup=0)
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


class TestStopping:
    def test_max_duration_counts_warmup_and_leaves_a_sample(self, no_cupy):
        begin = time.perf_counter()
        result = benchmark(time.sleep, (0.05,), n_warmup=20, n_repeat=20, max_duration=0.1)
        assert time.perf_counter() - begin < 0.3
        assert result.stopped_by == "max_duration"
        assert 1 <= result.cpu_times.size < 20
        assert result.n_warmup < 20

    def test_zero_duration_takes_one_sample(self, no_cupy):
        assert benchmark(nothing, n_repeat=5, max_duration=0).cpu_times.size == 1

    def test_max_duration_counts_the_gpus_work(self, gpu):
        begin = time.perf_counter()
        result = benchmark(gpu.launch, (20e-3,), n_repeat=1000, n_warmup=1, max_duration=0.4)
        assert time.perf_counter() - begin < 0.8
        assert result.stopped_by == "max_duration"

    def test_adaptive_run_converges(self, gpu):
        result = benchmark(gpu.launch, (50e-6,))
        assert result.stopped_by == "converged"
        assert result.cpu_times.size >= 10
        low, high = result.gpu[0].ci95
        assert high - low <= 0.01 * result.gpu[0].median

    def test_adaptive_run_ends_by_time(self, no_cupy):
        rng = np.random.default_rng(0)
        begin = time.perf_counter()
        result = benchmark(lambda: time.sleep(rng.exponential(1e-3)), max_duration=0.3)
        assert time.perf_counter() - begin < 0.6
        assert result.stopped_by == "max_duration"

    def test_adaptive_run_with_a_long_call_takes_one_sample_at_least(self, no_cupy):
        result = benchmark(time.sleep, (0.06,), max_duration=0.1)
        assert 1 <= result.cpu_times.size <= 2

    def test_ctrl_c_keeps_the_samples(self, gpu):
        calls = []

        def call():
            calls.append(1)
            gpu.launch(1e-6)
            if len(calls) == 15:
                raise KeyboardInterrupt

        result = benchmark(call, n_repeat=100)
        assert result.interrupted
        assert result.cpu_times.size == 4
        assert "interrupted" in codes(result)
        gpu.synchronize()

    def test_ctrl_c_before_any_sample_is_passed_on(self, gpu):
        def call():
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            benchmark(call, n_repeat=100)
        gpu.synchronize()


class TestGatedTimes:
    @pytest.mark.parametrize("seconds", [0.5e-6, 5e-6, 100e-6, 2e-3])
    def test_gpu_time_is_the_kernels_and_not_the_launch(self, gpu, seconds):
        result = benchmark(gpu.launch, (seconds,), n_repeat=10)
        overhead = simulated.EVENT_TIME + simulated.LAUNCH_GAP
        assert result.method == "gated"
        assert result.gpu[0].median == pytest.approx(seconds + overhead, abs=100e-9)

    def test_host_work_inside_does_not_count(self, gpu):
        def call():
            time.sleep(1e-3)
            gpu.launch(20e-6)

        assert benchmark(call, n_repeat=5).gpu[0].median < 23e-6

    def test_plain_events_count_it_and_say_so(self, gpu):
        def call():
            time.sleep(1e-3)
            gpu.launch(20e-6)

        result = benchmark(call, n_repeat=5, method="events")
        assert result.gpu[0].median > 1e-3
        assert "launch-included" in codes(result)

    def test_many_samples_share_gates_with_the_same_times(self, gpu):
        many = benchmark(gpu.launch, (10e-6,), n_repeat=1005)
        few = benchmark(gpu.launch, (10e-6,), n_repeat=20)
        assert (many.samples_per_gate, few.samples_per_gate) == (8, 1)
        assert many.cpu_times.size == 1005
        assert many.gpu[0].median == pytest.approx(few.gpu[0].median, abs=0.7e-6)

    @pytest.mark.parametrize(
        ("disturbed", "chosen"),
        [
            (lambda size, n_gates: n_gates > 1, (8, 8)),
            (lambda size, n_gates: size > 4, (4, 40)),
            (lambda size, n_gates: size > 1, (1, 1)),
        ],
    )
    def test_gates_are_shared_only_so_far_as_that_lengthens_no_call(
        self, gpu, monkeypatch, disturbed, chosen
    ):
        class Disturbed(choose.GatedTimer):
            def take(self, call, n):
                samples = super().take(call, n)
                size = self.samples_per_gate
                late = 0.7e-6 if disturbed(size, self.samples_per_take // size) else 0.0
                return dataclasses.replace(samples, gpu=samples.gpu + late)

        monkeypatch.setattr(choose, "GatedTimer", Disturbed)
        subject = choose.Subject(lambda: lambda: gpu.launch(20e-6), many=True)
        timer = choose.choose_timer("gated", subject, gpu, [gpu.device(0)], lambda: None).timer
        assert (timer.samples_per_gate, timer.samples_per_take) == chosen

    def test_gates_are_shared_by_fewer_where_the_queue_is_short(self):
        with gpubench.simulated_gpu(queue_depth=60) as gpu:

            def call():
                for _ in range(10):
                    gpu.launch(0)

            result = benchmark(call, n_repeat=1000)
        assert result.samples_per_gate == 4
        assert "expired-gate" not in codes(result)

    def test_work_on_a_side_stream_is_timed_and_noted(self, gpu):
        stream = gpu.stream()

        def call():
            with stream:
                gpu.launch(100e-6)

        result = benchmark(call, n_repeat=5)
        assert 100e-6 < result.gpu[0].median < 105e-6
        assert "side-stream" in codes(result)

    def test_partly_on_a_side_stream(self, gpu):
        stream = gpu.stream()

        def call():
            gpu.launch(50e-6)
            with stream:
                gpu.launch(100e-6)

        result = benchmark(call, n_repeat=5)
        assert result.gpu[0].median == pytest.approx(102e-6, abs=2e-6)
        assert "side-stream" in codes(result)

    def test_events_miss_a_side_stream_but_the_note_is_there(self, gpu):
        stream = gpu.stream()

        def call():
            with stream:
                gpu.launch(5e-3)

        result = benchmark(call, n_repeat=5, method="events")
        assert result.gpu[0].median < 1e-3
        assert "side-stream" in codes(result)

    def test_callers_current_stream_is_the_one_timed(self, gpu):
        with gpu.stream():
            result = benchmark(gpu.launch, (100e-6,), n_repeat=5)
        assert 100e-6 < result.gpu[0].median < 105e-6
        assert "side-stream" not in codes(result)

    def test_function_that_launches_nothing_is_noted(self, gpu):
        assert "no-gpu-work" in codes(benchmark(nothing, n_repeat=5))


class TestDanger:
    """Functions that a gate could block for ever."""

    def test_function_that_synchronizes(self, gpu):
        def call():
            gpu.launch(20e-6)
            gpu.synchronize()

        begin = time.perf_counter()
        result = benchmark(call, n_repeat=10)
        assert time.perf_counter() - begin < 2
        assert result.method == "events"
        assert "waits-inside" in codes(result)
        assert result.gpu[0].median >= 20e-6

    def test_function_that_synchronizes_now_and_then(self, gpu):
        calls = []

        def call():
            calls.append(1)
            gpu.launch(20e-6)
            if len(calls) % 13 == 0:
                gpu.synchronize()

        begin = time.perf_counter()
        result = benchmark(call, n_repeat=60)
        assert time.perf_counter() - begin < 3
        assert result.cpu_times.size == 60
        assert (result.method, "waits-inside" in codes(result)) == ("events", True)

    def test_function_that_synchronizes_once_is_noted(self, gpu):
        calls = []

        def call():
            calls.append(1)
            gpu.launch(20e-6)
            if len(calls) == 20:
                gpu.synchronize()

        result = benchmark(call, n_repeat=30)
        assert result.method == "gated"
        assert "Up to 1 of 30 samples" in str(result)

    def test_more_launches_than_the_queue_holds(self, gpu):
        def call():
            for _ in range(2000):
                gpu.launch(0)

        result = benchmark(call, n_repeat=2, n_warmup=1)
        assert (result.method, "waits-inside" in codes(result)) == ("events", True)

    @pytest.mark.parametrize("method", ["gated", "events", "graph", "host"])
    @pytest.mark.parametrize("fails_at", [1, 5, 12])
    def test_exception_is_passed_on_and_the_gpu_usable(self, gpu, method, fails_at):
        calls = []

        def call():
            calls.append(1)
            gpu.launch(1e-6)
            if len(calls) == fails_at:
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            benchmark(call, n_repeat=1000, method=method)
        gpu.launch(1e-6)
        gpu.synchronize()

    def test_nested_benchmark_ends(self, gpu):
        def call():
            benchmark(gpu.launch, (1e-6,), n_repeat=1, n_warmup=1)

        result = benchmark(call, n_repeat=1, n_warmup=1)
        assert result.method == "events"


class TestGraph:
    def test_events_are_shared_by_twenty_calls(self, gpu):
        result = benchmark(gpu.launch, (5e-6,), n_repeat=5, method="graph")
        assert result.method == "graph"
        shared = simulated.EVENT_TIME / 20
        assert result.gpu[0].median == pytest.approx(5e-6 + simulated.GRAPH_GAP + shared, abs=50e-9)
        assert result.floor == pytest.approx(shared, rel=0.1)

    def test_what_refuses_capture_is_timed_gated(self, gpu):
        def call():
            gpu.launch(5e-6)
            if gpu.current_stream(0).is_capturing:
                gpu.synchronize()
                gpu.current_stream(0).synchronize()

        result = benchmark(call, n_repeat=5, method="graph")
        assert (result.method, "no-graph" in codes(result)) == ("gated", True)

    @pytest.mark.parametrize("option", [{"setup": nothing}, {"cache": "cold"}])
    def test_what_acts_before_each_call_does_not_fit_a_graph(self, gpu, option):
        result = benchmark(gpu.launch, (5e-6,), n_repeat=5, method="graph", **option)
        assert (result.method, "no-graph" in codes(result)) == ("gated", True)

    def test_replays_whose_gates_expire_give_way_to_events_where_the_call_works(
        self, gpu, monkeypatch
    ):
        take = GraphTimer.take
        monkeypatch.setattr(
            GraphTimer, "take", lambda *args: dataclasses.replace(take(*args), valid=False)
        )
        result = benchmark(gpu.launch, (2e-3,), n_repeat=5, method="graph")
        assert result.method == "events"
        assert "waits-inside" in codes(result)
        assert 2e-3 < result.gpu[0].median < 3e-3

    def test_side_stream_does_not_fit_a_graph(self, gpu):
        stream = gpu.stream()

        def call():
            with stream:
                gpu.launch(50e-6)

        result = benchmark(call, n_repeat=5, method="graph")
        assert {"no-graph", "side-stream"} <= set(codes(result))


class TestWithoutGates:
    def test_no_gate(self, gpu, monkeypatch):
        def refuse():
            raise gpubench.UnsupportedError("launches block")

        monkeypatch.setattr(gpu, "gate", refuse)
        result = benchmark(gpu.launch, (1e-6,), n_repeat=5)
        assert result.method == "events"
        assert "launches block" in str(result)

    def test_no_context_events(self, gpu, monkeypatch):
        def refuse():
            raise gpubench.UnsupportedError("an old driver")

        monkeypatch.setattr(gpu.device(0), "every_stream", refuse)
        result = benchmark(gpu.launch, (10e-6,), n_repeat=5)
        assert result.method == "gated"
        assert result.gpu[0].median < 13e-6
        assert "an old driver" in str(result)


def test_progress_bar(capsys, no_cupy):
    benchmark(nothing, n_repeat=3, progress=True, name="counted")
    assert "counted" in capsys.readouterr().err
    benchmark(nothing, n_repeat=3)
    benchmark(nothing, n_repeat=3, progress=False)
    assert capsys.readouterr().err == ""


def test_same_script_as_with_cupy(no_cupy, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        print(benchmark(sum, ([1, 2],), n_repeat=100))
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("sum                 :    CPU: ")


class TestCompilations:
    @pytest.fixture
    def compiler(self, monkeypatch):
        """A compiler as CuPy's that takes 20 ms."""
        compiler = ModuleType("cupy.cuda.compiler")
        compiler.compile_using_nvrtc = lambda source: time.sleep(0.02)
        compiler._compile_module_with_cache = lambda source: compiler.compile_using_nvrtc(source)
        monkeypatch.setitem(sys.modules, compiler.__name__, compiler)
        return compiler

    @pytest.fixture
    def compile_on(self, compiler):
        """Make a function that compiles a kernel in some of its calls, counted from 0."""

        def compile_on(*calls):
            count = iter(range(1000))

            def f():
                number = next(count)
                if number in calls:
                    compiler._compile_module_with_cache(f"__global__ void k{number}()")

            return f

        return compile_on

    def test_first_call_is_split(self, gpu, compile_on):
        result = benchmark(compile_on(0), n_repeat=3)
        assert [(each.names, each.source) for each in result.compilations] == [(("k0",), "nvrtc")]
        assert 0.02 <= result.first_call_compile_time < result.first_call_time
        assert "compiled-late" not in codes(result)
        (note,) = (note for note in result.notes if note.code == "slow-first-call")
        assert " ms of it to compile, against " in note.message

    def test_what_compiles_while_samples_are_taken_is_noted(self, gpu, compile_on):
        result = benchmark(compile_on(0, 12, 13), n_repeat=5)
        assert [each.names for each in result.compilations] == [("k0",), ("k12",), ("k13",)]
        (note,) = (note for note in result.notes if note.code == "compiled-late")
        assert " ms on compiling (k12, k13) while samples were taken." in note.message

    def test_a_first_call_that_is_a_sample_compiles_late(self, gpu, compile_on):
        result = benchmark(compile_on(0), n_repeat=2, n_warmup=0)
        assert [each.names for each in result.compilations] == [("k0",)]
        assert result.first_call_compile_time is None
        assert "compiled-late" in codes(result)

    def test_what_setup_compiles_is_no_part_of_the_call(self, gpu, compile_on):
        result = benchmark(nothing, setup=compile_on(0), n_repeat=2)
        assert result.compilations == ()
        assert result.first_call_compile_time == 0

    def test_time_that_cannot_be_seen_is_unknown(self, gpu, compiler):
        del compiler.compile_using_nvrtc
        result = benchmark(nothing, n_repeat=2)
        assert result.first_call_time > 0
        assert result.first_call_compile_time is None

    def test_compiling_threads_take_no_longer_than_the_call(self, gpu, compile_on):
        f = compile_on(0, 1, 2)

        def in_threads():
            threads = [threading.Thread(target=f) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        result = benchmark(in_threads, n_repeat=2)
        assert len(result.compilations) == 3
        assert result.first_call_compile_time == result.first_call_time

    def test_without_cupy_nothing_is_compiled(self, no_cupy, monkeypatch):
        monkeypatch.delitem(sys.modules, "cupy.cuda.compiler", raising=False)
        result = benchmark(nothing, n_repeat=2)
        assert result.compilations == ()
        assert "cupy.cuda.compiler" not in sys.modules
