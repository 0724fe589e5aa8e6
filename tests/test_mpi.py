"""`benchmark(comm=...)`: ranks as threads of a fake world, and as processes of a real one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from example_results import make_result
from fake_mpi import FakeComm, run_ranks

import gpubench
from gpubench import BenchmarkResult, benchmark
from gpubench.integrations import mpi
from gpubench.integrations.slowest_rank import slowest_rank
from gpubench.notes import Note


def codes(result):
    return [note.code for note in result.notes]


def words(log):
    """Return an operation's number in a row, for each row."""
    return dict(Counter(log))


@pytest.mark.usefixtures("no_cupy")
class TestHost:
    def test_all_ranks_get_the_slowest_ranks_times(self):
        def program(comm):
            seconds = 2e-3 * (1 + comm.Get_rank())
            return benchmark(time.sleep, (seconds,), n_repeat=5, n_warmup=2, comm=comm)

        results = run_ranks(3, program)
        assert results[0] == results[1] == results[2]
        joined = results[0]
        assert [rank.cpu.n for rank in joined.ranks] == [5, 5, 5]
        every = [rank.cpu_times for rank in joined.ranks]
        assert np.array_equal(joined.cpu_times, np.max(every, axis=0))
        assert [rank.ranks for rank in joined.ranks] == [(), (), ()]
        medians = [rank.cpu.median for rank in joined.ranks]
        assert joined.rank_medians.tolist() == medians
        assert joined.imbalance == pytest.approx(max(medians) / np.mean(medians) - 1)
        assert joined.imbalance > 0.1

    def test_imbalance_is_noted_and_shown(self):
        def program(comm):
            return benchmark(time.sleep, (1e-3 + 4e-3 * comm.Get_rank(),), n_repeat=5, comm=comm)

        joined = run_ranks(2, program)[0]
        (note,) = [note for note in joined.notes if note.code == "imbalanced"]
        assert note.message.startswith("Rank 1 takes ")
        assert f", {joined.imbalance:.0%} more than the mean of the ranks" in note.message
        assert f"slowest of 2 ranks (imbalance {joined.imbalance:.1%})" in joined.summary()

    @pytest.mark.parametrize(("slowest_us", "found"), [(110.0, []), (150.0, ["imbalanced"])])
    def test_a_small_imbalance_is_not_noted(self, slowest_us, found):
        joined = slowest_rank([make_result([100.0], [[us]]) for us in (100.0, slowest_us)])
        assert joined.imbalance == pytest.approx((slowest_us - 100) / (slowest_us + 100))
        assert codes(joined) == found

    def test_notes_of_some_ranks_name_them(self):
        some, every = Note("throttled", "GPU-0 was slowed down."), Note("no-gpu", "No GPU found.")
        ranks = [make_result(notes=notes) for notes in ((some, every), (every,), (every, some))]
        assert [str(note) for note in slowest_rank(ranks).notes] == [
            "throttled: On ranks 0, 2: GPU-0 was slowed down.",
            "no-gpu: No GPU found.",
        ]
        assert slowest_rank(ranks[:2]).notes[0].message == "On rank 0: GPU-0 was slowed down."

    def test_ranks_meet_once_before_each_call_and_nowhere_in_it(self):
        logs = []

        def program(comm):
            log = []

            def func():
                log.append("call")
                log.extend(("own", comm.duplicates[0].log.copy()))

            benchmark(func, n_repeat=4, n_warmup=3, comm=comm)
            logs.append(log)

        run_ranks(2, program)
        for log in logs:
            operations = log[2::3]
            assert len(operations) == 3 + 4
            # In the warm-up a rank has nothing to say but that it comes to a call.
            assert [len(each) - len(operations[0]) for each in operations[:3]] == [0, 1, 2]
            assert all(len(later) > len(earlier) for earlier, later in pairwise(operations))

    def test_messages_of_the_function_do_not_meet_those_of_the_ranks(self):
        def program(comm):
            def func():
                comm.Barrier()
                return comm.allgather(comm.Get_rank())

            result = benchmark(func, n_repeat=6, n_warmup=3, comm=comm)
            return result, words(comm.log), comm.duplicates

        for result, log, duplicates in run_ranks(3, program):
            assert result.cpu.n == 6
            assert log == {"Dup": 1, "Barrier": 9, "allgather": 9}
            assert [duplicate.is_free for duplicate in duplicates] == [True]

    @pytest.mark.parametrize("options", [{}, {"max_duration": 0.2}])
    def test_all_stop_at_once_however_long_it_takes_each(self, options, monkeypatch):
        monkeypatch.setattr("gpubench.measure.ADAPTIVE_DURATION", 0.1)
        monkeypatch.setattr("gpubench.session._SETTLE_LIMIT", 0.05)

        def program(comm):
            calls = []

            def func():
                calls.append(1)
                comm.Barrier()
                time.sleep(1e-4 * (1 + comm.Get_rank()))

            return benchmark(func, comm=comm, **options), len(calls)

        outcomes = run_ranks(3, program)
        assert len({number for _, number in outcomes}) == 1
        joined = outcomes[0][0]
        assert len({rank.cpu.n for rank in joined.ranks}) == 1
        assert len({rank.stopped_by for rank in joined.ranks}) == 1
        assert joined.stopped_by in ("converged", "max_duration")

    def test_ranks_may_warm_up_differently(self):
        def program(comm):
            def func():
                comm.Barrier()

            return benchmark(func, n_repeat=3, n_warmup=2 * comm.Get_rank(), comm=comm)

        joined = run_ranks(3, program)[0]
        assert [rank.n_warmup for rank in joined.ranks] == [4, 4, 4]

    def test_setup_is_called_on_all_ranks_equally_often(self):
        def program(comm):
            numbers = []

            def setup():
                comm.Barrier()
                numbers.append(len(numbers))

            benchmark(lambda: None, setup=setup, n_repeat=4, n_warmup=comm.Get_rank(), comm=comm)
            return numbers

        first, *others = run_ranks(3, program)
        assert len(first) >= 4
        assert others == [first, first]

    def test_results_go_through_json(self):
        def program(comm):
            return benchmark(time.sleep, (1e-4 * comm.Get_rank(),), n_repeat=3, comm=comm)

        joined = run_ranks(2, program)[0]
        assert BenchmarkResult.from_dict(json.loads(joined.to_json())) == joined
        assert joined.to_dict()["imbalance"] == joined.imbalance
        other = run_ranks(2, program)[0]
        assert other != joined

    def test_alone_there_are_no_ranks(self):
        result = benchmark(lambda: None, n_repeat=3)
        assert (result.ranks, result.imbalance, result.rank_medians.shape) == ((), None, (0,))
        values = result.to_dict()
        del values["ranks"], values["imbalance"]  # as an older release wrote them
        assert BenchmarkResult.from_dict(values) == result

    def test_one_rank_is_enough(self):
        (joined,) = run_ranks(1, lambda comm: benchmark(lambda: None, n_repeat=3, comm=comm))
        assert joined.imbalance == 0
        assert len(joined.ranks) == 1


@pytest.mark.usefixtures("no_cupy")
class TestFailure:
    @pytest.mark.parametrize("n_calls", [1, 2, 4, 6])
    def test_an_exception_on_one_rank_ends_all(self, n_calls):
        error = ValueError("of the function")

        def program(comm):
            calls = []

            def func():
                calls.append(1)
                if comm.Get_rank() == 1 and len(calls) == n_calls:
                    raise error

            benchmark(func, n_repeat=5, n_warmup=3, comm=comm)

        first, second, third = run_ranks(3, program)
        assert second is error
        for other in (first, third):
            assert type(other) is gpubench.GpubenchError
            assert str(other) == (
                "nothing was measured, since rank 1 raised ValueError: of the function"
            )

    def test_several_failures_are_all_told(self):
        def program(comm):
            def func():
                if comm.Get_rank():
                    raise ValueError(comm.Get_rank())

            benchmark(func, n_repeat=5, comm=comm)

        assert str(run_ranks(3, program)[0]) == (
            "nothing was measured, since rank 1 raised ValueError: 1; rank 2 raised ValueError: 2"
        )

    def test_so_does_an_argument_that_one_rank_refuses(self):
        def program(comm):
            benchmark(lambda: None, n_repeat=3 - 3 * comm.Get_rank(), comm=comm)

        first, second = run_ranks(2, program)
        assert str(second) == "n_repeat must be at least 1, got 0"
        assert "rank 1 raised ArgumentError: n_repeat must be at least 1" in str(first)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ([{"n_repeat": 3}, {"n_repeat": 4}], "n_repeat must be the same on all ranks, got 3"),
            ([{"n_repeat": 3}, {}], "n_repeat must be the same on all ranks, got 3 on rank 0 and"),
            ([{"max_duration": 1.0}, {}], "max_duration must be the same on all ranks, got 1.0 on"),
        ],
    )
    def test_ranks_must_want_the_same_samples(self, options, said):
        outcomes = run_ranks(
            2, lambda comm: benchmark(lambda: None, comm=comm, **options[comm.Get_rank()])
        )
        for outcome in outcomes:
            assert isinstance(outcome, gpubench.ArgumentError)
            assert str(outcome).startswith(said)

    def test_a_rank_that_others_can_not_hear_says_why_they_hang(self, monkeypatch):
        monkeypatch.setattr(mpi, "_PATIENCE", 0.05)
        said = []
        monkeypatch.setattr(mpi.warnings, "warn", lambda *what: said.append(what))

        def program(comm):
            def func():
                if comm.Get_rank():
                    raise ValueError("before the barrier")
                time.sleep(0.3)  # waits for the other rank

            benchmark(func, n_repeat=5, comm=comm)

        run_ranks(2, program)
        ((message, category),) = said
        assert message.startswith("rank 1 raised ValueError: before the barrier, and still waits")
        assert category is RuntimeWarning

    @pytest.mark.parametrize("comm", [3, "world", object()])
    def test_what_is_no_communicator_is_refused(self, comm):
        with pytest.raises(gpubench.ArgumentError, match="comm must be an intracommunicator of"):
            benchmark(lambda: None, comm=comm)

    def test_null_and_intercommunicators_are_refused(self):
        class Null(FakeComm):
            def __bool__(self):
                return False

        class Inter(FakeComm):
            is_inter = True

        for kind in (Null, Inter):
            with pytest.raises(gpubench.ArgumentError, match="comm must be an intracommunicator"):
                benchmark(lambda: None, comm=kind(None, 0))


@pytest.mark.usefixtures("no_cupy")
class TestInterrupt:
    """The main thread is a rank, since it is the one that Ctrl-C meets."""

    def run(self, func, **options):
        """Run a function of the rank on two ranks, the first of them here."""
        here = threading.current_thread()

        def program(comm):
            call = lambda: func(comm.Get_rank())  # noqa: E731
            return benchmark(call, n_warmup=2, comm=comm, **options)

        return run_ranks(2, program, first_rank_in=here)

    def test_ctrl_c_ends_all_ranks_with_the_samples_taken(self):
        calls = []

        def func(rank):
            if rank == 0:
                calls.append(1)
                if len(calls) == 7:
                    signal.raise_signal(signal.SIGINT)
            time.sleep(1e-3)

        results = self.run(func, n_repeat=100)
        assert results[0] == results[1]
        assert results[0].interrupted
        assert [rank.cpu.n for rank in results[0].ranks] == [5, 5]
        assert {"no-gpu", "interrupted"} <= set(codes(results[0]))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_without_samples_all_ranks_raise_it(self):
        calls = []

        def func(rank):
            calls.append(rank)
            if len(calls) == 1:
                signal.raise_signal(signal.SIGINT) if rank == 0 else calls.clear()

        assert [type(each) for each in self.run(func, n_repeat=9)] == [KeyboardInterrupt] * 2

    def test_pressed_twice_it_does_not_wait_for_a_meeting(self):
        def func(rank):
            if rank == 0:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)

        first, second = self.run(func, n_repeat=9)
        assert type(first) is KeyboardInterrupt
        assert str(second) == "nothing was measured, since rank 0 raised KeyboardInterrupt: "


class TestGpu:
    @pytest.fixture
    def gpus(self):
        with gpubench.simulated_gpu(n_devices=3, jitter=0) as gpus:
            yield gpus

    def run(self, gpus, func, **options):
        """Run a function of the rank and the communicator on ranks with a GPU each."""

        def program(comm):
            rank = comm.Get_rank()
            gpus.use_device(rank)
            return benchmark(lambda: func(rank, comm), devices=rank, comm=comm, **options)

        results = run_ranks(3, program)
        assert results[0] == results[1] == results[2]
        return results[0]

    def test_gates_open_by_their_own_hosts(self, gpus):
        def func(rank, comm):
            gpus.launch(1e-3 * (1 + rank))
            comm.Barrier()

        joined = self.run(gpus, func, n_repeat=2000, max_duration=0.3)
        assert joined.method == "gated"
        assert joined.samples_per_gate == 1
        assert joined.gpu[0].median == pytest.approx(3e-3, rel=0.1)
        assert joined.rank_medians == pytest.approx([1e-3, 2e-3, 3e-3], rel=0.1)
        assert joined.imbalance == pytest.approx(0.5, rel=0.1)
        assert "imbalanced" in codes(joined)

    def test_a_call_that_waits_for_another_ranks_gpu_gets_no_gate(self, gpus):
        def func(rank, comm):
            gpus.launch(1e-4)
            if rank == 1:
                gpus.device(1).synchronize()
            comm.Barrier()

        joined = self.run(gpus, func, n_repeat=5)
        assert joined.method == "events"
        assert {rank.method for rank in joined.ranks} == {"events"}
        assert "waits-inside" in codes(joined)

    def test_a_call_that_waits_now_and_then_is_timed_anew_on_all_ranks(self, gpus):
        calls = Counter()

        def func(rank, comm):
            calls[rank] += 1
            gpus.launch(1e-4)
            if rank == 2 and calls[rank] in (14, 16, 18):
                gpus.device(2).synchronize()
            comm.Barrier()

        joined = self.run(gpus, func, n_repeat=10)
        assert [rank.cpu.n for rank in joined.ranks] == [10, 10, 10]
        assert {rank.method for rank in joined.ranks} == {"events"}
        assert len(set(calls.values())) == 1

    def test_a_graph_is_refused_since_ranks_meet_before_each_call(self, gpus):
        joined = self.run(gpus, lambda rank, comm: gpus.launch(1e-4), n_repeat=5, method="graph")
        assert joined.method == "gated"
        assert "no-graph" in codes(joined)

    def test_all_ranks_time_as_many_gpus(self, gpus):
        def program(comm):
            devices = [0, 1] if comm.Get_rank() else [0]
            return benchmark(lambda: None, devices=devices, n_repeat=3, comm=comm)

        for outcome in run_ranks(2, program):
            assert str(outcome) == (
                "len(devices) must be the same on all ranks, got 1 on rank 0 and 2 on rank 1"
            )

    @pytest.mark.parametrize(("same", "found"), [(True, True), (False, False)])
    def test_a_gpu_that_ranks_share_is_noted(self, gpus, monkeypatch, same, found):
        def described(joined):
            return [
                {"host": "h", "devices": [{"pci_bus_id": f"0:{0 if same else rank}"}]}
                for rank in range(len(joined))
            ]

        def program(comm):
            return benchmark(gpus.launch, (1e-4,), n_repeat=3, comm=comm)

        ranks = run_ranks(2, program)[0].ranks
        known = zip(ranks, described(ranks), strict=True)
        joined = slowest_rank([_in(rank, environment) for rank, environment in known])
        assert ("shared-gpu" in codes(joined)) is found


def _in(result, environment):
    values = {**result.to_dict(), "environment": environment}
    return BenchmarkResult.from_dict(values)


PROGRAM = """
import json, os, pathlib, signal, sys, time
from mpi4py import MPI
from gpubench import GpubenchError, benchmark

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
seen = {}

result = benchmark(time.sleep, (2e-3 * (1 + rank),), n_repeat=5, n_warmup=2, comm=comm)
seen["result"] = result.to_dict()

calls = []
def collective():
    calls.append(1)
    comm.allreduce(rank)
    comm.Barrier()
result = benchmark(collective, max_duration=0.3, comm=comm)
seen["calls"] = len(calls), [one.cpu.n for one in result.ranks]

def failing():
    if rank == 1:
        raise ValueError("of the function")
try:
    benchmark(failing, n_repeat=5, comm=comm)
except Exception as error:
    seen["error"] = f"{type(error).__name__}: {error}"

def pressed():
    pressed.n += 1
    if rank == 2 and pressed.n == 8:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1e-3)
pressed.n = 0
result = benchmark(pressed, n_repeat=10**6, n_warmup=3, comm=comm)
seen["interrupted"] = result.interrupted, [one.cpu.n for one in result.ranks]

pathlib.Path(sys.argv[1], f"{rank}.json").write_text(json.dumps(seen))
"""


def test_three_processes(tmp_path):
    pytest.importorskip("mpi4py")
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    command = [mpiexec, "-n", "3", sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(
        command,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, third = (json.loads((tmp_path / f"{i}.json").read_text()) for i in range(3))

    assert first["result"] == second["result"] == third["result"]
    joined = BenchmarkResult.from_dict(first["result"])
    assert min(joined.cpu_times) >= 6e-3
    assert [rank.cpu.n for rank in joined.ranks] == [5, 5, 5]
    assert joined.imbalance > 0.1
    assert "imbalanced" in codes(joined)

    assert first["calls"] == second["calls"] == third["calls"]
    assert len(set(first["calls"][1])) == 1

    told = "GpubenchError: nothing was measured, since rank 1 raised ValueError: of the function"
    assert [each["error"] for each in (first, second, third)] == [
        told,
        "ValueError: of the function",
        told,
    ]
    assert first["interrupted"] == [True, [5, 5, 5]]
    assert second["interrupted"] == third["interrupted"] == [True, [5, 5, 5]]
