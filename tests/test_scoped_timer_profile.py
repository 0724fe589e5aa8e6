import asyncio
import cProfile
import re
import sys
import threading
import time

import pytest
from printed_times import printed

from gpubench.activity.scope.scoped_timer import ScopedTimer


@pytest.fixture(autouse=True)
def alone():
    """Since Python 3.12, cProfile mixes up what several threads do."""
    for thread in threading.enumerate():
        if thread.name.startswith("gpu "):  # a stream of a simulated GPU, which ends when idle
            thread.join(10)


def assert_no_profiler_runs():
    profiler = cProfile.Profile()
    profiler.enable()  # which is refused if another one is at work, from Python 3.12 on
    profiler.disable()
    assert sys.getprofile() is None


def leaf():
    return sorted(range(10))


def profiles(text):
    """The number of calls of each function, in each profile that was printed."""
    found = []
    for line in text.splitlines():
        if "function calls" in line:
            found.append({})
        elif match := re.match(r" +(\d+)\S* .* (\S+)$", line):
            found[-1][match[2].partition("(")[2].rstrip(")") or match[2]] = int(match[1])
    return found


def test_a_profile_is_printed_before_the_time(no_cupy, capsys):
    with ScopedTimer("t", detailed=True):
        leaf()
        leaf()
    text = capsys.readouterr().out
    assert "Ordered by: internal time" in text
    (profile,) = profiles(text)
    assert profile["leaf"] == 2
    assert text.splitlines()[-1].startswith("t took ")
    assert_no_profiler_runs()


def test_profiles_nest(no_cupy, capsys):
    def middle():
        leaf()
        with ScopedTimer("inner", detailed=True):
            leaf()
            leaf()
        leaf()

    with ScopedTimer("outer", detailed=True):
        leaf()
        middle()
        with ScopedTimer("second", detailed=True):
            leaf()
        middle()
    text = capsys.readouterr().out
    first, second, third, outer = profiles(text)
    assert [p["leaf"] for p in (first, second, third, outer)] == [2, 1, 2, 10]
    assert outer["middle"] == 2
    assert "middle" not in first
    assert not {"print_stats", "snapshot_stats"} & set(outer)  # printing the inner ones
    assert "-0.0" not in text
    assert_no_profiler_runs()


def test_the_outer_profile_has_the_whole_time_of_functions_around_inner_ones(no_cupy, capsys):
    def middle():
        with ScopedTimer("inner", detailed=True):
            pass
        time.sleep(0.05)

    with ScopedTimer("outer", detailed=True):
        middle()
    row = next(line for line in capsys.readouterr().out.splitlines() if "(middle)" in line)
    assert float(row.split()[3]) >= 0.05


def test_a_profile_is_printed_even_if_the_time_is_not(no_cupy, capsys):
    with ScopedTimer("t", print=False, detailed=True):
        leaf()
    (profile,) = profiles(capsys.readouterr().out)
    assert profile["leaf"] == 1


def test_profiling_ends_when_the_body_raises(no_cupy, capsys):
    timer = ScopedTimer("t", detailed=True)
    with pytest.raises(KeyError), timer, timer:
        raise KeyError
    assert len(profiles(capsys.readouterr().out)) == 2
    assert_no_profiler_runs()


def test_profiles_of_tasks_may_overlap(no_cupy, capsys):
    async def work(steps):
        with ScopedTimer("t", detailed=True):
            for _ in range(steps):
                leaf()
                await asyncio.sleep(0)

    async def main():
        await asyncio.gather(work(2), work(5))

    asyncio.run(main())
    short, long = profiles(capsys.readouterr().out)
    assert short["leaf"] == 4
    assert long["leaf"] == 7 - 1  # it began after the other's first
    assert_no_profiler_runs()


def test_threads_may_profile_one_after_the_other(no_cupy, capsys):
    def work():
        with ScopedTimer("t", detailed=True):
            leaf()

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [profile["leaf"] for profile in profiles(capsys.readouterr().out)] == [1, 1]


def test_beside_another_profiler(no_cupy, capsys):
    other = cProfile.Profile()
    other.enable()
    try:
        leaf()
        with ScopedTimer("t", detailed=True):
            leaf()
        leaf()
    finally:
        other.disable()
    other.snapshot_stats()
    calls = {name: row[1] for (_, _, name), row in other.stats.items()}
    text = capsys.readouterr().out
    if sys.version_info >= (3, 12):
        assert "there is no profile: Another profiling tool is already active\n" in text
        assert calls["leaf"] == 3
    else:
        assert profiles(text)[0]["leaf"] == 1
        assert calls["leaf"] == 2
    assert text.splitlines()[-1].startswith("t took ")


def test_beside_a_profile_function(no_cupy, capsys):
    seen = []

    def watch(frame, event, argument):
        seen.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        with ScopedTimer("t", detailed=True):
            pass
        leaf()
        assert sys.getprofile() is watch
    finally:
        sys.setprofile(None)
    assert "leaf" in seen


# Failures


def fail(*_):
    raise MemoryError


def test_the_hosts_time_is_printed_even_if_the_gpu_fails(gpu, capsys, monkeypatch):
    with pytest.raises(MemoryError), ScopedTimer("t", detailed=True) as timer:
        monkeypatch.setattr(gpu.device(0), "create_event", fail)
    assert printed(capsys)[-1] == "t took # ms"
    assert timer.elapsed > 0
    assert timer.gpu_elapsed is None
    assert_no_profiler_runs()


def test_a_block_that_cannot_begin_leaves_nothing_open(gpu, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(gpu.device(0), "create_event", fail)
        with pytest.raises(MemoryError), ScopedTimer("t", detailed=True):
            pytest.fail("the body runs")
    assert_no_profiler_runs()
    with ScopedTimer("after"):
        pass
    assert printed(capsys) == ["after took # ms"]
