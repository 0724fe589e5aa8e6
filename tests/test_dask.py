"""Suites and sweeps on a Dask cluster of three workers, on two simulated GPUs."""

import contextlib
import dataclasses
import itertools
import json
import logging
import os
import platform
import signal
import sys
import threading
import time
from collections import Counter
from itertools import pairwise

import pytest
from example_results import make_result
from example_sweeps import measured, swept

import gpubench
from gpubench import ArgumentError, UnsupportedError, load, product, sweep
from gpubench.cli import main
from gpubench.devices import current_platform
from gpubench.devices.place import Place, places_of, this_place
from gpubench.suites.agenda import Agenda
from gpubench.suites.case import FULL, Case, Outcome, SuiteFile
from gpubench.suites.ledger import Ledger

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills workers by a signal")

from gpubench.integrations.dask import archive, cluster, suites  # noqa: E402


class Gpus(distributed.WorkerPlugin):
    """Gives workers GPUs, as dask-cuda does: the first and the last share one."""

    name = "gpus"

    def setup(self, worker):
        number = worker.name % 2
        os.environ["FAKE_GPU"] = f"GPU-{number}"  # for processes that the worker starts
        gpu = gpubench.simulated_gpu()
        gpu.__enter__()
        device = gpu.device(0)
        device.properties = dataclasses.replace(device.properties, uuid=f"GPU-{number}")


@pytest.fixture(scope="module")
def client():
    settings = {
        # so that dead workers hold no lock for long
        "distributed.scheduler.locks.lease-timeout": "3s",
        "distributed.scheduler.locks.lease-validation-interval": "500ms",
        "distributed.scheduler.allowed-failures": 10,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=3,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        client.register_plugin(Gpus())
        yield client


class Notebook:
    """A file that processes write lines to."""

    def __init__(self, path):
        self.path = path

    def write(self, *values):
        line = json.dumps(values).encode() + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line)
        os.close(descriptor)

    def lines(self):
        return list(map(json.loads, self.path.read_text().splitlines()))


@pytest.fixture
def notebook(tmp_path):
    return Notebook(tmp_path / "notebook")


def gpu_here():
    return this_place().gpu


def by_config(result):
    return {tuple(each.config.values()): each for each in result.measurements}


def overlapping(lines):
    """Return the pairs of intervals of one GPU that overlap."""
    by_gpu = {}
    for gpu, begin, end in lines:
        by_gpu.setdefault(gpu, []).append((begin, end))
    return [
        (gpu, one, other)
        for gpu, intervals in by_gpu.items()
        for one, other in pairwise(sorted(intervals))
        if other[0] < one[1]
    ]


def launch(n, kind):
    if n == 3:
        raise ValueError("three")
    current_platform().launch(n * 1e-5)


class TestPlaces:
    def test_without_a_gpu_it_is_the_cpu_of_the_host(self, no_cupy):
        assert this_place() == Place(platform.node())
        assert str(Place("node7")) == "node7, CPU"

    def test_the_current_gpu(self, gpu):
        assert this_place() == Place(platform.node(), "simulated-0", "simulated GPU")
        assert str(Place("node7", "GPU-1", "H200")) == "node7, H200 GPU-1"

    def test_a_result_tells_where_it_is_of(self, gpu):
        result = gpubench.benchmark(gpu.launch, (1e-6,), n_repeat=2)
        assert places_of(result.environment) == (this_place(),)
        assert places_of({"host": "node7", "devices": []}) == (Place("node7"),)
        assert places_of({}) == (Place(""),)


class TestSweeps:
    def test_each_configuration_is_measured_once_and_says_where(self, client, notebook):
        result = sweep.run(launch, product(n=[1, 2, 3], kind=["a", "b"]), n_repeat=6, client=client)
        assert [tuple(each.config.values()) for each in result.measurements] == [
            (n, kind) for n in (1, 2, 3) for kind in "ab"
        ]
        for (n, _), each in by_config(result).items():
            if n == 3:
                assert each.status == "failed"
                assert each.error.startswith("ValueError: three (on ")
                assert each.error.endswith(("simulated GPU GPU-0)", "simulated GPU GPU-1)"))
            else:
                assert each.result.gpu[0].median == pytest.approx(n * 1e-5, rel=0.3)
        frame = result.to_dataframe()
        measured = frame[(frame["status"] == "ok") & (frame["metric"] == "gpu_time")]
        assert set(measured["host"]) == {platform.node()}
        assert set(measured["device_uuid"]) == {"GPU-0", "GPU-1"}
        assert result.environment["platform"] == "simulated"
        assert "devices" not in result.environment
        assert [note.code for note in result.remarks] == ["several-devices"]

    def test_no_two_sweeps_share_a_gpu(self, client, notebook):
        def watched(n):
            begin = time.perf_counter()
            time.sleep(0.02)
            notebook.write(this_place().gpu, begin, time.perf_counter())

        options = {"n_repeat": 2, "n_warmup": 0, "client": client, "method": "host"}
        others = [
            threading.Thread(target=sweep.run, args=(watched, range(4)), kwargs=options)
            for _ in range(2)
        ]
        for other in others:
            other.start()
        for other in others:
            other.join()
        lines = notebook.lines()
        assert {gpu for gpu, _, _ in lines} == {"GPU-0", "GPU-1"}
        assert len(lines) >= 2 * 4 * 2
        assert overlapping(lines) == []

    def test_ctrl_c_keeps_what_came_and_a_checkpoint_goes_on(self, client, notebook, tmp_path):
        go = tmp_path / "go"

        @sweep(range(4), n_repeat=2, method="host", client=client, checkpoint=tmp_path / "points")
        def waits(n):
            notebook.write(n)
            while n == 1 and not go.exists():
                time.sleep(0.01)

        def interrupt():
            while len((tmp_path / "points").read_text().splitlines()) < 1 + 3:
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

        (tmp_path / "points").touch()
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            waits()
        thread.join()
        assert [each.status for each in waits.results.measurements] == [
            "ok",
            "interrupted",
            "ok",
            "ok",
        ]
        assert [note.code for note in waits.results.notes] == ["sweep-interrupted"]
        n_before = Counter(n for (n,) in notebook.lines())
        go.touch()
        result = waits()
        assert [each.status for each in result.measurements] == ["ok"] * 4
        n_after = Counter(n for (n,) in notebook.lines())
        assert n_after[1] > n_before[1]
        assert n_after[0] == n_before[0]
        assert result.measurements[0].result == waits.results.measurements[0].result

    def test_a_baseline_on_another_kind_of_device_does_not_count(self):
        a, b = ({"devices": [{"id": 0, "name": name}]} for name in ("A", "B"))
        result = swept(
            measured({"n": 1}, environment=a),
            measured({"n": 2}, environment=a),
            measured({"n": 3}, environment=b),
            normalize_against={"n": 1},
        )
        assert [row.time.baseline for row in result.rows] == ["n=1", "n=1", ""]
        assert [note.code for note in result.remarks] == ["several-devices", "no-baseline"]
        assert "2 on A; 1 on B" in result.remarks[0].message
        assert result.remarks[1].advice.startswith("One that another kind of device was")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"order": "random"}, "order='random' takes samples"),
            ({"devices": [0, 1]}, r"devices=\[0, 1\]: with client"),
            ({"counters": "memory"}, "counters are read on this machine"),
        ],
    )
    def test_what_can_not_be_done_there_is_refused(self, client, options, message):
        with pytest.raises(ArgumentError, match=message):
            sweep([1], client=client, **options)

    def test_a_client_is_a_client(self):
        with pytest.raises(ArgumentError, match=r"client must be a distributed\.Client"):
            sweep([1], client="tcp://localhost:8786")

    def test_a_function_that_can_not_travel(self, client):
        lock = threading.Lock()
        with pytest.raises(ArgumentError, match="can't be sent to another process"):
            sweep.run(lambda n: lock, [1], client=client)

    def test_a_worker_that_dies_takes_nothing_along(self, client, notebook):
        def kills_worker(n):
            notebook.write(n)
            if n == 2 and notebook.lines().count([2]) == 1:
                os.kill(os.getpid(), signal.SIGKILL)

        result = sweep.run(
            kills_worker, range(6), n_repeat=2, n_warmup=0, client=client, method="host"
        )
        assert [each.config["n"] for each in result.measurements] == list(range(6))
        assert {each.status for each in result.measurements} == {"ok"}
        counts = Counter(n for (n,) in notebook.lines())
        assert counts.pop(2) == counts[1] + 1  # the call that was lost, and nothing twice
        assert len(set(counts.values())) == 1


SUITE = """
import dataclasses, os, signal, time
import gpubench
from .helper import LOG

if "FAKE_GPU" in os.environ:
    gpu = gpubench.simulated_gpu()
    gpu.__enter__()
    gpu.device(0).properties = dataclasses.replace(
        gpu.device(0).properties, uuid=os.environ["FAKE_GPU"]
    )

rounds = 2
repeat = number = 1
warmup_time = 0

def log(*words):
    with LOG.open("a") as file:
        print(*words, file=file)

class Kernels:
    params = [1, 2]
    param_names = ["n"]
    repeat = 5
    rounds = 1
    gpu_method = "events"
    def gputime_launch(self, n):
        gpu.launch(n * 1e-5)

def time_kills_its_worker():
    gpu.launch(1e-5)
    log("begin")
    if LOG.read_text().count("begin") == 3:  # in the second round, after a probing call each
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(30)
    log("end")

def track_bad():
    raise ValueError("bad luck")
"""


@pytest.fixture
def suite(tmp_path):
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "bench.py").write_text(SUITE)
    log = str(tmp_path / "log")  # the folder itself is sent
    (folder / "helper.py").write_text(f"import pathlib\nLOG = pathlib.Path({log!r})\n")
    return folder


class TestSuites:
    def test_a_killed_worker_leaves_no_gap_and_nothing_twice(self, client, suite, tmp_path, capsys):
        path = tmp_path / "run.json"
        command = ["run", str(suite), "--scheduler", client.scheduler.address, "--save", str(path)]
        assert main(command) == 1
        assert capsys.readouterr().out.splitlines()[-1] == "3 ok, 1 failed"
        words = (tmp_path / "log").read_text().split()
        assert words.count("begin") == words.count("end") + 1
        results = load(path)
        records = dict(zip(results.keys, results.records, strict=True))
        assert {key: record.blocks for key, record in records.items()} == {
            "bench.Kernels.gputime_launch(n=1)": (0,) * 5,
            "bench.Kernels.gputime_launch(n=2)": (0,) * 5,
            "bench.time_kills_its_worker": (0, 1),
            "bench.track_bad": (),
        }
        bad = records["bench.track_bad"]
        assert bad.reason.startswith("ValueError: bad luck (bench.py:")
        assert "(on " + platform.node() in bad.reason
        for record in records.values():
            if record.result is not None:
                (place,) = places_of(record.result.environment)
                assert (place.host, place.gpu[:-1]) == (platform.node(), "GPU-")
        assert results.environment["scheduler"] == client.scheduler.address
        assert results.environment["host"] == platform.node()

    def test_ctrl_c_keeps_what_came(self, client, tmp_path, capsys):
        folder, path = tmp_path / "suite", tmp_path / "run.json"
        folder.mkdir()
        (folder / "bench.py").write_text(
            "import pathlib, time\n"
            "def track_quick():\n"
            "    return 1\n"
            "def track_slow():\n"
            f"    while not pathlib.Path({str(tmp_path / 'go')!r}).exists():\n"
            "        time.sleep(0.01)\n"
            "    return 2\n"
        )
        command = ["run", str(folder), "--scheduler", client.scheduler.address, "--save", str(path)]

        def interrupt():
            while not path.exists() or load(path).records[0].status != "ok":
                time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        assert main(command) == 130
        thread.join()
        (tmp_path / "go").touch()
        assert [record.status for record in load(path).records] == ["ok", "interrupted"]

    def test_nothing_answers(self, suite, monkeypatch, capsys):
        monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", 0.2)
        assert main(["run", str(suite), "--scheduler", "tcp://127.0.0.1:1"]) == 1
        assert "scheduler='tcp://127.0.0.1:1': no Dask scheduler" in capsys.readouterr().err

    @pytest.mark.parametrize("address", ["nonsense://x", "127.0.0.1:none"])
    def test_an_address_that_is_none(self, suite, address, capsys):
        assert main(["run", str(suite), "--scheduler", address]) == 1
        assert "no Dask scheduler" in capsys.readouterr().err

    def test_no_worker(self, suite, monkeypatch, capsys):
        monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", 0.5)
        with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
            assert main(["run", str(suite), "--scheduler", empty.scheduler_address]) == 1
        assert "has no worker; start some with 'dask cuda worker" in capsys.readouterr().err

    def test_without_distributed(self, suite, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "distributed", None)
        assert main(["run", str(suite), "--scheduler", "tcp://127.0.0.1:1"]) == 1
        assert 'pip install "gpubench[dask]"' in capsys.readouterr().err


class FakeCluster:
    """A client of a cluster whose workers die as soon as they are given anything."""

    def __init__(self, monkeypatch, answers):
        self.answers = answers  # of each worker to come, to what it is asked when it is met
        self.alive = [next(answers)]
        self.number = 0
        monkeypatch.setattr(distributed, "wait", self.wait)

    def nthreads(self):
        return {f"worker-{self.number}": 1} if self.alive else {}

    def run(self, *args, workers, **options):
        return dict.fromkeys(workers, self.alive[0])

    def submit(self, *args, **options):
        return self

    def wait(self, *args, **options):
        self.number += 1
        self.alive = [answer for answer in (next(self.answers, None),) if answer]

    def done(self):
        return False

    def cancel(self, *args):
        pass

    def as_current(self):
        return contextlib.nullcontext()

    @property
    def scheduler(self):
        return self

    address = "tcp://fake"


class TestClusters:
    def jobs(self, workers):
        todo = ["first"]
        for answer in workers.run(len, lambda place: cluster.Job(todo[0], ()) if todo else None):
            todo.clear()
            yield answer

    def test_a_job_that_no_worker_survives(self, monkeypatch):
        place = Place("a", "GPU-0", "A")
        client = FakeCluster(monkeypatch, itertools.repeat((gpubench.__version__, place)))
        (answer,) = self.jobs(cluster.Cluster(client))
        assert (answer.job.key, answer.place, client.number) == ("first", place, 3)
        assert str(answer.error) == "3 workers ended while they did this"

    def test_no_worker_is_left(self, monkeypatch):
        monkeypatch.setattr(cluster, "PATIENCE", 0)
        client = FakeCluster(monkeypatch, iter([(gpubench.__version__, Place("a"))]))
        with pytest.raises(UnsupportedError, match=r"scheduler tcp://fake has no worker"):
            list(self.jobs(cluster.Cluster(client)))

    @pytest.mark.parametrize(
        ("report", "message"),
        [
            (("0.0.1", Place("a")), r"worker-0 has gpubench 0\.0\.1, and here it is"),
            (ModuleNotFoundError("no gpubench"), "worker-0 can't be used: ModuleNotFoundError"),
        ],
    )
    def test_a_worker_that_can_not_be_used(self, monkeypatch, report, message):
        with pytest.raises(gpubench.GpubenchError, match=message):
            cluster.Cluster(FakeCluster(monkeypatch, iter([report])))


class TestHomes:
    """A benchmark's rounds stay at one place, or begin anew at another."""

    one, other = Place("a", "GPU-0", "A"), Place("a", "GPU-1", "A")

    def agenda(self, **environment):
        """One case of two rounds, the first of which is done."""
        file = SuiteFile("/suite", "bench", "/suite/bench.py")
        case = Case(
            file=file, name="f", index=0, params={}, label="f", rounds=2, timeout=60, key="f"
        )
        ledger = Ledger([case], FULL)
        result = make_result(environment={"host": "a", **environment})
        ledger.add(Outcome(key="f", round=0, result=result))
        return case, Agenda(ledger, FULL)

    def task(self, agenda, place, *places):
        homes = suites.Homes(agenda, places)
        task = agenda.next_benchmark(lambda case: homes.has_room(case, place, places))
        for case in task.cases if task else ():
            homes.settle(case, place)
        return task

    def test_the_place_of_an_earlier_run(self):
        case, agenda = self.agenda(devices=[{"uuid": "GPU-1", "name": "A"}])
        assert self.task(agenda, self.one, self.one, self.other) is None
        assert self.task(agenda, self.other, self.one, self.other).round == 1
        assert agenda.ledger.record(case).blocks == (0, 0, 0)

    def test_one_that_is_gone(self):
        case, agenda = self.agenda(devices=[{"uuid": "GPU-1", "name": "A"}])
        assert self.task(agenda, self.one, self.one).round == 1
        assert agenda.ledger.record(case).blocks == ()
        assert self.task(agenda, self.one, self.one).round == 0

    def test_what_uses_no_gpu_stays_on_its_host(self):
        case, agenda = self.agenda(devices=[])
        assert self.task(agenda, self.one, self.one, self.other).round == 1
        assert agenda.ledger.record(case).blocks == (0, 0, 0)


class TestArchives:
    def test_a_folder_comes_out_as_it_went_in(self, tmp_path):
        root = tmp_path / "suite"
        for name in ("a.py", "data/x.bin", ".git/config", "__pycache__/a.pyc", "data/.hidden"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name)
        (root / "nowhere").symlink_to(root / "gone")
        archive.unpack(archive.packed(str(root)), tmp_path / "there")
        found = [path for path in (tmp_path / "there").rglob("*") if path.is_file()]
        assert sorted(path.relative_to(tmp_path / "there").as_posix() for path in found) == [
            "a.py",
            "data/x.bin",
        ]
        assert (tmp_path / "there" / "a.py").read_text() == "a.py"

    def test_too_much(self, tmp_path, monkeypatch):
        monkeypatch.setattr(archive, "MAX_BYTES", 2**20)
        (tmp_path / "data").write_bytes(bytes(2**20 + 1))
        with pytest.raises(ArgumentError, match="holds more than 1 MiB"):
            archive.packed(str(tmp_path))
