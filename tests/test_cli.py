"""The command line's frame: what is printed where, exit status, start-up, completion, colours."""

import io
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import gpubench
from gpubench import cli
from gpubench.cli import COMMANDS, main
from gpubench.cli.output import colour, print_json


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestStatus:
    def test_version(self, capsys):
        with pytest.raises(SystemExit) as caught:
            main(["--version"])
        assert caught.value.code == 0
        assert gpubench.__version__ in capsys.readouterr().out

    def test_without_arguments_it_says_what_there_is(self, capsys):
        assert main([]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert all(name in err for name in COMMANDS)

    @pytest.mark.parametrize("argv", [["nonsense"], ["demo", "--nonsense"]])
    def test_wrong_usage_is_2(self, argv, capsys):
        with pytest.raises(SystemExit) as caught:
            main(argv)
        assert caught.value.code == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("usage: gpubench")

    def test_errors_go_to_standard_error_with_1(self, monkeypatch, capsys):
        def fail():
            raise gpubench.UnsupportedError("no GPU today")

        monkeypatch.setattr("gpubench.demo.demo", fail)
        assert main(["demo"]) == 1
        assert capsys.readouterr() == ("", "gpubench: no GPU today\n")

    def test_ctrl_c_is_130(self, monkeypatch, capsys):
        def interrupt():
            raise KeyboardInterrupt

        monkeypatch.setattr("gpubench.demo.demo", interrupt)
        assert main(["demo"]) == 130

    def test_faults_of_the_program_are_not_hidden(self, monkeypatch):
        def fail():
            raise ZeroDivisionError

        monkeypatch.setattr("gpubench.demo.demo", fail)
        with pytest.raises(ZeroDivisionError):
            main(["demo"])

    def test_a_reader_that_stops_early_is_141(self):
        command = [sys.executable, "-m", "gpubench", "demo"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline().startswith("sqrt(sum(a**2")
            process.stdout.close()
            assert process.stderr.read() == ""
        assert process.returncode == 141

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
    def test_a_full_disk_is_1(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "gpubench", "demo"],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 1
        expected = "gpubench: the output can't be written: No space left on device\n"
        assert done.stderr == expected

    @pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes outputs")
    def test_outputs_may_be_closed(self):
        command = f"'{sys.executable}' -m gpubench cache --path . >&- 2>&-"
        assert subprocess.run(command, shell=True, check=False).returncode == 0

    def test_an_encoding_without_blocks(self):
        done = subprocess.run(
            [sys.executable, "-m", "gpubench", "demo"],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )
        assert b"mean ? std" in done.stdout
        assert done.stderr == b""

    def test_it_is_also_a_module(self):
        command = [sys.executable, "-m", "gpubench", "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        assert gpubench.__version__ in done.stdout

    def test_a_file_that_is_not_there_is_1(self, monkeypatch, capsys):
        def fail():
            raise FileNotFoundError(2, "No such file or directory", "results.json")

        monkeypatch.setattr("gpubench.demo.demo", fail)
        assert main(["demo"]) == 1
        expected = "gpubench: results.json: No such file or directory\n"
        assert capsys.readouterr() == ("", expected)

    def test_other_faults_of_the_system_are_not_hidden(self, monkeypatch):
        def fail():
            raise OSError("odd")

        monkeypatch.setattr("gpubench.demo.demo", fail)
        with pytest.raises(OSError, match="odd"):
            main(["demo"])

    def test_the_console_script_is_the_same(self):
        (script,) = metadata.entry_points(group="console_scripts", name="gpubench")
        assert script.load() is main


class TestHelp:
    def test_it_lists_commands_and_exit_statuses(self, capsys):
        with pytest.raises(SystemExit) as caught:
            main(["--help"])
        assert caught.value.code == 0
        out = capsys.readouterr().out
        for name in COMMANDS:
            assert re.search(rf"^    {name}\s", out, re.MULTILINE)
        for status in (0, 1, 2, 130, 141):
            assert f"\n  {status:<5}" in out
        assert "NO_COLOR" in out

    @pytest.mark.parametrize("name", COMMANDS)
    def test_each_command_has_help_and_json(self, name, capsys):
        with pytest.raises(SystemExit) as caught:
            main([name, "--help"])
        assert caught.value.code == 0
        assert "--json" in capsys.readouterr().out


def test_little_is_imported_to_parse_a_command_line():
    code = """
import sys
from gpubench.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = "cupy numpy nvtx pandas tabulate tqdm IPython matplotlib argcomplete distributed pytest"
print("imported:", sorted(set(heavy.split()) & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "imported: []"


class TestCompletion:
    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("gpubench ca", {"cache"}),
            ("gpubench cache pr", {"prune"}),
            ("gpubench timeit --meth", {"--method"}),
            ("gpubench timeit --method ga", {"gated"}),
        ],
    )
    def test_what_is_offered(self, line, expected, tmp_path):
        pytest.importorskip("argcomplete")
        offered = tmp_path / "offered"
        asked = {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_IFS": "\n",
            "_ARGCOMPLETE_SHELL": "bash",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(offered),
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
        code = "import sys; from gpubench.cli import main; sys.exit(main([]))"
        subprocess.run([sys.executable, "-c", code], env=os.environ | asked, check=True)
        assert {word.strip() for word in offered.read_text().splitlines()} == expected

    def test_without_argcomplete_nothing_runs(self, monkeypatch, capsys):
        monkeypatch.setenv("_ARGCOMPLETE", "1")
        monkeypatch.setitem(sys.modules, "argcomplete", None)
        with pytest.raises(SystemExit) as caught:
            main(["demo"])
        assert caught.value.code == 1
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("name", ["cli/__init__.py", "__main__.py"])
    def test_argcomplete_finds_its_sign(self, name):
        file = Path(cli.__file__).parent.parent / name
        assert b"PYTHON_ARGCOMPLETE_OK" in file.read_bytes()[:1024]


class TestColours:
    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")

    def test_on_a_terminal(self, monkeypatch):
        assert colour("no", "red", Terminal()) == "\33[31mno\33[0m"
        monkeypatch.setenv("NO_COLOR", "")
        assert colour("no", "red", Terminal()) == "\33[31mno\33[0m"

    @pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
    def test_not_where_they_are_unwanted(self, variable, value, monkeypatch):
        monkeypatch.setenv(variable, value)
        assert colour("no", "red", Terminal()) == "no"

    def test_not_in_a_file(self, monkeypatch):
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        assert colour("no", "red") == "no"

    def test_of_an_error(self, monkeypatch):
        def fail():
            raise gpubench.UnsupportedError("no GPU today")

        monkeypatch.setattr("gpubench.demo.demo", fail)
        monkeypatch.setattr(sys, "stderr", Terminal())
        assert main(["demo"]) == 1
        assert sys.stderr.getvalue() == "\33[31mgpubench:\33[0m no GPU today\n"


def test_json_is_strict(capsys):
    print_json({"path": Path("a")})
    assert capsys.readouterr().out == '{\n  "path": "a"\n}\n'
    for value in (float("nan"), object()):
        with pytest.raises((ValueError, TypeError)):
            print_json(value)
