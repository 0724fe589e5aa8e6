import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from example_recordings import Recorded
from printed_times import printed
from recording import Recorder

import gpubench
from gpubench.activity.scope import gpu_clock, timed_block
from gpubench.activity.scope.scoped_timer import ScopedTimer
from gpubench.activity.scope.timing import TIMING_ALL, TIMING_GRAPH, TIMING_KERNEL, TIMING_MEMCPY
from gpubench.devices import primary_contexts
from gpubench.errors import UnsupportedError
from gpubench.ranges import recording as range_recording

# The GPU's time


def test_gpu_time_is_taken_without_waiting(gpu, capsys):
    gpu.launch(0.1)
    with ScopedTimer("t") as timer:
        gpu.launch(0.2)
    assert timer.elapsed < 150
    assert printed(capsys) == ["t took # ms"]
    assert timer.gpu_elapsed == pytest.approx(200, rel=0.01)


def test_gpu_time_does_not_count_what_was_queued_before(gpu):
    gpu.launch(0.1)
    with ScopedTimer("t", print=False) as timer:
        gpu.launch(0.01)
    gpu.launch(0.05)
    assert timer.gpu_elapsed == pytest.approx(10, rel=0.01)


def test_laps_have_gpu_times_too(gpu, capsys):
    gpu.launch(0.1)
    with ScopedTimer("t") as timer:
        gpu.launch(0.01)
        timer.split("first")
        gpu.launch(0.02)
        timer.split("second")
    assert printed(capsys) == ["t: first took # ms", "t: second took # ms", "t took # ms"]
    times = [lap.gpu_elapsed for lap in timer.splits]
    assert times == [pytest.approx(10, rel=0.01), pytest.approx(20, rel=0.01)]
    assert timer.gpu_elapsed == pytest.approx(30, rel=0.01)


def test_gpu_time_is_that_of_the_stream_that_is_current_at_the_beginning(gpu):
    stream = gpu.stream()
    with stream:
        gpu.launch(0.1)
        with ScopedTimer("t", print=False) as timer:
            gpu.launch(0.01)
    assert timer.gpu_elapsed == pytest.approx(10, rel=0.01)


def test_gpu_time_can_be_read_after_the_gpu_is_gone():
    with gpubench.simulated_gpu(jitter=0) as gpu:
        gpu.launch(0.1)
        with ScopedTimer("t", print=False) as timer:
            gpu.launch(0.01)
    assert timer.gpu_elapsed == pytest.approx(10, rel=0.01)


def test_of_several_streams_the_longest_time_counts(gpu, monkeypatch):
    device = gpu.device(0)
    idle, busy = gpu.stream(), gpu.stream()
    monkeypatch.setattr(device, "current_streams", lambda: (idle, busy))
    busy.launch(0.1)
    with ScopedTimer("t", print=False) as timer:
        busy.launch(0.1)
    assert timer.gpu_elapsed == pytest.approx(100, rel=0.01)


@pytest.fixture
def two_gpus():
    with gpubench.simulated_gpu(jitter=0, n_devices=2) as simulated:
        yield simulated


def test_gpu_time_is_that_of_the_device_that_is_current_at_the_beginning(two_gpus):
    two_gpus.use_device(1)
    two_gpus.launch(0.1)
    with ScopedTimer("t", print=False) as timer:
        two_gpus.launch(0.01)
        two_gpus.use_device(0)
        two_gpus.launch(0.05)
    assert two_gpus.current_device() == 0
    assert timer.gpu_elapsed == pytest.approx(10, rel=0.01)


def test_a_block_in_which_work_is_captured_has_no_cupy_time(gpu, capsys):
    device = gpu.device(0)

    def work():
        with ScopedTimer("t") as timer:
            gpu.launch(1e-3, "sqrt")
            timer.split("lap")
        timers.append(timer)

    timers = []
    graph = device.capture(work)
    assert graph.kernel_names == ("sqrt",)
    assert timers[0].gpu_elapsed is None
    assert printed(capsys) == ["t: lap took # ms", "t took # ms"]


def test_with_synchronize_all_devices_are_waited_for(two_gpus, capsys):
    two_gpus.device(1).default_stream.launch(0.3)
    with ScopedTimer("t", synchronize=True) as timer:
        assert all(stream.is_idle for d in (0, 1) for stream in two_gpus.device(d).streams)
        two_gpus.device(1).default_stream.launch(0.02)
        timer.split("lap")
        assert all(stream.is_idle for d in (0, 1) for stream in two_gpus.device(d).streams)
        two_gpus.launch(0.03)
    assert 50 <= timer.elapsed < 300
    assert 20 <= timer.splits[0].elapsed < timer.elapsed - 30
    assert two_gpus.current_device() == 0
    assert printed(capsys) == ["t: lap took # ms (GPU # ms)", "t took # ms (GPU # ms)"]


def test_the_gpus_time_stands_before_the_extra_message(gpu, capsys):
    with ScopedTimer("t", synchronize=True) as timer:
        gpu.launch(0.01)
        timer.extra_msg = "(cold)"
    assert printed(capsys) == ["t took # ms (GPU # ms) (cold)"]


# Which devices are used


def test_the_host_waits_when_the_time_is_asked_for_and_the_device_stays_current(
    fake_cuda, monkeypatch
):
    monkeypatch.setattr(primary_contexts, "_driver", lambda: None)
    fake_cuda.n_devices = 2
    fake_cuda.device = 1
    with ScopedTimer("t", print=False) as timer:
        fake_cuda.work(2e-3)
        fake_cuda.device = 0
    assert fake_cuda.device == 0
    assert fake_cuda.log == ["record on 0", "work on 0", "record on 0"]
    assert timer.gpu_elapsed == pytest.approx(2)
    assert fake_cuda.log[3:] == ["synchronize device 1"]
    assert fake_cuda.device == 0
    assert timer.gpu_elapsed == pytest.approx(2)
    assert len(fake_cuda.log) == 4


class Driver:
    """As much of CUDA's driver library as tells which devices are in use."""

    def __init__(self, n_devices, used):
        self._n_devices = n_devices
        self._used = used

    def cuDeviceGetCount(self, count):  # noqa: N802  # CUDA's name
        if self._n_devices is None:
            return 3  # not initialized
        count._obj.value = self._n_devices
        return 0

    def cuDevicePrimaryCtxGetState(self, device, flags, active):  # noqa: N802
        active._obj.value = device in self._used
        return 0


@pytest.fixture
def asked(monkeypatch):
    """How often the platform was asked for, which initializes CUDA."""
    calls = []
    platform = gpu_clock.current_platform

    def current_platform():
        calls.append("platform")
        return platform()

    monkeypatch.setattr(gpu_clock, "current_platform", current_platform)
    return calls


@pytest.mark.parametrize("driver", [Driver(None, ()), Driver(2, ())])
def test_a_timer_does_not_begin_to_use_a_gpu(fake_cuda, monkeypatch, asked, driver):
    monkeypatch.setattr(primary_contexts, "_driver", lambda: driver)
    with ScopedTimer("t", print=False, synchronize=True) as timer:
        pass
    assert asked == []
    assert timer.gpu_elapsed is None


def test_without_a_driver_or_cupy_nothing_is_asked(monkeypatch, asked):
    monkeypatch.setattr(primary_contexts, "_driver", lambda: None)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    with ScopedTimer("t", print=False, synchronize=True):
        pass
    assert asked == []


def test_a_device_that_is_current_but_unused_is_left_alone(fake_cuda, monkeypatch):
    fake_cuda.n_devices = 2
    monkeypatch.setattr(primary_contexts, "_driver", lambda: Driver(2, {1}))
    timer = ScopedTimer("t", print=False)
    with timer:
        fake_cuda.work(1e-3)
    assert timer.gpu_elapsed is None
    assert fake_cuda.events == {}
    fake_cuda.device = 1
    with timer:
        fake_cuda.work(1e-3)
    assert timer.gpu_elapsed == pytest.approx(1)


# Ranges


@pytest.fixture
def ranges(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(range_recording, "backend", lambda: recorder.backend)
    return recorder


def test_a_range_of_the_color_is_opened_and_the_time_printed_too(ranges, no_cupy, capsys):
    with ScopedTimer("Demo", use_nvtx=True, color="yellow"):
        ranges.calls.append("body")
    assert ranges.calls == ["start Demo as 0", "body", "end 0"]
    assert [(label.message, label.color) for label in ranges.labels] == [("Demo", 0xFFFFFF00)]
    assert printed(capsys) == ["Demo took # ms"]


def test_the_range_is_closed_when_the_body_raises(ranges, no_cupy, capsys):
    with pytest.raises(KeyError), ScopedTimer("Demo", use_nvtx=True):
        raise KeyError
    assert ranges.calls == ["start Demo as 0", "end 0"]


def test_the_range_covers_the_waiting_at_its_end(ranges, monkeypatch, capsys):
    monkeypatch.setattr(timed_block, "wait_for_gpus", lambda: ranges.calls.append("wait"))
    with ScopedTimer("Demo", use_nvtx=True, synchronize=True):
        ranges.calls.append("body")
    assert ranges.calls == ["wait", "start Demo as 0", "body", "wait", "end 0"]


def test_ranges_of_generators_may_overlap(ranges, no_cupy, capsys):
    @ScopedTimer("t", use_nvtx=True)
    def numbers():
        yield 1

    first, second = numbers(), numbers()
    next(first)
    next(second)
    first.close()
    second.close()
    assert ranges.calls == ["start t as 0", "start t as 1", "end 0", "end 1"]


def test_without_use_nvtx_there_is_no_range(ranges, no_cupy, capsys):
    with ScopedTimer("Demo", color="yellow"):
        pass
    assert ranges.calls == []


# Activities


class StandIn:
    """A recorder that delivers what it is told to."""

    def __init__(self):
        self.log = []
        self.refusal = None
        self.late_refusal = None
        self.recording = Recorded().recording(10)

    def deliver(self, *names):
        recorded = Recorded()
        for name in names:
            recorded.launch(name, 0, 10, 5)
        self.recording = recorded.recording(100)

    @contextmanager
    def record_activity(self, kinds=None, *, synchronize=True):
        if self.refusal:
            raise UnsupportedError(self.refusal)
        self.log.append(f"record {' '.join(kinds)}")
        trace = SimpleNamespace(recording=None)
        yield trace
        self.log.append("end")
        if self.late_refusal:
            raise UnsupportedError(self.late_refusal)
        trace.recording = self.recording


@pytest.fixture
def recorder(monkeypatch, no_cupy):
    stand_in = StandIn()
    module = SimpleNamespace(record_activity=stand_in.record_activity)
    monkeypatch.setitem(sys.modules, "gpubench.activity.recorder", module)
    monkeypatch.setattr(timed_block, "wait_for_gpus", lambda: stand_in.log.append("wait"))
    return stand_in


def test_activities_are_listed_before_the_time_at_its_indentation(recorder, capsys):
    recorder.deliver("sqrt", "sum")
    with ScopedTimer("outer"), ScopedTimer("Demo", activity_filter=TIMING_KERNEL) as timer:
        recorder.log.append("body")
    assert recorder.log == ["wait", "record kernel", "body", "wait", "end"]
    assert [result.name for result in timer.timing_results] == ["sqrt", "sum"]
    *tables, line, last = printed(capsys)
    assert all(row.startswith("    ") for row in tables if row)
    assert any("sqrt" in row for row in tables)
    assert (line, last) == ("    Demo took # ms", "outer took # ms")


def test_report_func_is_called_instead(recorder, capsys):
    recorder.deliver("sqrt")
    reports = []

    def report(results, prefix):
        reports.append((results, prefix))

    timer = ScopedTimer("t", activity_filter=TIMING_ALL, report_func=report)
    with ScopedTimer("outer"), timer:
        pass
    ((results, prefix),) = reports
    assert results is timer.timing_results
    assert prefix == "    "
    assert printed(capsys) == ["    t took # ms", "outer took # ms"]


@pytest.mark.parametrize(
    ("names", "options"), [(["sqrt"], {"print": False}), ([], {"print": True})]
)
def test_there_is_no_report_of_nothing_or_where_nothing_is_printed(recorder, names, options):
    recorder.deliver(*names)
    reports = []

    def report(*arguments):
        reports.append(arguments)

    with ScopedTimer("t", activity_filter=TIMING_ALL, report_func=report, **options) as timer:
        pass
    assert reports == []
    assert [result.name for result in timer.timing_results] == names


def test_where_nothing_can_be_recorded_the_time_is_taken_and_the_reason_told(recorder, capsys):
    recorder.refusal = "cupti-python is not installed; pip install it"
    with ScopedTimer("outer"), ScopedTimer("t", activity_filter=TIMING_ALL) as timer:
        pass
    assert timer.timing_results == []
    assert timer.elapsed > 0
    assert printed(capsys) == [
        "    kernels, copies, sets, graph launches aren't listed: "
        "cupti-python is not installed; pip install it",
        "    t took # ms",
        "outer took # ms",
    ]


def test_the_reason_is_told_also_if_recording_fails_at_the_end(recorder, capsys):
    recorder.late_refusal = "the records can't be read"
    with ScopedTimer("t", activity_filter=TIMING_MEMCPY) as timer:
        pass
    assert timer.timing_results == []
    assert printed(capsys) == [
        "copies aren't listed: the records can't be read",
        "t took # ms",
    ]


def test_without_a_gpu_the_reason_is_told(no_cupy, capsys):
    with ScopedTimer("t", activity_filter=TIMING_GRAPH):
        pass
    reason, line = printed(capsys)
    assert reason.startswith("graph launches aren't listed: no GPU found")
    assert line == "t took # ms"


def test_recording_ends_when_the_body_raises(recorder):
    recorder.deliver("sqrt")
    with pytest.raises(KeyError), ScopedTimer("t", print=False, activity_filter=1) as timer:
        raise KeyError
    assert recorder.log[-1] == "end"
    assert [result.name for result in timer.timing_results] == ["sqrt"]


def test_activities_of_a_simulated_gpu_and_its_time(gpu, capsys):
    gpu.launch(1e-3, "before")
    with ScopedTimer("t", activity_filter=TIMING_ALL) as timer:
        gpu.launch(2e-3, "sqrt")
        with ScopedTimer("inner", print=False, activity_filter=TIMING_ALL) as inner:
            gpu.launch(1e-3, "sum")
    gpu.launch(1e-3, "after")
    assert [result.name for result in timer.timing_results] == ["sqrt", "sum"]
    assert [result.name for result in inner.timing_results] == ["sum"]
    assert printed(capsys)[-1] == "t took # ms (GPU # ms)"


# Failures


class ReportError(Exception):
    pass


def fail(*_):
    raise ReportError("the report")


def test_a_failing_report_does_not_hide_the_bodys_exception(recorder, capsys):
    recorder.deliver("sqrt")
    timer = ScopedTimer("t", activity_filter=TIMING_ALL, report_func=fail)
    with pytest.raises(KeyError) as caught, timer:
        raise KeyError("x")
    if sys.version_info >= (3, 11):
        assert "the report" in caught.value.__notes__[0]


def test_a_failing_report_is_raised_and_the_next_block_is_as_ever(recorder, capsys):
    recorder.deliver("sqrt")
    timer = ScopedTimer("t", activity_filter=TIMING_ALL, report_func=fail)
    with pytest.raises(ReportError), timer:
        pass
    with ScopedTimer("after"):
        pass
    assert printed(capsys) == ["after took # ms"]
