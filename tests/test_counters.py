import os
import signal
import sys
import threading
import time
from pathlib import Path

import fake_ncu
import pytest

from gpubench.errors import ArgumentError
from gpubench.sweeps.counters import CounterReport, collect_counters
from gpubench.sweeps.regions import annotate

pytest.importorskip("cloudpickle")

READ = "dram__bytes_read.sum"
HIT_RATE = "lts__t_sector_hit_rate.pct"
TIME = "gpu__time_duration.sum"
NO_PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
    "Performance Counters on the target device 0. For instructions on enabling permissions and "
    "to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
)


@pytest.fixture(autouse=True)
def no_package(monkeypatch):
    """The report is read as the CSV that ncu prints."""
    monkeypatch.setitem(sys.modules, "ncu_report", None)


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Install a program ncu, which behaves as told."""

    def install(**behaviour):
        return fake_ncu.install(tmp_path, monkeypatch, **behaviour)

    return install


def launch(n, kernel="copy"):
    fake_ncu.launch(kernel, {READ: n, HIT_RATE: n / 10, TIME: n})


def copy(n):
    launch(n)


def message(report):
    """Return what the only note says; there are no counters then."""
    assert (report.values, report.units) == ({}, {})
    (note,) = report.notes
    assert note.code == "no-counters"
    return f"{note.message} {note.advice}".rstrip()


def reads(report):
    return {place: counters[READ] for place, counters in report.values.items()}


def test_a_function_without_regions(ncu):
    calls = ncu()
    configs = [{"n": 100}, {"n": 250}]
    report = collect_counters(copy, configs, [READ, HIT_RATE])
    assert report == CounterReport(
        values={(0, None): {READ: 100, HIT_RATE: 10}, (1, None): {READ: 250, HIT_RATE: 25}},
        units={READ: "", HIT_RATE: ""},
    )
    profiling, printing = calls()
    assert profiling["--metrics"] == f"{READ},{HIT_RATE},{TIME}"
    assert printing["--import"] == profiling["--export"]


def test_the_time_is_told_if_asked_for(ncu):
    ncu()
    report = collect_counters(copy, [{"n": 100}], [TIME, READ])
    assert report.values[0, None] == {TIME: 100, READ: 100}
    assert report.units[TIME] == "ns"


def with_regions(n):
    launch(1)
    with annotate('region 7: "outer"'):
        launch(10)
        with annotate("inner"):
            launch(100)
            launch(1000)
        with annotate("inner"), annotate("inner"):
            launch(n)
    if n > 1:
        with annotate("sometimes"):
            launch(5)


def test_regions_nest_and_are_entered_many_times_or_in_some_configurations_only(ncu):
    ncu()
    report = collect_counters(with_regions, [{"n": 1}, {"n": 2}], [READ])
    assert reads(report) == {
        (0, None): 1112,
        (0, 'region 7: "outer"'): 1111,
        (0, "inner"): 1101,
        (1, None): 1118,
        (1, 'region 7: "outer"'): 1112,
        (1, "inner"): 1102,
        (1, "sometimes"): 5,
    }
    assert not report.notes


def in_threads(n):
    def work(name, amount):
        with annotate(name):
            ready.wait()
            launch(amount)
            ready.wait()

    ready = threading.Barrier(2)
    threads = [threading.Thread(target=work, args=pair) for pair in (("a", n), ("b", 2 * n))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_regions_of_several_threads_are_told_apart(ncu):
    ncu()
    report = collect_counters(in_threads, [{"n": 3}], [READ])
    assert reads(report) == {(0, None): 9, (0, "a"): 3, (0, "b"): 6}


def overlapping(n):
    first, second = annotate("first"), annotate("second")
    first.__enter__()
    launch(n)
    second.__enter__()
    launch(10 * n)
    first.__exit__(None, None, None)
    launch(100 * n)
    second.__exit__(None, None, None)
    launch(1000 * n)


def test_regions_may_overlap(ncu):
    ncu()
    report = collect_counters(overlapping, [{"n": 1}], [READ])
    assert reads(report) == {(0, None): 1111, (0, "first"): 11, (0, "second"): 110}


def test_several_kernels_are_reduced_as_the_metric_demands_or_the_user_says(ncu):
    def two(n):
        launch(10)
        launch(n)

    ncu()
    report = collect_counters(two, [{"n": 30}], [READ, HIT_RATE])
    assert report.values[0, None] == {READ: 40, HIT_RATE: pytest.approx((10 + 90) / 40)}
    own = collect_counters(two, [{"n": 30}], [READ, HIT_RATE], reduce={READ: min})
    assert own.values[0, None] == {READ: 10, HIT_RATE: pytest.approx((10 + 90) / 40)}


def positional(a, /, *rest, scale):
    launch(scale * (a + sum(rest)))


def test_arguments_arrive_whatever_the_signature(ncu):
    ncu()
    config = {"a": 1, "rest0": 10, "rest1": 100, "scale": 2}
    assert reads(collect_counters(positional, [config], [READ])) == {(0, None): 222}


def test_a_report_is_kept_if_asked_for(ncu, tmp_path):
    ncu()
    collect_counters(copy, [{"n": 100}], [READ], keep_report=tmp_path / "mine")
    collect_counters(copy, [{"n": 200}], [READ], keep_report=str(tmp_path / "mine.ncu-rep"))
    assert [path.name for path in tmp_path.glob("mine*")] == ["mine.ncu-rep"]
    assert '"200"' in (tmp_path / "mine.ncu-rep").read_text()


def test_a_report_that_cannot_be_read_is_kept_too(ncu, tmp_path):
    ncu(printed="==ERROR== The report is from a newer version.")
    report = collect_counters(copy, [{"n": 1}], [READ], keep_report=tmp_path / "mine")
    assert message(report) == "Nsight Compute failed: The report is from a newer version."
    assert (tmp_path / "mine.ncu-rep").exists()


def test_a_report_that_knows_no_ranges(ncu):
    ncu(printed='"ID","Kernel Name","dram__bytes_read.sum"\n"","","byte"\n"0","copy","1"\n')
    assert message(collect_counters(copy, [{"n": 1}], [READ])) == (
        "No kernel in Nsight Compute's report is told to be in one of the sweep's NVTX ranges. "
        'Install the package that reads reports: pip install "gpubench[counters]".'
    )


def test_absent(monkeypatch, tmp_path):
    report = collect_counters(copy, [{"n": 1}], [READ], ncu=tmp_path / "ncu")
    assert message(report).startswith(f"'{tmp_path}/ncu', which reads hardware counters")


def test_too_old(ncu):
    ncu(version="2021.3.1")
    assert "is Nsight Compute 2021.3, and 2022.3 or newer is needed." in message(
        collect_counters(copy, [{"n": 1}], [READ])
    )


@pytest.mark.parametrize("runs", [True, False])
def test_no_permission(ncu, runs):
    ncu(log=NO_PERMISSION, report=False, runs=runs)
    said = message(collect_counters(copy, [{"n": 1}], [READ]))
    assert said.startswith(
        "The NVIDIA driver lets only an administrator read hardware counters (ERR_NVGPUCTRPERM). "
        "Run as root; or allow everyone: put 'options nvidia NVreg_RestrictProfilingToAdminUsers=0'"
    )


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (
            "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no "
            "other tool (like DCGM) is concurrently collecting profiling data.\n",
            "Another tool holds the GPU's hardware counters.",
        ),
        (
            "==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock. Please check "
            "that this process has write permissions on this file.\n",
            "Set TMPDIR to a folder of your own.",
        ),
        (
            "==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] "
            "on path?).\n==ERROR== The application returned an error code (1).\n",
            "Nsight Compute found no CUDA driver.",
        ),
        (
            "==PROF== Connected to process 1\n==ERROR== Failed to initialize the profiler: "
            "LibraryNotLoaded\n",
            "Nsight Compute failed: Failed to initialize the profiler: LibraryNotLoaded.",
        ),
    ],
)
def test_what_ncu_says_of_its_failure(ncu, log, says):
    ncu(log=log, runs=False)
    assert says in message(collect_counters(copy, [{"n": 1}], [READ]))


def test_ncu_ends_without_a_word(ncu):
    ncu(runs=False)
    report = collect_counters(copy, [{"n": 1}], [READ])
    assert message(report) == "Nsight Compute failed: it said nothing."


def nothing(n):
    print("==PROF== is not for functions to say")


def test_no_kernels(ncu):
    ncu()
    assert message(collect_counters(nothing, [{"n": 1}], [READ])) == (
        "Nsight Compute saw no kernel in the sweep's configurations. Check that the function "
        "launches kernels, and not in processes of its own."
    )


def dying(n):
    copy(n)
    if n == 2:
        print("it is the end", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_crash_leaves_the_configurations_before_it(ncu):
    ncu()
    report = collect_counters(dying, [{"n": 1}, {"n": 2}, {"n": 3}], [READ])
    assert reads(report) == {(0, None): 1}
    (note,) = report.notes
    assert note.code == "some-counters"
    assert note.message == (
        "The process under ncu ended in configs[1]; last words: The application returned an error "
        "code (9); it is the end."
    )


def test_a_crash_at_once(ncu):
    ncu()
    said = message(collect_counters(dying, [{"n": 2}], [READ]))
    assert said.startswith("The process under ncu ended in configs[0]; last words: ")


def failing(n):
    copy(n)
    if n == 2:
        raise ValueError("two\nis too many")
    with annotate("later"):
        copy(n)


def test_a_failing_configuration_leaves_the_others(ncu):
    ncu()
    report = collect_counters(failing, [{"n": 2}, {"n": 3}], [READ])
    assert reads(report) == {(1, None): 6, (1, "later"): 3}
    (note,) = report.notes
    assert (note.code, note.message) == (
        "some-counters",
        "Under ncu, the function failed in configs[0] (ValueError: two is too many).",
    )


def test_all_configurations_fail(ncu):
    ncu()
    report = collect_counters(failing, [{"n": 2}], [READ])
    assert message(report) == (
        "Under ncu, the function failed in configs[0] (ValueError: two is too many)."
    )


def failing_late(n):
    if Path(os.environ["SEEN"]).exists():
        copy(n)
        raise ValueError
    Path(os.environ["SEEN"]).touch()


def test_what_a_failing_run_did_until_then_does_not_count(ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    ncu()
    report = collect_counters(failing_late, [{"n": 2}], [READ])
    assert report.values == {}
    assert [note.message for note in report.notes] == [
        "Under ncu, the function failed in configs[0] (ValueError)."
    ]


def test_a_pass_that_takes_too_long_is_ended_with_all_that_it_started(ncu, tmp_path):
    def sleeping(n):
        path.write_text(str(os.getpid()))
        time.sleep(60)

    path = tmp_path / "pid"
    ncu()
    start = time.perf_counter()
    said = message(collect_counters(sleeping, [{"n": 1}], [READ], timeout=6))
    assert time.perf_counter() - start < 30
    assert said.startswith("Reading the counters took longer than 6 s and was ended. Allow more")
    pid = int(path.read_text())
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("the function is still running")


def test_a_metric_that_the_gpu_does_not_have(ncu):
    ncu()
    report = collect_counters(copy, [{"n": 1}], [READ, "sm__pipe_imaginary_cycles_active.avg"])
    assert report.values == {(0, None): {READ: 1}}
    (note,) = report.notes
    assert (note.code, note.message) == (
        "some-counters",
        "Nsight Compute has no value of sm__pipe_imaginary_cycles_active.avg (copy).",
    )
    assert "ncu --query-metrics-mode suffix" in note.advice


def test_errors_beside_a_report_are_told(ncu):
    ncu(log='==ERROR== Failed to profile "sort" in process 4711\n')
    report = collect_counters(copy, [{"n": 1}], [READ])
    assert reads(report) == {(0, None): 1}
    assert [note.message for note in report.notes] == [
        'Nsight Compute failed: Failed to profile "sort" in process 4711.'
    ]


def test_a_reduction_that_fails_is_no_reason_to_lose_a_sweep(ncu):
    ncu()
    report = collect_counters(copy, [{"n": 1}], [READ], reduce=lambda values: values[1])
    assert message(report).startswith("reduce failed (IndexError: ")


def test_a_function_that_cannot_travel(ncu):
    lock = threading.Lock()
    calls = ncu()
    report = collect_counters(lambda n: lock, [{"n": 1}], [READ])
    assert "can't be sent to another process" in message(report)
    with pytest.raises(FileNotFoundError):
        calls()


def test_a_function_that_cannot_arrive(ncu, tmp_path, monkeypatch):
    (tmp_path / "fleeting.py").write_text("def func(n): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import fleeting

    ncu()
    (tmp_path / "fleeting.py").write_text("raise OSError('gone')\n")
    said = message(collect_counters(fleeting.func, [{"n": 1}], [READ]))
    assert "The function couldn't be run under ncu: func and args can't be loaded" in said
    assert "OSError: gone" in said


def test_without_cloudpickle(ncu, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    ncu()
    said = message(collect_counters(copy, [{"n": 1}], [READ]))
    assert "counters needs the package 'cloudpickle'" in said
    assert 'pip install "gpubench[' in said


def test_nvtx_is_needed_and_switched_on(ncu, tmp_path, monkeypatch):
    monkeypatch.setenv("NVTX_DISABLE", "1")
    ncu()
    assert reads(collect_counters(copy, [{"n": 1}], [READ])) == {(0, None): 1}
    (tmp_path / "site" / "nvtx.py").write_text("raise ImportError('no nvtx here')\n")
    said = message(collect_counters(copy, [{"n": 1}], [READ]))
    assert said.startswith("The function couldn't be run under ncu: regions can't be marked by")


def test_what_a_function_prints_is_not_shown(ncu, capfd):
    ncu()
    collect_counters(nothing, [{"n": 1}], [READ])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"metrics": "nosuch"}, "neither a metric nor a set"),
        ({"metrics": READ, "timeout": 0}, "timeout must be above 0"),
        ({"metrics": READ, "reduce": 3}, "reduce must be a function"),
        ({"metrics": READ, "keep_report": "/no/such/folder/x"}, "folder that doesn't exist"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(ncu, wrong, message):
    calls = ncu()
    with pytest.raises(ArgumentError, match=message):
        collect_counters(copy, [{"n": 1}], **wrong)
    with pytest.raises(FileNotFoundError):
        calls()
