"""The plugin for asv: its benchmarks and its clock, asv itself over a repository, `asv-check`."""

import json
import os
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gpubench
from gpubench.cli import main
from gpubench.integrations.asv import check_asv

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "plugins" / "asv_bench_gpubench"


@pytest.fixture
def gputime(monkeypatch):
    """The module of the plugin's benchmarks."""
    pytest.importorskip("asv_runner.benchmarks")
    monkeypatch.syspath_prepend(PLUGIN)
    from asv_bench_gpubench.benchmarks import gputime

    return gputime


@pytest.fixture
def run(gputime):
    """A function that runs another as a benchmark with these attributes, and returns the result."""

    def run(func, *params, **attributes):
        attributes = {"repeat": 3, "warmup_time": 0.001, **attributes}
        bench = gputime.GpuTimeBenchmark("b.gputime_f", func, [SimpleNamespace(**attributes)])
        bench.do_setup()
        return bench.run(*params)

    return run


class TestBenchmark:
    @pytest.mark.parametrize("name", ["gputime_sum", "gputime__", "GpuTimeSum", "GpuTime_sum"])
    def test_names_that_are_its(self, gputime, name):
        assert gputime.GpuTimeBenchmark.name_regex.match(name)
        assert not gputime.TimeBenchmark.name_regex.match(name)

    @pytest.mark.parametrize(
        "name", ["gputime", "gputime_", "time_gputime_x", "gpu_time_x", "GpuTime", "GpuTimesum"]
    )
    def test_names_that_are_not(self, gputime, name):
        assert not gputime.GpuTimeBenchmark.name_regex.match(name)

    def test_samples_are_gpu_times(self, gpu, run):
        result = run(gpu.launch, 20e-3)
        assert result["number"] == 1
        assert result["samples"] == pytest.approx([20e-3] * 3, rel=0.01)

    def test_a_loop_count_is_applied_once(self, gpu, run):
        result = run(lambda: gpu.launch(1e-3), number=4)
        assert result["number"] == 4
        assert result["samples"] == pytest.approx([1e-3] * 3, rel=0.02)

    def test_a_sample_is_as_many_calls_as_the_loop_count_says(self, no_cupy, run):
        calls = []
        run(lambda: calls.append(1), number=4, repeat=3, warmup_time=0)
        assert len(calls) == 3 * 4

    def test_busiest_of_several_devices_counts(self, run):
        with gpubench.simulated_gpu(n_devices=2, jitter=0) as gpu:

            def both():
                for device in (0, 1):
                    gpu.use_device(device)
                    gpu.launch(1e-3 + 2e-3 * device)

            samples = run(both, gpu_devices=[0, 1])["samples"]
        assert samples == pytest.approx([3e-3] * 3, rel=0.02)

    @pytest.mark.usefixtures("gpu")
    def test_the_method_can_be_chosen(self, run, monkeypatch):
        chosen = []
        monkeypatch.setattr(
            gpubench, "benchmark", lambda *_, **options: chosen.append(options) or FEW
        )
        run(lambda: None, gpu_method="events", gpu_cache="cold", gpu_devices=0)
        assert [chosen[0][name] for name in ("method", "cache", "devices")] == ["events", "cold", 0]

    def test_without_a_gpu_it_is_the_hosts_time_and_says_so(self, run, no_cupy, capsys):
        result = run(time.sleep, 0.002)
        assert min(result["samples"]) >= 0.002
        assert "gpubench: no-gpu: No GPU found, so only the host's time" in capsys.readouterr().err

    def test_each_call_meets_a_fresh_setup_and_is_a_sample_of_its_own(self, no_cupy, run):
        log = []
        result = run(
            lambda: log.append("call"),
            setup=lambda: log.append("setup"),
            teardown=lambda: log.append("teardown"),
            number=10,
            warmup_time=0,
        )
        assert result["number"] == 1
        assert len(result["samples"]) == 3
        assert log == ["setup", *["call", "teardown", "setup"] * 2, "call"]

    @pytest.mark.parametrize(
        ("repeat", "n"), [(7, 7), ((2, 4, 10.0), 4), ((3, 50, 0.0), 3), (0, 100)]
    )
    def test_repeat_means_what_asv_means(self, no_cupy, run, repeat, n):
        assert len(run(lambda: None, repeat=repeat)["samples"]) == n

    def test_asvs_quick_run_calls_once(self, no_cupy, run):
        calls = []
        result = run(lambda: calls.append(1), number=1, repeat=1, warmup_time=0)
        assert (len(result["samples"]), len(calls)) == (1, 1)

    def test_a_failing_body_leaves_no_samples(self, gpu, run):
        def fail():
            gpu.launch(1e-4)
            if len(gpu.history) > 12:
                raise ValueError("of the body")

        with pytest.raises(ValueError, match="of the body"):
            run(fail, repeat=50)

    def test_neither_does_ctrl_c(self, run, monkeypatch):
        interrupted = SimpleNamespace(interrupted=True)
        monkeypatch.setattr(gpubench, "benchmark", lambda *_, **__: interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(lambda: None)


FEW = SimpleNamespace(
    interrupted=False, notes=(), devices=(), cpu_times=np.array([1e-3, 2e-3, 3e-3])
)


class TestClock:
    def test_it_waits_before_the_start_and_before_the_stop(self, gputime, monkeypatch):
        from asv_bench_gpubench import clock

        log = []
        platform = SimpleNamespace(
            preserved=gpubench.simulated_gpu().preserved, drain=lambda: log.append("sync")
        )
        monkeypatch.setattr(clock, "current_platform", lambda: platform)
        monkeypatch.setattr(
            clock, "time", SimpleNamespace(perf_counter=lambda: log.append("read") or 0.0)
        )

        class Suite:
            timer = clock.SynchronizedClock()
            number = repeat = 1
            warmup_time = 0

            def time_it(self):
                log.append("call")

        gputime.TimeBenchmark("b.time_it", Suite().time_it, [Suite()]).run()
        assert log == ["sync", "read", "call", "sync", "read"]

    def test_asvs_own_benchmarks_include_what_they_queue(self, gputime, gpu):
        from asv_bench_gpubench import SynchronizedClock

        attributes = SimpleNamespace(
            timer=SynchronizedClock(), number=2, repeat=3, warmup_time=0, min_run_count=1
        )
        bench = gputime.TimeBenchmark("b.time_f", lambda: gpu.launch(10e-3), [attributes])
        result = bench.run()
        assert min(result["samples"]) >= 10e-3
        assert np.median(result["samples"]) < 15e-3


@pytest.fixture(scope="session")
def plugin_path(tmp_path_factory):
    """A folder in which the plugin is installed, to be put into PYTHONPATH."""
    pytest.importorskip("asv")
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(PLUGIN, source)
    target = tmp_path_factory.mktemp("site")
    offline = ["--no-deps", "--no-index", "--no-build-isolation"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *offline, "--target", str(target), str(source)], check=True)
    return target


class Repository:
    """A git repository with a benchmark whose time is that of a module of the project."""

    def __init__(self, path, plugin_path):
        self.path = path
        self.variables = {
            **os.environ,
            "HOME": str(path),  # where asv keeps what it knows of the machine
            "PYTHONPATH": str(plugin_path),
            "ASV_PYTHONPATH": str(path),
            "PYTHONDONTWRITEBYTECODE": "1",
            **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in FIELDS},
        }
        for name, text in FILES.items():
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_text(text, encoding="utf-8")
        self.do("git", "init", "--quiet", "--initial-branch", "main")
        self.commit(0.002)

    def do(self, *command, status=0):
        """Run a command here and return what it printed."""
        done = subprocess.run(
            command, cwd=self.path, env=self.variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def commit(self, seconds):
        """Let the project's function take so long, and commit it."""
        (self.path / "project.py").write_text(f"SECONDS = {seconds:g}\n", encoding="utf-8")
        self.do("git", "add", ".")
        self.do("git", "commit", "--quiet", "--message", f"{seconds} s")
        return self.do("git", "rev-parse", "HEAD").strip()

    def asv(self, *arguments, status=0):
        return self.do(sys.executable, "-m", "asv", *arguments, status=status)


FIELDS = ("NAME", "EMAIL")
CONFIGURATION = {
    "version": 1,
    "project": "small",
    "repo": ".",
    "branches": ["main"],
    "environment_type": "existing",
}
FILES = {
    "asv.conf.json": json.dumps(CONFIGURATION),
    ".gitignore": "results\n",
    "benchmarks/__init__.py": "",
    "benchmarks/sleeps.py": """
import time
import project

class Sleeps:
    params = [1, 2]
    param_names = ["factor"]
    rounds, repeat, warmup_time = 1, 12, 0.01

    def gputime_sleep(self, factor):
        time.sleep(factor * project.SECONDS)

    def gputime_failing(self, factor):
        raise ValueError("of the benchmark")
""",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory, plugin_path):
    return Repository(tmp_path_factory.mktemp("repository"), plugin_path)


def test_asv_runs_the_benchmarks_and_compares_two_commits(repository):
    repository.asv("machine", "--yes")
    commits = [repository.commit(seconds) for seconds in (0.003, 0.006)]
    for commit in commits:
        repository.do("git", "checkout", "--quiet", commit)
        arguments = ("-E", "existing:same", "--set-commit-hash", commit, "--record-samples")
        repository.asv("run", *arguments, status=2)  # one has failed

    files = list(repository.path.glob(f"results/*/{commits[0][:8]}-existing*.json"))
    saved = json.loads(files[0].read_text(encoding="utf-8"))
    columns = saved["result_columns"]
    row = dict(zip(columns, saved["results"]["sleeps.Sleeps.gputime_sleep"], strict=False))
    assert [len(samples) for samples in row["samples"]] == [12, 12]
    assert row["stats_number"] == [1, 1]
    assert row["result"] == pytest.approx(np.median(row["samples"], axis=1), rel=1e-3)
    low, high = row["stats_ci_99_a"][0], row["stats_ci_99_b"][0]
    assert 0.003 <= low <= row["result"][0] <= high < 0.006
    failing = dict(zip(columns, saved["results"]["sleeps.Sleeps.gputime_failing"], strict=False))
    assert failing["result"] in (None, [None, None])
    assert not failing.get("samples")

    rows = [line for line in repository.asv("compare", *commits).splitlines() if "sleep(" in line]
    assert len(rows) == 2
    for row in rows:
        change, _, _, ratio, _ = (cell.strip() for cell in row.strip("|").split("|"))
        assert change == "+"
        assert 1.5 < float(ratio) < 2.5


class TestCheck:
    def test_a_user_is_told_what_asv_sees(self, repository):
        out = repository.do(sys.executable, "-m", "gpubench", "asv-check")
        assert [line.split(":")[0] for line in out.splitlines()] == [
            "ok  asv",
            "ok  configuration",
            "ok  benchmarks",
        ]
        assert f"2 GPU benchmarks in {repository.path / 'benchmarks'}" in out

    @pytest.fixture
    def project(self, tmp_path, monkeypatch):
        """A project like the repository's, without git and without the plugin."""
        monkeypatch.delenv("PYTHONPATH", raising=False)
        for name, text in FILES.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    def failure(self, path):
        """Return what is wrong, and the command that mends it."""
        *fine, last = check_asv(str(path))
        assert all(check.holds and not check.command for check in fine)
        assert not last.holds
        return last.name, last.message, last.command

    def test_the_first_failure_is_printed_with_its_remedy(self, tmp_path, capsys):
        assert main(["asv-check", str(tmp_path)]) == 1
        assert capsys.readouterr().out.splitlines() == [
            f"ok  asv: version {metadata.version('asv')}",
            f"no  configuration: there is no asv.conf.json in {tmp_path}",
            f"    cd {tmp_path} && asv quickstart",
            "asv would not see the plugin.",
        ]
        assert main(["asv-check", str(tmp_path), "--json"]) == 1
        document = json.loads(capsys.readouterr().out)
        assert document["sees_plugin"] is False
        assert [check["holds"] for check in document["checks"]] == [True, False]
        assert document["checks"][1]["command"] == f"cd {tmp_path} && asv quickstart"

    def test_asv_is_not_installed(self, project, monkeypatch):
        def version(_):
            raise metadata.PackageNotFoundError

        monkeypatch.setattr(metadata, "version", version)
        name, message, command = self.failure(project)
        assert (name, command) == ("asv", f"{sys.executable} -m pip install asv")
        assert message == f"not installed for {sys.executable}"

    def test_the_configuration_is_further_up(self, project):
        _, message, command = self.failure(project / "benchmarks")
        assert message == f"it is in {project}, not in {project / 'benchmarks'}"
        assert command == f"cd {project}"

    @pytest.mark.parametrize("text", ["{", "[]", '{"version": "x'])
    def test_the_configuration_is_damaged(self, project, text):
        (project / "asv.conf.json").write_text(text, encoding="utf-8")
        _, message, command = self.failure(project)
        assert message.startswith(f"{project / 'asv.conf.json'} can't be read: ")
        assert command == f"${{EDITOR:-vi}} {project / 'asv.conf.json'}"

    def test_the_folder_is_no_package(self, project):
        (project / "benchmarks/__init__.py").unlink()
        _, message, command = self.failure(project)
        assert message == f"{project / 'benchmarks'} is no folder with an __init__.py"
        assert command.endswith(f"touch {project / 'benchmarks/__init__.py'}")
        subprocess.run(command, shell=True, check=True)
        assert self.failure(project)[0] == "plugin"

    def test_the_plugin_is_not_installed(self, project):
        name, message, command = self.failure(project)
        assert (name, message) == (
            "plugin",
            f"{sys.executable}: asv_bench_gpubench is not installed",
        )
        assert command.startswith(f"{sys.executable} -m pip install ")
        assert command.endswith("asv_bench_gpubench")

    def test_the_plugin_can_be_imported_but_is_not_installed(self, project, monkeypatch):
        monkeypatch.setenv("PYTHONPATH", str(PLUGIN))
        _, message, _ = self.failure(project)
        assert "is not installed (it can be imported, but asv finds installed" in message

    @pytest.fixture
    def altered(self, project, plugin_path, tmp_path, monkeypatch):
        """A copy of the installed plugin, to be altered."""
        path = tmp_path / "site"
        shutil.copytree(plugin_path, path)
        monkeypatch.setenv("PYTHONPATH", str(path))
        monkeypatch.setenv("ASV_PYTHONPATH", str(tmp_path))
        (tmp_path / "project.py").write_text("SECONDS = 0", encoding="utf-8")
        return path

    def test_the_name_was_normalised(self, project, altered):
        (file,) = altered.glob("*.dist-info/METADATA")
        text = file.read_text(encoding="utf-8")
        file.write_text(
            text.replace("Name: asv_bench_gpubench", "Name: asv-bench-gpubench"), encoding="utf-8"
        )
        name, message, command = self.failure(project)
        assert name == "name"
        assert "is installed as 'asv-bench-gpubench', and asv looks for asv_bench..." in message
        assert " --force-reinstall --no-deps " in command

    @pytest.mark.parametrize(
        ("line", "remedy"),
        [
            ("import nowhere.at_all", " -m pip install nowhere"),
            ("raise ImportError('broken')", " --force-reinstall --no-deps "),
        ],
    )
    def test_the_plugin_fails_to_be_imported(self, project, altered, line, remedy):
        file = altered / "asv_bench_gpubench/benchmarks/gputime.py"
        file.write_text(line, encoding="utf-8")
        name, message, command = self.failure(project)
        assert name == "import"
        assert str(file) in message
        assert "of which asv says nothing" in message
        assert remedy in command

    @pytest.mark.usefixtures("altered")
    def test_no_benchmark_has_such_a_name(self, project):
        text = "def time_x(): pass\ndef gpu_time_sum(): pass\n"
        (project / "benchmarks/sleeps.py").write_text(text, encoding="utf-8")
        name, message, command = self.failure(project)
        assert name == "benchmarks"
        assert message.endswith(
            " is called gputime_<name> or GpuTime<Name>; rename gpu_time_sum, if they are meant"
        )
        assert command.startswith("grep ")

    @pytest.mark.usefixtures("altered")
    def test_benchmarks_can_not_be_imported(self, project):
        (project / "benchmarks/other.py").write_text("raise SystemExit(3)", encoding="utf-8")
        _, message, command = self.failure(project)
        assert command == (
            f"asv check --config {project / 'asv.conf.json'} -E existing:{sys.executable}"
        )
        assert "they can't be imported: SystemExit: 3" in message
        assert str(project / "benchmarks/other.py") in message

    def test_environments_that_asv_will_make(self, project):
        file = project / "asv.conf.json"
        values = {**CONFIGURATION, "environment_type": "virtualenv"}
        file.write_text(json.dumps(values), encoding="utf-8")
        name, message, command = self.failure(project)
        assert (name, command) == ("environments", f"${{EDITOR:-vi}} {file}")
        assert "python -m pip install asv_bench_gpubench" in message
        values["matrix"] = {"req": {"pip+asv-bench-gpubench": [""]}}
        file.write_text(json.dumps(values), encoding="utf-8")
        assert [check.holds for check in check_asv(str(project))] == [True, True, True]

    @pytest.mark.skipif(os.name != "posix", reason="writes a shell script")
    def test_environments_that_asv_has_made(self, project, altered):
        values = {**CONFIGURATION, "environment_type": "virtualenv"}
        (project / "asv.conf.json").write_text(json.dumps(values), encoding="utf-8")
        python = project / "env/0123/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        name, message, command = self.failure(project)
        assert (name, message) == ("plugin", f"{python}: asv_bench_gpubench is not installed")
        assert command.startswith(f"{python} -m pip install ")

    def test_an_interpreter_that_is_none(self, project):
        *_, last = check_asv(str(project), "/no/such/python")
        assert (last.name, last.holds) == ("python", False)
        assert last.message.startswith("/no/such/python gives no answer: ")


def test_asv_measures_the_project_under_each_setting_of_accelerators(monkeypatch):
    config = pytest.importorskip("asv.config")
    from asv.environment import iter_matrix

    monkeypatch.chdir(ROOT)
    conf = config.Config.load()
    combinations = list(iter_matrix(conf.environment_type, ["3.11"], conf))
    settings = [each["env_nobuild", "CUPY_ACCELERATORS"] for each in combinations]
    assert settings == ["", "cub", "cub,cutensor"]
    assert any("plugins/asv_bench_gpubench" in line for line in conf.install_command)
