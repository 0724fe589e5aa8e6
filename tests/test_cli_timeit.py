"""``gpubench timeit``."""

import dataclasses
import json
import subprocess
import sys

import pytest

import gpubench
from gpubench import notes
from gpubench.cli import main


@pytest.fixture(autouse=True)
def search_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def timeit(capsys, no_cupy):
    """Run ``timeit`` with the arguments; return status, standard output and standard error."""

    def run(*words):
        return main(["timeit", *words]), *capsys.readouterr()

    return run


def test_as_a_user_would(tmp_path):
    (tmp_path / "mine.py").write_text("def f(x):\n    return x + 1\n")
    command = [sys.executable, "-m", "gpubench", "timeit", "-s", "import mine", "mine.f(1)", "-r9"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("mine.f(1): n=9, ")
    assert "median" in done.stdout
    assert done.stderr == ""


def test_lines_and_setups(timeit):
    words = ("-s", "n = 3", "-s", "total = 0", "for i in range(n):", "    total += i", "-n", "5")
    status, out, err = timeit(*words, "--json")
    result = json.loads(out)
    assert (status, err) == (0, "")
    assert result["name"] == "for i in range(n):\n    total += i"
    assert len(result["cpu_times_s"]) == 5


def test_numpy_is_np(timeit):
    assert timeit("np.ones(3).sum()", "-n", "2")[0] == 0


@pytest.mark.parametrize(
    ("words", "n"), [(["-n", "3"], 3), (["-r", "4"], 4), (["-n", "3", "-r", "4"], 12)]
)
def test_number_times_repeat(words, n, timeit):
    _, out, _ = timeit("1", "--json", *words)
    assert len(json.loads(out)["cpu_times_s"]) == n


def test_warmup_and_method(timeit):
    result = json.loads(timeit("1", "-n2", "-w", "3", "--method", "host", "--json")[1])
    assert (result["n_warmup"], result["method"]) == (3, "host")


def test_left_to_itself_it_takes_what_it_needs(timeit):
    result = json.loads(timeit("1", "--max-duration", "1", "--json")[1])
    assert len(result["cpu_times_s"]) >= 10
    assert result["stopped_by"] in ("converged", "max_duration")


def test_what_the_statement_prints_stays_out_of_the_document(timeit):
    _, out, err = timeit("print('hello')", "-n", "2", "-w", "0", "--json")
    assert json.loads(out)["name"] == "print('hello')"
    assert err == "hello\n" * 2


class TestErrors:
    def test_of_the_statement(self, timeit):
        status, out, err = timeit("x = 1", "x / 0")
        assert (status, out) == (1, "")
        lines = err.splitlines()
        assert lines[:3] == [
            "Traceback (most recent call last):",
            '  File "<statement>", line 2, in statement',
            "    x / 0",
        ]
        assert lines[-1] == "ZeroDivisionError: division by zero"

    def test_of_the_setup(self, timeit):
        status, _, err = timeit("-s", "1 / 0", "1")
        assert status == 1
        assert err.splitlines()[1] == '  File "<setup>", line 1, in <module>'

    def test_of_syntax(self, timeit):
        status, _, err = timeit("1 +")
        assert status == 1
        assert err.splitlines()[0] == '  File "<statement>", line 1'
        assert "SyntaxError" in err

    def test_cupy_without_cupy(self, timeit):
        status, _, err = timeit("cp.ones(3)")
        assert status == 1
        assert err.splitlines()[-1].startswith("gpubench: cp would be CuPy, but CuPy is not insta")

    def test_another_name_that_is_unknown(self, timeit):
        status, _, err = timeit("cq.ones(3)")
        assert status == 1
        assert "gpubench" not in err

    def test_a_method_that_needs_a_gpu(self, timeit):
        status, _, err = timeit("1", "--method", "gated")
        assert status == 1
        assert err.startswith("gpubench: method='gated' needs a GPU")

    def test_faults_of_the_program_are_not_hidden(self, timeit, monkeypatch):
        def fail(*args, **kwargs):
            raise ZeroDivisionError

        monkeypatch.setattr("gpubench.bench.Bench.__enter__", fail)
        with pytest.raises(ZeroDivisionError):
            timeit("1")

    @pytest.mark.parametrize(
        "words",
        [
            [],
            ["1", "-n", "0"],
            ["1", "-r", "x"],
            ["1", "--method", "magic"],
            ["1", "-n", "3", "--accelerators", "", "cub"],
            ["--accelerators", "", "cub"],
        ],
    )
    def test_of_the_command_line(self, words, timeit):
        with pytest.raises(SystemExit) as caught:
            timeit(*words)
        assert caught.value.code == 2

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["1", "-n", "x"], "'x' is not a number from 1 on"),
            (["'\udcc3'"], "is not in the system's encoding"),
            (["1", "-s", "'\udcc3'"], "is not in the system's encoding"),
        ],
    )
    def test_of_the_command_line_are_told_in_words(self, words, message, timeit, capsys):
        with pytest.raises(SystemExit):
            timeit(*words)
        assert message in capsys.readouterr().err

    def test_ctrl_c_keeps_what_there_is(self, timeit):
        setup = "import itertools; count = itertools.count()"
        stop = "if next(count) > 30: raise KeyboardInterrupt"
        status, out, _ = timeit("-s", setup, stop, "-n", "100")
        assert status == 130
        assert "! interrupted:" in out


class TestWithCupy:
    def test_it_is_cp(self, fake_cuda, capsys):
        assert main(["timeit", "cp.__version__", "-n", "3", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["method"] == "gated"


class TestAccelerators:
    def test_several_are_compared(self, timeit):
        pytest.importorskip("cloudpickle")
        words = ("--accelerators", "", "cub", "--max-duration", "0.3", "--json")
        status, out, _ = timeit("-s", "a = np.ones(10)", "a.sum()", *words)
        assert status == 0
        assert [(arm["name"], arm["status"]) for arm in json.loads(out)["arms"]] == [
            ("none", "ok"),
            ("cub", "unavailable"),
        ]

    def test_ctrl_c_keeps_what_there_is(self, timeit, monkeypatch):
        made = gpubench.compare({"a": int, "b": float}, n_blocks=2, max_duration=0.05)
        cut_short = dataclasses.replace(made, notes=(notes.interrupted(3),))
        monkeypatch.setattr("gpubench.compare_accelerators", lambda *a, **k: cut_short)
        status, out, _ = timeit("1", "--accelerators", "", "cub")
        assert status == 130
        assert "! interrupted:" in out

    def test_of_one_there_is_no_comparison(self, timeit, capsys):
        status, out, _ = timeit("1", "-n", "3", "--accelerators", "")
        assert status == 0
        assert out.startswith("1: n=3, ")
        status, _, err = timeit("1", "--accelerators", "cub")
        assert status == 1
        assert err.startswith("gpubench: CuPy can't use 'cub' here: CuPy is not installed")
