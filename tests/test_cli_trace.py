"""``gpubench trace``."""

import gzip
import json
import subprocess
import sys
import zipfile

import pytest

import gpubench
from gpubench.cli import main

SCRIPT = """\
import sys
from gpubench.devices.simulated import active

gpu = active()
gpu.launch(1e-4, "work")
gpu.synchronize()
print(sys.argv[1:])
if "raise" in sys.argv:
    1 / 0
if "executor" in sys.argv:
    from concurrent.futures import ThreadPoolExecutor
    threads = ThreadPoolExecutor(1)
    threads.submit(int).result()
    sys.threads = threads
if "interrupt" in sys.argv:
    raise KeyboardInterrupt
if "exit" in sys.argv:
    sys.exit(eval(sys.argv[-1]))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def trace(gpu, monkeypatch, capsys):
    """Run ``trace`` with the arguments; return status, standard output and standard error."""
    monkeypatch.setattr(sys, "argv", ["gpubench"])
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(*words):
        return main(["trace", *map(str, words)]), *capsys.readouterr()

    return run


def test_without_a_gpu_it_says_so(script):
    code = "import sys; sys.modules['cupy'] = None; from gpubench.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "trace", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("gpubench: no GPU found: CuPy is not installed; pip install ")


def test_as_a_user_would(script, tmp_path):
    code = """
import sys
import gpubench
from gpubench.cli import main
with gpubench.simulated_gpu():
    sys.exit(main())
"""
    command = [
        sys.executable,
        "-c",
        code,
        "trace",
        "script.py",
        "-o",
        "out.json",
        "exit",
        "-o",
        "7",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert done.stdout.startswith("['exit', '-o', '7']\nTrace of ")
    assert done.stdout.endswith("Nothing was found that keeps the GPU from its work.\n")
    assert done.stderr == f"gpubench: the trace is in {tmp_path / 'out.json'}\n"
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert "work" in {event["name"] for event in events}


class TestLikePython:
    def test_names_and_paths(self, trace, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "beside.py").write_text("value = 3")
        script = folder / "script.py"
        script.write_text(
            "import sys, __main__, beside\n"
            "print(__name__, __main__.beside.value, sys.argv, sys.path[0])\n"
        )
        link = tmp_path / "link.py"
        link.symlink_to(script)
        status, out, _ = trace(link, "-x", "--json")
        assert status == 0
        assert out.splitlines()[0] == f"__main__ 3 {[str(link), '-x', '--json']} {folder}"

    @pytest.mark.parametrize("place", ["folder", "folder.zip"])
    def test_folders_and_zip_files(self, place, trace, tmp_path):
        path = tmp_path / place
        if place == "folder":
            path.mkdir()
            (path / "__main__.py").write_text("print(1 / 0)")
        else:
            with zipfile.ZipFile(path, "w") as file:
                file.writestr("__main__.py", "print(1 / 0)")
        status, _, err = trace(path)
        assert status == 1
        assert err.splitlines()[1] == f'  File "{path / "__main__.py"}", line 1, in <module>'

    @pytest.mark.parametrize(
        ("code", "status", "said"),
        [("0", 0, ""), ("None", 0, ""), ("3", 3, ""), ("-1", 255, ""), ("'why'", 1, "why\n")],
    )
    def test_exit_status(self, code, status, said, trace, script):
        assert trace(script, "exit", code)[::2] == (status, said)

    def test_threads_that_wait_for_work_hold_up_nothing(self, trace, script):
        status, out, _ = trace(script, "executor")
        sys.threads.shutdown()
        del sys.threads
        assert status == 0
        assert "Trace of " in out


class TestFailures:
    def test_an_error_is_the_scripts(self, trace, script, tmp_path):
        output = tmp_path / "out.npz"
        status, out, err = trace(script, "-o", output, "raise")
        assert status == 1
        assert err.splitlines()[:2] == [
            "Traceback (most recent call last):",
            f'  File "{script}", line 9, in <module>',
        ]
        assert "ZeroDivisionError: division by zero" in err
        assert "\nTrace of " in out
        assert "work" in gpubench.Trace.load(output).table()

    def test_syntax(self, trace, tmp_path):
        script = tmp_path / "bad.py"
        script.write_text("1 +\n")
        status, _, err = trace(script)
        assert status == 1
        assert err.startswith(f'  File "{script}", line 1\n')

    def test_ctrl_c(self, trace, script):
        status, out, _ = trace(script, "interrupt")
        assert status == 130
        assert "Trace of " in out

    def test_no_such_script(self, trace, tmp_path):
        status, out, err = trace(tmp_path / "absent.py")
        assert (status, out) == (1, "")
        assert err == f"gpubench: SCRIPT: there is no '{tmp_path / 'absent.py'}'\n"

    @pytest.mark.parametrize("name", ["trace.txt", "absent/trace.json"])
    def test_an_output_that_will_not_do_is_refused_beforehand(self, name, trace, script, tmp_path):
        status, out, err = trace(script, "-o", tmp_path / name)
        assert (status, out) == (1, "")
        assert err.startswith("gpubench: -o ")

    @pytest.mark.parametrize("words", [[], ["-o", "x.json"], ["script.py", "-o"], ["--nonsense"]])
    def test_of_the_command_line(self, words, trace, capsys):
        with pytest.raises(SystemExit) as caught:
            trace(*words)
        assert caught.value.code == 2
        assert capsys.readouterr().err.startswith("usage: gpubench ")


class TestOutput:
    @pytest.mark.parametrize("words", ["-o {0} {1}", "{1} -o {0}", "{1} --output={0}"])
    def test_the_option_stands_before_or_behind_the_script(self, words, trace, script, tmp_path):
        output = tmp_path / "trace.json.gz"
        assert trace(*words.format(output, script).split(), "exit", "5")[0] == 5
        assert b"traceEvents" in gzip.decompress(output.read_bytes())

    def test_two_dashes_end_the_options(self, trace, script, tmp_path):
        status, out, _ = trace(script, "--", "-o", "x", "--", "--json")
        assert status == 0
        assert out.splitlines()[0] == "['-o', 'x', '--', '--json']"

    def test_a_page(self, trace, script, tmp_path):
        output = tmp_path / "trace.html"
        assert trace("-o", output, script)[0] == 0
        assert output.read_text().startswith("<!DOCTYPE html>")

    @pytest.mark.parametrize("before", [True, False])
    def test_json(self, before, trace, script):
        words = ("--json", script) if before else (script, "--json")
        status, out, err = trace(*words, "exit", "4")
        document = json.loads(out)
        assert status == document["status"] == 4
        assert err == "['exit', '4']\n"
        assert document["output"] is None
        (device,) = document["devices"]
        assert device["name"] == "simulated GPU"
        (activity,) = device["activities"]
        assert (activity["name"], activity["n_calls"]) == ("work", 1)
        assert activity["total_time_s"] == pytest.approx(1e-4)
        assert {call["name"] for call in document["calls"]} == {
            "cudaLaunchKernel",
            "cudaDeviceSynchronize",
        }
        assert document["findings"] == []
