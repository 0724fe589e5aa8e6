"""The pytest plugin, in sessions of pytest of its own."""

import subprocess
import sys
import textwrap
from importlib import metadata

import pytest

import gpubench.integrations.pytest_plugin.session  # noqa: F401  # each run would import it anew
from gpubench import storage

pytest_plugins = ["pytester"]

PLUGIN = "gpubench.integrations.pytest_plugin"

ON_GPU = """
    import os
    import gpubench

    def test_launch(gpu_benchmark):
        with gpubench.simulated_gpu(jitter=0.01) as gpu:
            gpu_benchmark(gpu.launch, (float(os.environ["KERNEL_TIME"]),), n_repeat=40)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on a test file, and with options; only the plugins named are there."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(source, *options, plugins=(), inside=True):
        pytester.makepyfile(test_it=textwrap.dedent(source))
        run = pytester.runpytest_inprocess if inside else pytester.runpytest_subprocess
        named = [part for plugin in (PLUGIN, *plugins) for part in ("-p", plugin)]
        return run(*named, "-p", "no:cacheprovider", *options)

    return run


@pytest.fixture
def records(pytester):
    """Records in a saved file, by their keys."""

    def records(name="saved.json"):
        saved = storage.load(pytester.path / name)
        return dict(zip(saved.keys, saved.records, strict=True))

    return records


class TestFixture:
    def test_it_times_like_benchmark_and_returns_its_result(self, run):
        done = run(
            """
            def test_sum(gpu_benchmark):
                result = gpu_benchmark(sum, ([1, 2],), {"start": 3}, 20, n_warmup=2)
                assert (result.name, result.cpu.n, result.n_warmup) == ("test_sum", 20, 2)
                assert not gpu_benchmark.disabled
            """
        )
        assert done.ret == 0

    def test_gpu_times_are_those_of_the_gpu(self, run):
        done = run(
            """
            import gpubench

            def test_launch(gpu_benchmark):
                with gpubench.simulated_gpu() as gpu:
                    result = gpu_benchmark(gpu.launch, (20e-3,), n_repeat=3, n_warmup=1)
                assert result.gpu[0].mean >= 15e-3
            """
        )
        assert done.ret == 0
        done.stdout.fnmatch_lines(["name * GPU-0 median *", "test_launch * gated * ms *"])

    def test_without_a_gpu_it_times_the_host_and_says_so(self, run, no_cupy):
        done = run("def test_sum(gpu_benchmark): gpu_benchmark(sum, ([1],), n_repeat=5)")
        done.stdout.fnmatch_lines(
            [
                "*= gpubench =*",
                "test_sum *5  host *",
                "no-gpu: No GPU found, so only the host's time was taken: *",
            ]
        )

    def test_errors_of_the_function_are_the_tests(self, run):
        done = run("def test_it(gpu_benchmark): gpu_benchmark(lambda: [][0])")
        assert done.ret == 1
        done.stdout.fnmatch_lines(["*IndexError: list index out of range*"])

    def test_wrong_arguments_are_refused_as_by_benchmark(self, run):
        done = run("def test_it(gpu_benchmark): gpu_benchmark(sum, [[1]], n_repeat=0)")
        done.stdout.fnmatch_lines(["*ArgumentError: n_repeat must be at least 1, got 0*"])

    def test_method_is_what_the_option_says_where_the_test_does_not(self, run, records):
        run(
            """
            import gpubench

            def test_it(gpu_benchmark):
                with gpubench.simulated_gpu() as gpu:
                    gpu_benchmark(gpu.launch, (1e-5,), n_repeat=3)
                    gpu_benchmark(gpu.launch, (1e-5,), n_repeat=3, method="host", name="host")
            """,
            "--gpubench-method=events",
            "--gpubench-save=saved.json",
        )
        methods = {key: record.result.method for key, record in records().items()}
        assert methods == {"test_it.py::test_it": "events", "test_it.py::test_it::host": "host"}


class TestSave:
    def save(self, run, source):
        return run(source, "--gpubench-save=saved.json")

    def test_names_are_node_ids_and_parameters_are_apart(self, run, records):
        done = self.save(
            run,
            """
            import pytest

            class TestSums:
                @pytest.mark.parametrize("dtype", [int, "float32"])
                @pytest.mark.parametrize("n", [1, 20])
                def test_sum(self, gpu_benchmark, n, dtype):
                    gpu_benchmark(sum, ([1],), n_repeat=2)
            """,
        )
        done.stdout.fnmatch_lines(["Saved to *saved.json: 4 benchmarks."])
        test = "test_it.py::TestSums::test_sum"
        assert list(records()) == [
            f"{test}(n=1, dtype=int)",
            f"{test}(n=1, dtype='float32')",
            f"{test}(n=20, dtype=int)",
            f"{test}(n=20, dtype='float32')",
        ]
        assert records()[f"{test}(n=1, dtype='float32')"].params == {"n": 1, "dtype": "float32"}

    def test_what_only_its_place_in_memory_tells_apart_goes_by_the_tests_id(self, run, records):
        self.save(
            run,
            """
            import pytest

            @pytest.mark.parametrize("n", [1])
            @pytest.mark.parametrize("f", [lambda: 1, lambda: 2], ids=["one", "two"])
            def test_call(gpu_benchmark, f, n):
                gpu_benchmark(f, n_repeat=2)
            """,
        )
        assert [record.params for record in records().values()] == [
            {"n": 1, "id": "one-1"},
            {"n": 1, "id": "two-1"},
        ]

    def test_several_of_one_test_have_names(self, run, records):
        self.save(
            run,
            """
            def test_it(gpu_benchmark):
                for name in ("a", "b"):
                    gpu_benchmark(sum, ([1],), n_repeat=2, name=name)
            """,
        )
        assert list(records()) == ["test_it.py::test_it::a", "test_it.py::test_it::b"]

    def test_a_test_that_fails_or_is_skipped_saves_no_times(self, run, records):
        done = self.save(
            run,
            """
            import pytest

            def test_raises(gpu_benchmark):
                gpu_benchmark(lambda: 1 / 0)

            def test_wrong_answer(gpu_benchmark):
                gpu_benchmark(sum, ([1],), n_repeat=2)
                assert sum([1]) == 2

            def test_skips(gpu_benchmark):
                pytest.skip("no cuFFT")

            @pytest.mark.xfail(reason="too slow")
            def test_expected(gpu_benchmark):
                gpu_benchmark(sum, ([1],), n_repeat=2)
                assert False

            @pytest.fixture
            def broken(gpu_benchmark):
                raise OSError("gone")

            def test_set_up(broken):
                pass

            def test_ok(gpu_benchmark):
                gpu_benchmark(sum, ([1],), n_repeat=2)
            """,
        )
        found = {
            record.name.partition("::")[2]: (record.status, record.reason)
            for record in records().values()
        }
        assert found == {
            "test_raises": ("failed", "ZeroDivisionError: division by zero"),
            "test_wrong_answer": ("failed", "assert 1 == 2"),
            "test_skips": ("skipped", "no cuFFT"),
            "test_expected": ("skipped", "xfail: too slow"),
            "test_set_up": ("failed", "OSError: gone"),
            "test_ok": ("ok", ""),
        }
        timed = [record.name for record in records().values() if record.result]
        assert timed == ["test_it.py::test_ok"]
        done.stdout.fnmatch_lines(
            ["no times of test_it.py::test_raises: failed: ZeroDivisionError: division by zero"]
        )

    def test_a_test_of_unittest_that_fails_saves_no_times(self, run, records):
        self.save(
            run,
            """
            import unittest
            import pytest

            class TestIt(unittest.TestCase):
                @pytest.fixture(autouse=True)
                def take(self, gpu_benchmark):
                    self.gpu_benchmark = gpu_benchmark

                def test_fails(self):
                    self.gpu_benchmark(sum, ([1],), n_repeat=2)
                    self.assertEqual(1, 2)

                def test_passes(self):
                    self.gpu_benchmark(sum, ([1],), n_repeat=2)
            """,
        )
        failed, passed = records().values()
        assert (failed.status, failed.reason) == ("failed", "AssertionError: 1 != 2")
        assert failed.result is None
        assert passed.status == "ok"

    @pytest.mark.skipif(
        pytest.version_tuple < (9,), reason="subtests are another plugin's before pytest 9"
    )
    def test_a_test_with_a_subtest_that_fails_saves_no_times(self, run, records):
        self.save(
            run,
            """
            import pytest

            @pytest.mark.parametrize("wrong", [None, 0, 1, 2])
            def test_it(gpu_benchmark, subtests, wrong):
                for part in range(3):
                    with subtests.test(part=part):
                        gpu_benchmark(sum, ([1],), n_repeat=2, name=str(part))
                        assert part != wrong

            def test_part_of_it_is_skipped(gpu_benchmark, subtests):
                for part in range(2):
                    with subtests.test(part=part):
                        if part:
                            pytest.skip("no cuFFT")
                        gpu_benchmark(sum, ([1],), n_repeat=2)
            """,
        )
        statuses = [record.status for record in records().values()]
        assert statuses == ["ok"] * 3 + ["failed"] * 9 + ["ok"]

    def test_times_of_a_test_whose_teardown_fails_are_kept(self, run, records):
        self.save(
            run,
            """
            import pytest

            @pytest.fixture
            def leaky():
                yield
                raise OSError("leak")

            def test_it(leaky, gpu_benchmark):
                gpu_benchmark(sum, ([1],), n_repeat=2)
            """,
        )
        assert records()["test_it.py::test_it"].status == "ok"

    def test_ctrl_c_ends_the_session_and_keeps_what_there_is(self, run, records):
        done = run(
            """
            import itertools

            calls = itertools.count()

            def interrupt():
                if next(calls) == 20:
                    raise KeyboardInterrupt

            def test_first(gpu_benchmark):
                gpu_benchmark(sum, ([1],), n_repeat=2)

            def test_interrupted(gpu_benchmark):
                gpu_benchmark(interrupt, n_repeat=1000, n_warmup=10)

            def test_never(gpu_benchmark):
                gpu_benchmark(sum, ([1],), n_repeat=2)
            """,
            "--gpubench-save=saved.json",
            inside=False,
        )
        assert done.ret == pytest.ExitCode.INTERRUPTED
        assert [(r.status, r.result.cpu.n) for r in records().values()] == [
            ("ok", 2),
            ("interrupted", 10),
        ]

    def test_what_was_timed_is_saved_before_the_session_ends(self, run, records):
        run(
            """
            import os

            def test_first(gpu_benchmark):
                gpu_benchmark(sum, ([1],), n_repeat=2)

            def test_crash():
                os._exit(3)
            """,
            "--gpubench-save=saved.json",
            inside=False,
        )
        assert list(records()) == ["test_it.py::test_first"]

    def test_folders_are_made(self, run, records):
        run(
            "def test_it(gpu_benchmark): gpu_benchmark(sum, ([1],), n_repeat=2)",
            "--gpubench-save=some/new/saved.json",
        )
        assert list(records("some/new/saved.json")) == ["test_it.py::test_it"]

    def test_a_test_may_change_the_current_folder(self, run, records):
        run(
            """
            def test_it(gpu_benchmark, monkeypatch, tmp_path):
                monkeypatch.chdir(tmp_path)
                gpu_benchmark(sum, ([1],), n_repeat=2)
            """,
            "--gpubench-save=saved.json",
        )
        assert list(records()) == ["test_it.py::test_it"]

    def test_without_benchmarks_nothing_is_written(self, run, pytester):
        done = self.save(run, "def test_it(): pass")
        done.stdout.fnmatch_lines(["Nothing was benchmarked, so *saved.json was not written."])
        assert not (pytester.path / "saved.json").exists()

    def test_a_folder_is_refused_before_any_test_runs(self, run):
        done = run("def test_it(): pass", "--gpubench-save=.")
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        done.stderr.fnmatch_lines(["ERROR: gpubench: --gpubench-save needs a file, *is a folder"])

    def test_that_it_could_not_be_saved_fails_the_session(self, run):
        done = run(
            """
            import os

            def test_it(gpu_benchmark):
                gpu_benchmark(sum, ([1],), n_repeat=2)
                os.mkdir("saved.json")
            """,
            "--gpubench-save=saved.json",
        )
        assert done.ret == pytest.ExitCode.TESTS_FAILED
        done.stdout.fnmatch_lines(["Could not save to *saved.json: *"])


class TestCompare:
    @pytest.fixture
    def again(self, run, monkeypatch):
        """Save a run with a kernel of 20 us, and compare one with another kernel."""

        def again(kernel_time, *options):
            monkeypatch.setenv("KERNEL_TIME", "20e-6")
            run(ON_GPU, "--gpubench-save=base.json")
            monkeypatch.setenv("KERNEL_TIME", str(kernel_time))
            return run(ON_GPU, "--gpubench-compare=base.json", *options)

        return again

    def test_a_slower_one_is_told(self, again):
        done = again(30e-6)
        assert done.ret == 0
        done.stdout.fnmatch_lines(
            [
                "A: *base.json, B: this session",
                "test_it.py::test_launch *1.4?? [[]*[]] *slower",
                "verdicts: 1 slower, 0 faster, 0 unclear, 0 same",
            ]
        )

    def test_a_slower_one_fails_the_session_if_it_must_not_be(self, again):
        done = again(30e-6, "--gpubench-fail-on-slower")
        assert done.ret == pytest.ExitCode.TESTS_FAILED
        done.stdout.fnmatch_lines(
            ["Failed by --gpubench-fail-on-slower: slower than before: test_it.py::test_launch"]
        )

    @pytest.mark.parametrize("kernel_time", [20e-6, 15e-6])
    def test_one_that_is_not_slower_passes(self, again, kernel_time):
        assert again(kernel_time, "--gpubench-fail-on-slower", "--gpubench-margin=5%").ret == 0

    @pytest.mark.parametrize("margin", ["90%", "0.9"])
    def test_what_is_within_the_margin_is_the_same(self, again, margin):
        done = again(30e-6, "--gpubench-fail-on-slower", f"--gpubench-margin={margin}")
        assert done.ret == 0
        done.stdout.fnmatch_lines(["verdicts: 0 slower, 0 faster, 0 unclear, 1 same"])

    def test_a_gate_that_nothing_passes_fails(self, run, again):
        again(20e-6)
        new = "def test_new(gpu_benchmark): gpu_benchmark(sum, ([1],), n_repeat=2)"
        done = run(new, "--gpubench-compare=base.json", "--gpubench-fail-on-slower")
        assert done.ret == pytest.ExitCode.TESTS_FAILED
        done.stdout.fnmatch_lines(
            [
                "Nothing to compare: no benchmark that ran is in *base.json.",
                "Failed by --gpubench-fail-on-slower: nothing was compared",
            ]
        )
        assert run(new, "--gpubench-compare=base.json").ret == 0

    def test_a_gate_through_which_only_failures_come_fails(self, run):
        source = "def test_it(gpu_benchmark): gpu_benchmark(sum, ([1],), n_repeat=2)"
        run(source, "--gpubench-save=base.json")
        skipping = "import pytest\ndef test_it(gpu_benchmark): pytest.skip('no')"
        done = run(skipping, "--gpubench-compare=base.json", "--gpubench-fail-on-slower")
        assert done.ret == pytest.ExitCode.TESTS_FAILED
        done.stdout.fnmatch_lines(["Failed by --gpubench-fail-on-slower: nothing was compared"])

    def test_collecting_compares_nothing(self, run, again):
        again(20e-6)
        options = ["--gpubench-compare=base.json", "--gpubench-fail-on-slower", "--collect-only"]
        assert run(ON_GPU, *options).ret == 0

    def test_tests_that_were_not_selected_are_no_news(self, run):
        source = """
            def test_a(gpu_benchmark): gpu_benchmark(sum, ([1],), n_repeat=30)
            def test_b(gpu_benchmark): gpu_benchmark(sum, ([1],), n_repeat=30)
        """
        run(source, "--gpubench-save=base.json")
        done = run(source, "--gpubench-compare=base.json", "-k", "test_a")
        done.stdout.fnmatch_lines(["compared: 1 of the 1 benchmarks in both"])
        done.stdout.no_fnmatch_line("*test_b*")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--gpubench-compare=none.json"], "'*none.json' can't be read: No such file *"),
            (["--gpubench-fail-on-slower"], "--gpubench-fail-on-slower needs --gpubench-compare *"),
            (["--gpubench-margin=much"], "--gpubench-margin must be a number such as 5% or *"),
            (["--gpubench-margin=0%"], "--gpubench-margin must be above 0, got 0.0"),
            (["--gpubench-method=gate"], "--gpubench-method must be one of 'auto', *"),
            (
                ["--gpubench-disable", "--gpubench-compare=x", "--gpubench-fail-on-slower"],
                "--gpubench-fail-on-slower needs times, but --gpubench-disable was given",
            ),
        ],
    )
    def test_wrong_options_are_refused_before_any_test_runs(self, run, options, message):
        done = run("def test_it(): pass", *options)
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        done.stderr.fnmatch_lines([f"ERROR: gpubench: {message}"])


COUNTING = """
    import pathlib

    def test_it(gpu_benchmark):
        def called(x):
            with pathlib.Path("calls").open("a") as calls:
                calls.write(x)

        result = gpu_benchmark(called, ("x",), n_repeat=50, n_warmup=5)
        assert gpu_benchmark.disabled
        assert result.cpu.n == 1
"""


class TestDisabled:
    def test_each_function_is_called_once(self, run, pytester):
        done = run(COUNTING, "--gpubench-disable", "--gpubench-save=saved.json")
        assert done.ret == 0
        assert (pytester.path / "calls").read_text() == "x"
        assert not (pytester.path / "saved.json").exists()
        done.stdout.fnmatch_lines(
            ["Benchmarks are disabled: --gpubench-disable was given. 1 function called once, *"]
        )

    def test_xdist_disables_and_it_is_said(self, run, pytester):
        done = run(COUNTING, "-n2", "--gpubench-save=saved.json", plugins=["xdist"], inside=False)
        assert done.ret == 0
        assert (pytester.path / "calls").read_text() == "x"
        assert not (pytester.path / "saved.json").exists()
        done.stdout.fnmatch_lines(
            [
                "Benchmarks are disabled: pytest-xdist runs tests side by side, *"
                "1 function called once, untimed; nothing saved or compared."
            ]
        )

    def test_xdist_refuses_a_gate(self, run):
        options = ["-n2", "--gpubench-compare=base.json", "--gpubench-fail-on-slower"]
        done = run("def test_it(): pass", *options, plugins=["xdist"], inside=False)
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        done.stderr.fnmatch_lines(["ERROR: *--gpubench-fail-on-slower needs times, but *xdist *"])

    def test_xdist_with_a_single_process_times(self, run):
        source = "def test_it(gpu_benchmark): assert not gpu_benchmark.disabled"
        assert run(source, "-n0", plugins=["xdist"]).ret == 0


def test_it_works_beside_pytest_benchmark(run, records):
    done = run(
        """
        def test_theirs(benchmark):
            assert benchmark(sum, [1]) == 1

        def test_ours(gpu_benchmark):
            gpu_benchmark(sum, ([1],), n_repeat=2)

        def test_both(benchmark, gpu_benchmark):
            benchmark(sum, [1])
            gpu_benchmark(sum, ([1],), n_repeat=2)
        """,
        "--gpubench-save=saved.json",
        "--benchmark-disable",
        plugins=["pytest_benchmark.plugin"],
    )
    done.assert_outcomes(passed=3)
    assert list(records()) == ["test_it.py::test_ours", "test_it.py::test_both"]


def test_unused_it_imports_and_prints_nothing(run):
    done = run(
        """
        import sys

        def test_it():
            assert sorted(name for name in sys.modules if name.startswith("gpubench")) == [
                "gpubench",
                "gpubench.integrations",
                "gpubench.integrations.pytest_plugin",
            ]
            assert "numpy" not in sys.modules
        """,
        inside=False,
    )
    done.assert_outcomes(passed=1)
    done.stdout.no_fnmatch_line("*gpubench*")


def test_options_and_fixture_are_described(run):
    done = run("", "--help")
    done.stdout.fnmatch_lines(["*--gpubench-save=FILE*", "*--gpubench-fail-on-slower*"])
    done = run("", "--fixtures")
    done.stdout.fnmatch_lines(["gpu_benchmark*", "*Time a function as `gpubench.benchmark` does*"])


def test_pytest_finds_it_where_gpubench_is_installed():
    points = metadata.entry_points(group="pytest11", name="gpubench")
    if not points:
        pytest.skip("gpubench is not installed, or was before it had the plugin")
    assert {point.value for point in points} == {PLUGIN}
    code = f"import sys, {PLUGIN}; print('numpy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"
