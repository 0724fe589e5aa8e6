"""Suites run as users run them: folders of files, in child processes."""

from pathlib import Path

import pytest

import gpubench
from gpubench.storage import load
from gpubench.suites.run import run_suite
from gpubench.suites.schedule import Here

BAD = """
import ctypes, os, time

def time_crash():
    print("about to crash", flush=True)
    ctypes.string_at(0)

def time_leave():
    os._exit(3)

def time_exit():
    raise SystemExit("enough")

def time_hang():
    time.sleep(60)
time_hang.timeout = 0.5

def time_raise():
    raise ValueError("bad luck")

class NoInstance:
    def __init__(self):
        raise OSError("no file")
    def time_it(self):
        pass

class SetupHangs:
    timeout = 0.5
    def setup_cache(self):
        while True:
            pass
    setup_cache.timeout = 0.5
    def time_one(self, cache):
        pass
    def time_two(self, cache):
        pass

def time_fine():
    pass
"""

GOOD = """
import pathlib
from .helper import Base, LOG, log
from gpubench import time_range  # no benchmark of this suite

def setup(*args):
    log("module setup", *args)

class Cached:
    number = 2
    repeat = 3
    warmup_time = 0
    rounds = 2
    unit = "apples"

    def setup_cache(self):
        log("setup_cache")
        pathlib.Path("made.txt").write_text("here")  # in a folder that is theirs
        return {"n": 3}

    def setup(self, cache):
        log("setup", cache["n"])

    def teardown(self, cache):
        log("teardown", cache["n"])

    def time_it(self, cache):
        log("call")

    def track_n(self, cache):
        return cache["n"] + len(pathlib.Path("made.txt").read_text())

class Params:
    params = ([1, 2], ["a", len])
    param_names = ["n"]
    repeat = 1

    def setup(self, n, kind):
        if n == 2 and kind == "a":
            raise NotImplementedError("2a is too much")

    def time_it(self, n, kind):
        pass

def time_only_some(n):
    pass
time_only_some.params = [1, 2]
time_only_some.skip_params = [(2,)]

def time_marked():
    pass
time_marked.skip_benchmark = True

class Inherits(Base):
    pass

def time_renamed():
    pass
time_renamed.benchmark_name = "other.time_named"
time_renamed.pretty_name = "A fine name"

def timeraw_statement():
    return "x.append(1)", "x = []"

def peakmem_list():
    return bytearray(50_000_000)

class gpu:
    def gputime_sum(self):
        sum(range(100))
"""

POOL = """
import sys, types

class Pool:
    n_freed = 0
    def free_all_blocks(self):
        self.n_freed += 1

pool, pinned = Pool(), Pool()
sys.modules["cupy"] = types.SimpleNamespace(
    get_default_memory_pool=lambda: pool, get_default_pinned_memory_pool=lambda: pinned
)

def track_one():
    return pool.n_freed

def track_other():
    return pinned.n_freed
"""

HELPER = """
import pathlib

LOG = pathlib.Path(__file__).with_name("log.txt")

def log(*words):
    with LOG.open("a") as file:
        print(*words, file=file)

class Base:
    def TimeCamelCase(self):
        pass
"""

PROGRAM = """
import nothing_of_that_name
if __name__ == "__main__":
    print("never")
"""


def by_key(saved):
    return dict(zip(saved.keys, saved.records, strict=True))


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """The records of a suite in which much goes wrong."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "bench_bad.py").write_text(BAD)
    (folder / "bench_unloadable.py").write_text("import nothing_of_that_name\ndef time_it(): 1\n")
    (folder / "bench_crashes.py").write_text("import os\nos._exit(9)\ndef time_it(): 1\n")
    (folder / "helper.py").write_text("import nothing_of_that_name\n")
    (folder / "program.py").write_text(PROGRAM)
    seen = []
    saved = run_suite(folder, quick=True, save=folder / "run.json", on_record=seen.append)
    assert sorted(record.key for record in seen) == sorted(saved.keys)
    assert load(folder / "run.json").records == saved.records
    return by_key(saved)


class TestFaults:
    def test_the_rest_runs(self, bad):
        fine = bad.pop("bench_bad.time_fine")
        assert fine.status == "ok"
        assert {record.status for record in bad.values()} == {"failed"}
        assert len(bad) == 10

    def test_a_crash_names_its_signal_and_last_words(self, bad):
        reason = bad["bench_bad.time_crash"].reason
        assert "SIGSEGV" in reason
        assert "about to crash" in reason
        assert "in time_crash" in reason

    def test_an_exit_names_its_status(self, bad):
        assert "exited with status 3" in bad["bench_bad.time_leave"].reason

    def test_a_timeout_says_where_it_was(self, bad):
        reason = bad["bench_bad.time_hang"].reason
        assert reason.startswith("it took too long; ")
        assert "in time_hang" in reason

    def test_what_is_raised_is_told_with_its_place(self, bad):
        assert bad["bench_bad.time_raise"].reason.startswith("ValueError: bad luck (bench_bad.py:")
        assert bad["bench_bad.time_exit"].reason.startswith("SystemExit: enough")
        assert bad["bench_bad.NoInstance.time_it"].reason.startswith("OSError: no file")

    def test_a_setup_cache_hangs_but_once(self, bad):
        reasons = sorted(bad[f"bench_bad.SetupHangs.time_{n}"].reason for n in ("one", "two"))
        assert reasons[0] == "GpubenchError: its setup_cache failed before: it came to no end"
        assert reasons[1].startswith("it took too long; ")

    def test_files_that_cannot_be_imported(self, bad):
        reason = "ModuleNotFoundError: No module named 'nothing_of_that_name'"
        assert bad["bench_unloadable"].reason.startswith(reason)
        assert "exited with status 9" in bad["bench_crashes"].reason

    def test_an_import_that_hangs(self, tmp_path, monkeypatch):
        (tmp_path / "bench.py").write_text("import time\ntime.sleep(60)\ndef time_it(): 1\n")
        monkeypatch.setattr("gpubench.suites.discovery.LOAD_TIMEOUT", 2)
        (record,) = run_suite(tmp_path, quick=True).records
        assert (record.key, record.status) == ("bench", "failed")
        assert record.reason.startswith("it took ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    package = folder / "inner"
    package.mkdir()
    (package / "__init__.py").write_text("HERE = __file__\n\ndef time_in_package(): pass\n")
    (folder / "no_package").mkdir()
    (folder / "no_package" / "bench_unseen.py").write_text("def time_it(): pass\n")
    (folder / "bench_good.py").write_text(GOOD)
    (folder / "bench_pool.py").write_text(POOL)
    (folder / "helper.py").write_text(HELPER)
    return folder


@pytest.fixture(scope="module")
def good(folder):
    """The records of a suite in which all is well."""
    return by_key(run_suite(folder, quick=True))


class TestAttributes:
    def test_names(self, good):
        assert {record.name for record in good.values()} == {
            "bench_good.Base.TimeCamelCase",  # imported, which counts with asv, too
            "bench_good.Cached.time_it",
            "bench_good.Cached.track_n",
            "bench_good.Params.time_it",
            "bench_good.time_only_some",
            "bench_good.time_marked",
            "bench_good.Inherits.TimeCamelCase",
            "other.time_named",
            "bench_good.timeraw_statement",
            "bench_good.peakmem_list",
            "bench_good.gpu.gputime_sum",
            "bench_pool.track_one",
            "bench_pool.track_other",
            "helper.Base.TimeCamelCase",
            "inner.time_in_package",
        }

    def test_statuses(self, good):
        others = {key: (r.status, r.reason) for key, r in good.items() if r.status != "ok"}
        assert others == {
            "bench_good.Params.time_it(n=2, param2='a')": ("skipped", "2a is too much"),
            "bench_good.time_only_some(param1=2)": (
                "skipped",
                "these parameters are in its skip_params",
            ),
            "bench_good.time_marked": ("skipped", "it is marked with skip_benchmark"),
        }

    def test_parameters_of_any_type(self, good):
        assert "bench_good.Params.time_it(n=1, param2=len)" in good

    def test_setup_cache_is_made_once_and_comes_first(self, good, folder):
        log = (folder / "log.txt").read_text().splitlines()
        assert log.count("setup_cache") == 1
        assert "setup 3" in log
        assert "module setup {'n': 3}" in log
        assert good["bench_good.Cached.track_n"].value == 7
        assert good["bench_good.Cached.track_n"].unit == "apples"

    def test_setups_run_before_each_call_and_teardowns_after_it(self, good, folder):
        log = (folder / "log.txt").read_text().splitlines()
        calls = [number for number, line in enumerate(log) if line == "call"]
        assert {log[number - 1] for number in calls} == {"setup 3"}
        assert {log[number + 1] for number in calls} == {"teardown 3"}
        # a first one, two to warm up, three samples of two
        assert len(calls) == 1 + 2 + 3 * 2
        assert good["bench_good.Cached.time_it"].result.cpu.n == 3

    def test_times(self, good):
        assert good["other.time_named"].result.name == "A fine name"
        assert 0 < good["other.time_named"].result.cpu.median < 1e-5
        assert 0 < good["bench_good.timeraw_statement"].result.cpu.median < 1e-3
        gpu = good["bench_good.gpu.gputime_sum"].result
        assert "no-gpu" in {note.code for note in gpu.notes}
        assert gpu.environment["host"]

    def test_memory_pools_are_emptied_between_benchmarks(self, good):
        values = [good[f"bench_pool.track_{which}"].value for which in ("one", "other")]
        assert sorted(values) == [0, 1]

    def test_peak_memory_is_its_own(self, good):
        record = good["bench_good.peakmem_list"]
        assert record.unit == "bytes"
        assert 50e6 < record.value < 500e6


class TestRounds:
    def test_samples_of_all_rounds_with_their_blocks(self, folder):
        saved = run_suite(folder / "bench_good.py", only="Cached.time")
        (record,) = saved.records
        assert record.status == "ok"
        assert record.blocks == (0, 0, 0, 1, 1, 1)
        assert record.result.cpu.n == 6
        assert saved.environment["suite"] == {"path": str(folder), "quick": False}

    def test_gpu_times_of_a_simulated_gpu(self, tmp_path):
        (tmp_path / "bench.py").write_text(
            "import gpubench\n"
            "gpu = gpubench.simulated_gpu()\n"
            "gpu.__enter__()\n"
            "class Sim:\n"
            "    rounds = 2\n"
            "    repeat = 5\n"
            "    def gputime_kernel(self):\n"
            "        gpu.launch(20e-6)\n"
            "    def time_kernel(self):\n"
            "        gpu.launch(20e-6)\n"
            "class InPlace:\n"
            "    number = rounds = 1\n"
            "    gpu_method = 'events'\n"
            "    def setup(self):\n"
            "        self.values = [1]\n"
            "    def gputime_pop(self):\n"
            "        gpu.launch(self.values.pop() * 20e-6)\n"
        )
        gputime, hosttime, in_place = run_suite(tmp_path).records
        assert (in_place.status, in_place.result.method) == ("ok", "events")
        assert gputime.blocks == (0,) * 5 + (1,) * 5
        assert gputime.result.gpu[0].median == pytest.approx(20e-6, rel=0.15)
        assert hosttime.result.cpu.median > 20e-6  # until its work is done


class TestInterruption:
    def test_nothing_is_lost_and_what_is_ok_is_not_repeated(self, tmp_path):
        (tmp_path / "bench.py").write_text(
            "rounds = 2\nrepeat = 1\ndef time_a(): pass\ndef time_b(): pass\n"
        )
        path = tmp_path / "run.json"

        class Stopping(Here):
            def run(self, agenda):
                for n_done, outcome in enumerate(super().run(agenda), 1):
                    yield outcome
                    if n_done == 3:
                        raise KeyboardInterrupt

        first = run_suite(tmp_path, save=path, scheduler=Stopping())
        assert sorted(r.status for r in first.records) == ["interrupted", "ok"]
        (rest,) = [r for r in first.records if r.status == "interrupted"]
        assert rest.reason == "1 of 2 rounds were done"
        assert load(path).records == first.records

        ran = []

        class Watching(Here):
            def run(self, agenda):
                for outcome in super().run(agenda):
                    ran.append((outcome.key, outcome.round))
                    yield outcome

        second = run_suite(tmp_path, save=path, resume=True, scheduler=Watching())
        assert ran == [(rest.key, 1)]
        assert [r.status for r in second.records] == ["ok", "ok"]
        assert [r.blocks for r in second.records] == [(0, 1), (0, 1)]
        assert second.environment["started"] == first.environment["started"]

    def test_what_did_not_run_says_so(self, tmp_path):
        (tmp_path / "bench.py").write_text("def time_a(): pass\n")

        class Stopped(Here):
            def run(self, agenda):
                raise KeyboardInterrupt

        (record,) = run_suite(tmp_path, scheduler=Stopped()).records
        assert (record.status, record.reason) == ("interrupted", "not run")

    def test_resume_needs_a_file_of_such_a_run(self, tmp_path):
        (tmp_path / "bench.py").write_text("def time_a(): pass\n")
        with pytest.raises(gpubench.ArgumentError, match="give save"):
            run_suite(tmp_path, resume=True)
        path = tmp_path / "run.json"
        run_suite(tmp_path, quick=True, save=path)
        with pytest.raises(gpubench.ArgumentError, match="'quick': True"):
            run_suite(tmp_path, save=path, resume=True)

    def test_a_file_that_cannot_be_written_is_known_before_anything_runs(self, tmp_path):
        (tmp_path / "bench.py").write_text("def time_a(): pass\n")

        class Forbidden(Here):
            run = pytest.fail

        with pytest.raises(gpubench.ArgumentError, match="can't be written"):
            run_suite(tmp_path, save=tmp_path / "nowhere" / "run.json", scheduler=Forbidden())


HOW = r"write a Python file .*time_sort\(\).*then: gpubench run FOLDER"


class TestArguments:
    def test_no_such_folder(self, tmp_path):
        with pytest.raises(gpubench.ArgumentError, match=f"neither a folder.*{HOW}"):
            run_suite(tmp_path / "nowhere")

    def test_no_file(self, tmp_path):
        with pytest.raises(gpubench.ArgumentError, match=f"no Python file.*{HOW}"):
            run_suite(tmp_path)

    def test_no_benchmark(self, tmp_path):
        (tmp_path / "empty.py").write_text("")
        with pytest.raises(gpubench.ArgumentError, match=f"the suite has no benchmarks.*{HOW}"):
            run_suite(tmp_path)


class TestOwnSuite:
    """The project's own folder."""

    def test_all_files_load_and_some_run(self):
        folder = Path(__file__).parents[1] / "benchmarks"
        records = run_suite(folder, quick=True, only=r"einsum|raw\(|timeraw_gpubench").records
        on_gpu = records[-1].status == "ok"
        assert {record.key: record.status for record in records} == {
            "bench_import.timeraw_gpubench": "ok",
            "bench_linalg.Batched.gputime_einsum": "ok",
            **{
                f"bench_raw_kernels.Saxpy.gputime_raw(n={n})": "ok" if on_gpu else "skipped"
                for n in ((10**6, 10**8) if on_gpu else (10**3, 10**5))
            },
        }
        assert on_gpu or records[-1].reason == "raw kernels need a GPU"
