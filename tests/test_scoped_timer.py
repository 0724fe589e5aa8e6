import asyncio
import functools
import inspect
import pickle
import re
import threading
import time
from collections import defaultdict
from contextlib import AsyncExitStack, ExitStack
from types import MappingProxyType, SimpleNamespace

import pytest
from printed_times import printed

from gpubench.activity.scope import timed_block
from gpubench.activity.scope.scoped_timer import ScopedTimer
from gpubench.activity.scope.timing import TIMING_ALL
from gpubench.errors import ArgumentError, UnsupportedError


@pytest.fixture
def clock(monkeypatch, no_cupy):
    """A host's clock that is set by hand, in ms."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(timed_block, "perf_counter_ns", lambda: round(clock.now * 1e6))
    return clock


# The line


def test_arguments_are_warps():
    parameters = inspect.signature(ScopedTimer).parameters
    assert {name: p.default for name, p in parameters.items()} == {
        "name": inspect.Parameter.empty,
        "active": True,
        "print": True,
        "detailed": False,
        "dict": None,
        "use_nvtx": False,
        "color": "rapids",
        "synchronize": False,
        "activity_filter": 0,
        "report_func": None,
    }


def test_line_is_warps(clock, capsys):
    with ScopedTimer("Demo") as timer:
        clock.now += 0.5216
    assert capsys.readouterr().out == "Demo took 0.52 ms\n"
    assert timer.elapsed == pytest.approx(0.5216)


def test_nested_blocks_are_indented(clock, capsys):
    with ScopedTimer("outer"):
        clock.now += 1
        with ScopedTimer("inner"):
            clock.now += 2
            with ScopedTimer("innermost"):
                clock.now += 4
        with ScopedTimer("second"):
            pass
    assert capsys.readouterr().out == (
        "        innermost took 4.00 ms\n"
        "    inner took 6.00 ms\n"
        "    second took 0.00 ms\n"
        "outer took 7.00 ms\n"
    )


@pytest.mark.parametrize("silent", [{"print": False}, {"active": False}])
def test_blocks_that_print_nothing_indent_nothing(no_cupy, capsys, silent):
    with ScopedTimer("outer"), ScopedTimer("silent", **silent), ScopedTimer("inner"):
        pass
    assert printed(capsys) == ["    inner took # ms", "outer took # ms"]


def test_extra_message_ends_the_line_of_its_block(no_cupy, capsys):
    timer = ScopedTimer("t")
    with timer:
        timer.extra_msg = "outer"
        with timer:
            assert timer.extra_msg == ""
            timer.extra_msg = "inner"
        assert timer.extra_msg == "outer"
    timer.extra_msg = "always"
    with timer:
        pass
    with timer:
        pass
    assert printed(capsys) == [
        "    t took # ms inner",
        "t took # ms outer",
        "t took # ms always",
        "t took # ms always",
    ]


def test_results_are_empty_before_the_first_block_has_ended(no_cupy):
    timer = ScopedTimer("t", print=False)
    with timer:
        values = timer.elapsed, timer.gpu_elapsed, timer.timing_results, timer.splits
    assert values == (0.0, None, [], ())


def test_without_print_the_time_is_still_taken(clock, capsys):
    with ScopedTimer("t", print=False) as timer:
        clock.now += 3
    assert capsys.readouterr().out == ""
    assert timer.elapsed == 3


def test_without_a_gpu_there_is_no_cupy_time(no_cupy, capsys):
    with ScopedTimer("t", synchronize=True) as timer:
        pass
    assert printed(capsys) == ["t took # ms"]
    assert timer.gpu_elapsed is None


# The dict


def test_times_are_appended_to_the_list_in_the_dict(clock):
    times = {"other": [1.0]}
    timer = ScopedTimer("t", print=False, dict=times)
    assert times == {"other": [1.0], "t": []}
    for elapsed in (2, 3):
        with timer:
            clock.now += elapsed
    assert times == {"other": [1.0], "t": [pytest.approx(2), pytest.approx(3)]}


def test_a_list_that_is_there_grows_and_one_that_is_gone_comes_again(clock):
    times = defaultdict(list, t=[1.0])
    timer = ScopedTimer("t", print=False, dict=times)
    with timer:
        pass
    assert times == {"t": [1.0, 0.0]}
    times.clear()
    with timer:
        pass
    assert times == {"t": [0.0]}


@pytest.mark.parametrize("wrong", [[], 3, "x", (), MappingProxyType({}), {"t"}])
def test_what_is_no_dict_is_refused(wrong):
    with pytest.raises(ArgumentError, match="dict must be a dict or None"):
        ScopedTimer("t", dict=wrong)


def test_a_dict_with_something_else_than_a_list_is_refused():
    with pytest.raises(ArgumentError, match=r"list as 't', got \(1,\)"):
        ScopedTimer("t", dict={"t": (1,)})


# Arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": 3}, "name must be a string, got 3"),
        ({"name": test_arguments_are_warps}, 'write @ScopedTimer("name")'),
        ({"color": "puce"}, "color must be 0xAARRGGBB or one of"),
        ({"color": -1}, "color"),
        ({"activity_filter": "all"}, "activity_filter must be an integer, got 'all'"),
        ({"activity_filter": -1}, "activity_filter must be at least 0"),
        ({"report_func": "print"}, "report_func must be callable or None, got 'print'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        ScopedTimer(**{"name": "t", **arguments})


# Timers that are switched off


def test_an_inactive_timer_does_nothing(gpu, capsys):
    times = {}
    timer = ScopedTimer(
        "t", False, detailed=True, dict=times, synchronize=True, activity_filter=TIMING_ALL
    )

    @timer
    def work():
        gpu.launch(1e-3)
        return timer.split("nothing")

    with timer as entered:
        assert entered is timer
        timer.split("nothing")
    begin = time.perf_counter()
    assert work() is None
    gpu.synchronize()
    assert time.perf_counter() - begin >= 1e-3
    assert capsys.readouterr().out == ""
    assert (times, timer.elapsed, timer.gpu_elapsed, timer.splits) == ({"t": []}, 0.0, None, ())
    assert [op.name for op in gpu.history] == ["kernel"]


def test_timers_made_while_they_are_disabled_do_nothing(no_cupy, capsys, monkeypatch):
    before = ScopedTimer("before")
    monkeypatch.setattr(ScopedTimer, "enabled", False)
    within = ScopedTimer("within")
    with before, within:
        pass
    monkeypatch.setattr(ScopedTimer, "enabled", True)
    with within:
        pass
    assert printed(capsys) == ["before took # ms"]


# Exceptions


def test_the_bodys_exception_goes_on_and_the_time_is_printed(clock, capsys):
    raised = KeyError("x")
    times = {}

    @ScopedTimer("t", dict=times)
    def work():
        clock.now += 2
        raise raised

    with pytest.raises(KeyError) as caught:
        work()
    assert caught.value is raised
    with ScopedTimer("after"):
        pass
    assert capsys.readouterr().out == "t took 2.00 ms\nafter took 0.00 ms\n"
    assert times == {"t": [2.0]}


# Decorated functions


def test_each_call_of_a_decorated_function_is_timed(no_cupy, capsys):
    times = {}

    @ScopedTimer("work", dict=times)
    def double(x):
        """Double it."""
        return 2 * x

    assert [double(1), double(2)] == [2, 4]
    assert (double.__name__, double.__doc__) == ("double", "Double it.")
    assert len(times["work"]) == 2
    assert printed(capsys) == ["work took # ms"] * 2


def test_a_recursive_function_is_indented_by_depth(clock, capsys):
    @ScopedTimer("f")
    def f(depth):
        clock.now += 1
        if depth:
            f(depth - 1)

    f(2)
    assert capsys.readouterr().out == (
        "        f took 1.00 ms\n    f took 2.00 ms\nf took 3.00 ms\n"
    )


def test_the_body_of_a_coroutine_function_is_timed(no_cupy):
    timer = ScopedTimer("t", print=False)

    @timer
    async def work():
        await asyncio.sleep(0.02)
        return 5

    assert asyncio.run(work()) == 5
    assert timer.elapsed >= 20


def test_the_body_of_a_generator_is_timed_to_its_end(clock):
    timer = ScopedTimer("t", print=False)

    @timer
    def numbers():
        clock.now += 1
        yield 1
        clock.now += 1
        yield 2

    produced = numbers()
    clock.now += 100  # nothing runs before the first step
    for _ in produced:
        clock.now += 10
    assert timer.elapsed == 22


def test_the_body_of_an_asynchronous_generator_is_timed_to_its_end(clock):
    timer = ScopedTimer("t", print=False)

    @timer
    async def numbers():
        clock.now += 1
        yield 1
        clock.now += 1

    async def consume():
        return [number async for number in numbers()]

    assert asyncio.run(consume()) == [1]
    assert timer.elapsed == 2


def test_a_generator_that_is_dropped_ends_its_block(clock, capsys):
    @ScopedTimer("t")
    def numbers():
        yield 1

    produced = numbers()
    next(produced)
    clock.now += 1
    produced.close()
    with ScopedTimer("after"):
        pass
    assert capsys.readouterr().out == "t took 1.00 ms\nafter took 0.00 ms\n"


def test_timers_travel_to_other_processes(clock, capsys):
    timer = ScopedTimer("t", use_nvtx=True, color="red", activity_filter=0, synchronize=True)
    with timer:
        timer.split("lap")
    capsys.readouterr()
    copy = pickle.loads(pickle.dumps(timer))
    with copy:
        clock.now += 2
    assert capsys.readouterr().out == "t took 2.00 ms\n"
    assert copy.splits == ()


# One object, several blocks


def test_one_object_nested_in_itself_times_both_blocks(clock):
    timer = ScopedTimer("t", print=False)
    with timer:
        clock.now += 1
        with timer:
            clock.now += 2
        assert timer.elapsed == 2
    assert timer.elapsed == 3


def in_threads(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_begin_without_indentation(no_cupy, capsys):
    def work():
        with ScopedTimer("thread"), ScopedTimer("inner"):
            pass

    with ScopedTimer("main"):
        in_threads(work)
    assert printed(capsys) == ["    inner took # ms", "thread took # ms", "main took # ms"]


def test_threads_that_share_a_timer_get_their_own_results(no_cupy, capsys):
    timer = ScopedTimer("t")
    both = threading.Barrier(2)
    found = {}

    def work(name, seconds):
        with timer:
            both.wait()
            timer.extra_msg = name
            timer.split(name)
            time.sleep(seconds)
        both.wait()
        found[name] = timer.elapsed, [lap.label for lap in timer.splits]

    in_threads(functools.partial(work, "short", 0.01), functools.partial(work, "long", 0.2))
    (short, short_laps), (long, long_laps) = found["short"], found["long"]
    assert 10 <= short < 150
    assert long >= 200
    assert (short_laps, long_laps) == (["short"], ["long"])
    assert printed(capsys)[2:] == ["t took # ms short", "t took # ms long"]
    assert timer.elapsed == long  # this thread has ended none: it's the last of all


def test_tasks_that_share_a_timer_get_their_own_results(clock, capsys):
    timer = ScopedTimer("t")

    async def work(name, steps):
        with timer:
            timer.extra_msg = name
            for _ in range(steps):
                clock.now += 1
                await asyncio.sleep(0)
            timer.split(name)
        return timer.elapsed, [lap.label for lap in timer.splits]

    async def main():
        with ScopedTimer("main"):
            return await asyncio.gather(work("a", 2), work("b", 4))

    first, second = asyncio.run(main())
    assert first == (pytest.approx(4), ["a"])
    assert second == (pytest.approx(5), ["b"])
    assert capsys.readouterr().out == (
        "    t: a took 4.00 ms\n"
        "    t took 4.00 ms a\n"
        "    t: b took 5.00 ms\n"
        "    t took 5.00 ms b\n"
        "main took 6.00 ms\n"
    )


def test_tasks_that_interleave_are_indented_by_their_own_depth(no_cupy, capsys):
    async def work(name, depth):
        with ExitStack() as stack:
            for level in range(depth):
                stack.enter_context(ScopedTimer(f"{name}{level}"))
                await asyncio.sleep(0)

    async def main():
        await asyncio.gather(work("a", 3), work("b", 1))

    asyncio.run(main())
    assert printed(capsys) == [
        "b0 took # ms",
        "        a2 took # ms",
        "    a1 took # ms",
        "a0 took # ms",
    ]


def test_a_task_is_indented_like_its_maker_while_that_block_is_open(no_cupy, capsys):
    async def child():
        with ScopedTimer("inside"):
            await asyncio.sleep(0)
        while not outer_ended:
            await asyncio.sleep(0)
        with ScopedTimer("afterwards"):
            pass

    async def main():
        with ScopedTimer("outer"):
            task = asyncio.create_task(child())
            for _ in range(3):
                await asyncio.sleep(0)
        outer_ended.append(True)
        await task

    outer_ended = []
    asyncio.run(main())
    assert printed(capsys) == [
        "    inside took # ms",
        "outer took # ms",
        "afterwards took # ms",
    ]


def test_generators_that_share_a_timer_and_interleave_get_their_own_results(clock, capsys):
    timer = ScopedTimer("t")

    def part(name):
        timer.split(name)  # as helpers do, which generators call
        timer.extra_msg = name

    @timer
    def numbers(name):
        yield 1
        part(name)
        yield 2

    first, second = numbers("a"), numbers("b")
    next(first)
    clock.now += 1
    next(second)
    clock.now += 2
    next(first)
    clock.now += 4
    next(second)
    assert next(first, None) is None
    assert (timer.elapsed, timer.splits[0].elapsed) == (7, 3)
    clock.now += 8
    assert next(second, None) is None
    assert (timer.elapsed, timer.splits[0].elapsed) == (14, 6)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "t: a took 3.00 ms",
        "t: b took 6.00 ms",
        "t took 7.00 ms a",
        "t took 14.00 ms b",
    ]


def test_an_asynchronous_generator_that_another_task_closes(clock, capsys):
    @ScopedTimer("t")
    async def numbers():
        yield 1
        yield 2

    async def main():
        produced = numbers()
        await produced.__anext__()
        clock.now += 1
        await asyncio.create_task(produced.aclose())
        with ScopedTimer("after"):
            pass

    asyncio.run(main())
    assert capsys.readouterr().out == "t took 1.00 ms\nafter took 0.00 ms\n"


def test_a_block_may_be_left_to_another_task(clock, capsys):
    async def main():
        stack = AsyncExitStack()
        stack.enter_context(ScopedTimer("t"))
        clock.now += 1
        await asyncio.create_task(stack.aclose())

    asyncio.run(main())
    assert capsys.readouterr().out == "t took 1.00 ms\n"


def test_a_block_may_be_left_to_another_thread(clock, capsys):
    stack = ExitStack()
    stack.enter_context(ScopedTimer("t"))
    in_threads(stack.close)
    with ScopedTimer("after"):
        pass
    assert capsys.readouterr().out == "t took 0.00 ms\nafter took 0.00 ms\n"


# Splits


def test_splits_print_laps_at_the_blocks_indentation(clock, capsys):
    with ScopedTimer("outer"), ScopedTimer("solve") as timer:
        clock.now += 1
        timer.split("assembly")
        clock.now += 2
        timer.split("factorization")
        clock.now += 4
    assert capsys.readouterr().out == (
        "    solve: assembly took 1.00 ms\n"
        "    solve: factorization took 2.00 ms\n"
        "    solve took 7.00 ms\n"
        "outer took 7.00 ms\n"
    )
    assert [(lap.label, lap.elapsed, lap.gpu_elapsed) for lap in timer.splits] == [
        ("assembly", 1, None),
        ("factorization", 2, None),
    ]


def test_a_timer_that_prints_nothing_keeps_laps_all_the_same(clock, capsys):
    with ScopedTimer("t", print=False) as timer:
        clock.now += 1
        timer.split("lap")
    assert capsys.readouterr().out == ""
    assert timer.splits[0].elapsed == 1


def test_laps_are_those_of_the_last_block(clock):
    timer = ScopedTimer("t", print=False)
    with timer:
        timer.split("lap")
    with timer:
        pass
    assert timer.splits == ()


def test_a_block_may_be_split_in_a_task_that_it_waits_for(clock, capsys):
    async def child(timer):
        timer.split("child")

    async def main():
        with ScopedTimer("t", print=False) as timer:
            await asyncio.gather(child(timer))
        return timer.splits

    assert [lap.label for lap in asyncio.run(main())] == ["child"]


def test_a_block_around_an_event_loop_may_be_split_inside(clock, capsys):
    async def main(timer):
        timer.split("inside")

    with ScopedTimer("t", print=False) as timer:
        asyncio.run(main(timer))
    assert [lap.label for lap in timer.splits] == ["inside"]


def test_outside_of_the_block_there_is_nothing_to_split(no_cupy):
    timer = ScopedTimer("t", print=False)
    with pytest.raises(UnsupportedError, match=r"split\('x'\) was called outside"):
        timer.split("x")
    with timer:
        pass
    with ScopedTimer("other", print=False), pytest.raises(UnsupportedError):
        timer.split("x")


def test_a_label_that_is_no_string_is_refused(no_cupy):
    with ScopedTimer("t", print=False) as timer, pytest.raises(ArgumentError, match="label"):
        timer.split(3)
