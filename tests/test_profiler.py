import asyncio
import contextlib
import sys
import threading
import types
import warnings

import pytest

from gpubench.devices.host import HostPlatform
from gpubench.ranges import profile, profiler


class FakeCuda:
    """Enough of ``cupy.cuda``: a current device, and a profiler that writes down its calls."""

    name = "cuda"

    def __init__(self):
        self.current = 0
        self.calls = []
        self.failures = {}
        self.runtime = types.SimpleNamespace(
            profilerStart=lambda: self._call("start"), profilerStop=lambda: self._call("stop")
        )

    def _call(self, what):
        self.calls.append(f"{what} on {self.current}")
        if what in self.failures:
            raise self.failures[what]

    def current_device(self):
        return self.current

    @contextlib.contextmanager
    def Device(self, device_id):  # noqa: N802
        previous, self.current = self.current, device_id
        try:
            yield
        finally:
            self.current = previous


@pytest.fixture
def cuda(monkeypatch):
    cuda = FakeCuda()
    monkeypatch.setattr(profiler, "current_platform", lambda: cuda)
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))
    return cuda


@pytest.fixture
def no_gpu(monkeypatch):
    platform = HostPlatform("there is no NVIDIA driver; install one")
    monkeypatch.setattr(profiler, "current_platform", lambda: platform)


def test_block_starts_and_stops_the_profiler(cuda):
    with profile():
        cuda.calls.append("body")
    assert cuda.calls == ["start on 0", "body", "stop on 0"]


def test_profiler_stops_when_the_body_raises(cuda):
    with pytest.raises(KeyError), profile():
        raise KeyError
    assert cuda.calls == ["start on 0", "stop on 0"]


def test_error_of_the_body_wins_over_a_failing_stop(cuda):
    cuda.failures["stop"] = RuntimeError("context is destroyed")
    with pytest.raises(KeyError) as caught, profile():
        raise KeyError("x")
    if sys.version_info >= (3, 11):
        note = "Leaving the block failed too: RuntimeError('context is destroyed')"
        assert caught.value.__notes__ == [note]
    assert cuda.calls == ["start on 0", "stop on 0"]


def test_failing_stop_is_reported_after_a_body_that_succeeded(cuda):
    cuda.failures["stop"] = RuntimeError("context is destroyed")
    with pytest.raises(RuntimeError, match="context is destroyed"), profile():
        pass


def test_failures_leave_the_count_right(cuda):
    cuda.failures = {"start": RuntimeError("no"), "stop": RuntimeError("no")}
    with pytest.raises(RuntimeError), profile():
        cuda.calls.append("never")
    del cuda.failures["start"]
    with pytest.raises(RuntimeError), profile():
        pass
    cuda.failures.clear()
    with profile():
        pass
    assert cuda.calls == ["start on 0", "start on 0", "stop on 0", "start on 0", "stop on 0"]


def test_only_the_outermost_block_starts_and_stops(cuda):
    again = profile()
    with again, profile(), again:
        cuda.calls.append("body")
    assert cuda.calls == ["start on 0", "body", "stop on 0"]


def test_blocks_of_several_threads_are_counted_together(cuda):
    entered, may_leave = threading.Event(), threading.Event()

    def work():
        with profile():
            entered.set()
            may_leave.wait(10)

    thread = threading.Thread(target=work)
    with profile():
        thread.start()
        assert entered.wait(10)
    assert cuda.calls == ["start on 0"]
    may_leave.set()
    thread.join(10)
    assert cuda.calls == ["start on 0", "stop on 0"]


def test_stop_is_on_the_device_of_the_start_and_leaves_the_current_one(cuda):
    cuda.current = 1
    with profile():
        cuda.current = 2
    assert cuda.calls == ["start on 1", "stop on 1"]
    assert cuda.current == 2


def test_decorated_functions_of_every_kind_are_profiled(cuda):
    @profile()
    def plain():
        cuda.calls.append("plain")

    @profile()
    async def coroutine():
        await asyncio.sleep(0)
        cuda.calls.append("coroutine")

    @profile()
    def generator():
        yield
        cuda.calls.append("generator")

    @profile()
    async def async_generator():
        yield
        cuda.calls.append("async generator")

    async def consume():
        async for _ in async_generator():
            pass

    plain()
    asyncio.run(coroutine())
    list(generator())
    asyncio.run(consume())
    assert cuda.calls == [
        *("start on 0", "plain", "stop on 0"),
        *("start on 0", "coroutine", "stop on 0"),
        *("start on 0", "generator", "stop on 0"),
        *("start on 0", "async generator", "stop on 0"),
    ]


MESSAGE = "profile() records nothing: there is no NVIDIA driver; install one"


def line_of_warning(caught):
    """Return the line of this file that the one warning blames."""
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert str(warning.message) == MESSAGE
    assert warning.filename == __file__
    return warning.lineno


def test_block_without_a_gpu_warns_where_it_stands(no_gpu):
    done = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = sys._getframe().f_lineno + 1
        with profile(), profile():
            done = True
    assert done
    assert line_of_warning(caught) == line


def test_decorator_without_a_gpu_warns_where_the_call_stands(no_gpu):
    double = profile()(lambda x: 2 * x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert double(2) == 4
        line = sys._getframe().f_lineno - 1
    assert line_of_warning(caught) == line


def test_exit_stack_without_a_gpu_warns_where_it_is_entered(no_gpu):
    with warnings.catch_warnings(record=True) as caught, contextlib.ExitStack() as stack:
        warnings.simplefilter("always")
        stack.enter_context(profile())
        line = sys._getframe().f_lineno - 1
    assert line_of_warning(caught) == line


def test_error_of_the_body_passes_without_a_gpu(no_gpu):
    with pytest.warns(RuntimeWarning, match="records nothing"), pytest.raises(KeyError), profile():
        raise KeyError


def test_simulated_gpu_has_no_profiler(monkeypatch):
    platform = types.SimpleNamespace(name="simulated")
    monkeypatch.setattr(profiler, "current_platform", lambda: platform)
    with pytest.warns(RuntimeWarning, match="a simulated GPU has no profiler"), profile():
        pass
