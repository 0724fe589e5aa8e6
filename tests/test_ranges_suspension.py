import asyncio
import contextlib
import functools
import inspect
import types

import pytest
from recording import Recorder

from gpubench.ranges import recording, time_range


@pytest.fixture
def recorder(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(recording, "backend", lambda: recorder.backend)
    return recorder


# Coroutine functions


def test_coroutine_is_covered_from_first_step_to_end(recorder):
    @time_range()
    async def f(x):
        recorder.calls.append("before")
        await asyncio.sleep(0)
        recorder.calls.append("after")
        return x

    assert inspect.iscoroutinefunction(f)
    coroutine = f(5)
    assert recorder.calls == []
    assert asyncio.run(coroutine) == 5
    assert recorder.calls == ["start f as 0", "before", "after", "end 0"]


def test_coroutine_that_raises_or_is_cancelled_ends_its_range(recorder):
    @time_range()
    async def failing():
        raise KeyError

    @time_range()
    async def endless():
        await asyncio.sleep(1000)

    with pytest.raises(KeyError):
        asyncio.run(failing())
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(endless(), 0.01))
    assert recorder.calls == ["start failing as 0", "end 0", "start endless as 1", "end 1"]


class Sleeper:
    async def __call__(self):
        await asyncio.sleep(0)
        return "slept"


@pytest.mark.parametrize("func", [Sleeper(), functools.partial(Sleeper()), Sleeper().__call__])
def test_any_asynchronous_callable_is_covered(recorder, func):
    wrapped = time_range("r")(func)
    assert inspect.iscoroutinefunction(wrapped)
    assert asyncio.run(wrapped()) == "slept"
    assert recorder.calls == ["start r as 0", "end 0"]


def test_tasks_share_one_range(recorder):
    shared = time_range("shared")

    async def task(until, then):
        with shared:
            await until.wait()
            recorder.calls.append("first ends" if then else "second ends")
        if then:
            then.set()

    async def main():
        first_may_end, second_may_end = asyncio.Event(), asyncio.Event()
        tasks = asyncio.gather(task(first_may_end, second_may_end), task(second_may_end, None))
        await asyncio.sleep(0)
        first_may_end.set()
        await tasks

    asyncio.run(main())
    assert recorder.calls == [
        *("start shared as 0", "start shared as 1"),
        *("first ends", "end 0", "second ends", "end 1"),
    ]


def test_tasks_share_one_range_through_exit_stacks(recorder):
    shared = time_range("shared")

    async def task(until):
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(shared)
            await until.wait()

    async def main():
        first_may_end, second_may_end = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(task(first_may_end))
        second = asyncio.create_task(task(second_may_end))
        await asyncio.sleep(0)
        first_may_end.set()
        await first
        second_may_end.set()
        await second

    asyncio.run(main())
    assert recorder.calls == ["start shared as 0", "start shared as 1", "end 0", "end 1"]


def test_callback_of_an_event_loop_is_covered(recorder):
    async def main():
        done = asyncio.Event()

        def callback():
            with contextlib.ExitStack() as stack:
                stack.enter_context(time_range("callback"))
            done.set()

        asyncio.get_running_loop().call_soon(callback)
        await done.wait()

    asyncio.run(main())
    assert recorder.calls == ["start callback as 0", "end 0"]


def test_coroutine_driven_without_an_event_loop(recorder):
    shared = time_range("r")

    @types.coroutine
    def pause():
        yield

    async def f():
        with shared:
            await pause()

    first, second = f(), f()
    first.send(None)
    second.send(None)
    first.close()
    second.close()
    assert recorder.calls == ["start r as 0", "start r as 1", "end 0", "end 1"]


# Generators


def echo(calls):
    """Yield what is sent, and the names of exceptions thrown; return the word "done"."""
    received = "first"
    try:
        while received != "stop":
            try:
                received = yield received
            except ValueError as error:
                received = f"caught {error}"
    finally:
        calls.append("body ends")
    return "done"


def test_generator_is_covered_from_first_next_to_end(recorder):
    wrapped = time_range()(echo)
    assert inspect.isgeneratorfunction(wrapped)
    generator = wrapped(recorder.calls)
    assert recorder.calls == []
    assert next(generator) == "first"
    assert recorder.calls == ["start echo as 0"]
    assert generator.send("x") == "x"
    assert generator.throw(ValueError("me")) == "caught me"
    assert recorder.calls == ["start echo as 0"]
    with pytest.raises(StopIteration) as stop:
        generator.send("stop")
    assert stop.value.value == "done"
    assert recorder.calls == ["start echo as 0", "body ends", "end 0"]


def test_generator_ends_its_range_when_closed_or_raising(recorder):
    wrapped = time_range()(echo)
    closed, raising, unstarted = (wrapped(recorder.calls) for _ in range(3))
    next(closed)
    next(raising)
    closed.close()
    unstarted.close()
    with pytest.raises(KeyError):
        raising.throw(KeyError("x"))
    assert recorder.calls == [
        *("start echo as 0", "start echo as 1"),
        *("body ends", "end 0", "body ends", "end 1"),
    ]


def test_generator_ends_its_range_when_dropped(recorder):
    generator = time_range()(echo)(recorder.calls)
    next(generator)
    del generator
    assert recorder.calls == ["start echo as 0", "body ends", "end 0"]


def test_blocks_in_generators_interleave(recorder):
    shared = time_range("r")

    def steps():
        with shared:
            yield
            with shared:
                yield

    first, second = steps(), steps()
    next(first)
    next(second)
    next(first)
    first.close()
    second.close()
    assert recorder.calls == [
        *("start r as 0", "start r as 1", "start r as 2"),
        *("end 2", "end 0", "end 1"),
    ]


def test_context_manager_made_of_a_generator(recorder):
    @contextlib.contextmanager
    def section():
        with time_range("section"):
            yield

    with section(), time_range("inner"):
        pass
    assert recorder.calls == ["start section as 0", "push inner", "pop inner", "end 0"]


# Asynchronous generators


async def async_echo(calls):
    """Do as `echo` does."""
    received = "first"
    try:
        while received != "stop":
            await asyncio.sleep(0)
            try:
                received = yield received
            except ValueError as error:
                received = f"caught {error}"
    finally:
        await asyncio.sleep(0)
        calls.append("body ends")


def test_async_generator_is_covered_from_first_step_to_end(recorder):
    wrapped = time_range()(async_echo)
    assert inspect.isasyncgenfunction(wrapped)

    async def main():
        generator = wrapped(recorder.calls)
        assert recorder.calls == []
        assert await generator.__anext__() == "first"
        assert await generator.asend("x") == "x"
        assert await generator.athrow(ValueError("me")) == "caught me"
        assert recorder.calls == ["start async_echo as 0"]
        with pytest.raises(StopAsyncIteration):
            await generator.asend("stop")

    asyncio.run(main())
    assert recorder.calls == ["start async_echo as 0", "body ends", "end 0"]


def test_async_generator_ends_its_range_when_closed_or_raising(recorder):
    wrapped = time_range()(async_echo)

    async def main():
        closed, raising = wrapped(recorder.calls), wrapped(recorder.calls)
        await closed.__anext__()
        await raising.__anext__()
        await closed.aclose()
        with pytest.raises(KeyError):
            await raising.athrow(KeyError("x"))

    asyncio.run(main())
    assert recorder.calls == [
        *("start async_echo as 0", "start async_echo as 1"),
        *("body ends", "end 0", "body ends", "end 1"),
    ]


def test_async_for_gets_every_item(recorder):
    @time_range()
    async def count(n):
        for i in range(n):
            yield i

    async def main():
        return [i async for i in count(3)]

    assert asyncio.run(main()) == [0, 1, 2]
    assert recorder.calls == ["start count as 0", "end 0"]


def test_block_is_closed_from_another_task(recorder):
    shared = time_range("fixture")

    async def fixture():
        with shared:
            yield

    async def step(awaitable):
        await awaitable

    async def main():
        first, second = fixture(), fixture()
        await asyncio.create_task(step(first.__anext__()))
        await asyncio.create_task(step(second.__anext__()))
        await asyncio.create_task(step(first.aclose()))
        await asyncio.create_task(step(second.aclose()))

    asyncio.run(main())
    assert recorder.calls == ["start fixture as 0", "start fixture as 1", "end 0", "end 1"]


def test_block_is_opened_and_closed_by_two_coroutines(recorder):
    class Section:
        def __init__(self):
            self.range = time_range("section")

        async def __aenter__(self):
            self.range.__enter__()

        async def __aexit__(self, *error):
            self.range.__exit__(*error)

    async def main():
        async with Section():
            recorder.calls.append("body")

    asyncio.run(main())
    assert recorder.calls == ["start section as 0", "body", "end 0"]


def test_block_opened_in_plain_code_is_closed_in_a_coroutine(recorder):
    stack = contextlib.ExitStack()
    stack.enter_context(time_range("r"))

    async def main():
        stack.close()

    asyncio.run(main())
    assert recorder.calls == ["push r", "pop r"]


def test_block_left_by_hand_in_another_task_ends_its_own_range(recorder):
    block = time_range("a")

    async def leave():
        block.__exit__(None, None, None)

    async def main():
        block.__enter__()
        await asyncio.create_task(leave())

    asyncio.run(main())
    assert recorder.calls == ["start a as 0", "end 0"]
