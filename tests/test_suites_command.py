"""``gpubench run`` as a user runs it."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from gpubench.cli import main
from gpubench.storage import load

BENCH = """
class Sort:
    params = ([10, 20], ["up", "down"])
    param_names = ["n", "order"]
    def time_sort(self, n, order):
        sorted(range(n), reverse=order == "down")

def track_size():
    return 4096
track_size.unit = "bytes"

def track_share():
    return 0.25
track_share.unit = "%"

def time_bad():
    raise ValueError("bad luck")
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "bench.py").write_text(BENCH)
    return str(tmp_path)


def test_a_line_for_each_benchmark(suite, capsys):
    assert main(["run", suite, "--quick"]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == "6 ok, 1 failed"
    rows = dict(line.split("  ", 1) for line in lines)
    assert rows["bench.track_size"] == "4.0 KiB"
    assert rows["bench.track_share"] == "0.25 %"
    assert rows["bench.time_bad"].startswith("failed: ValueError: bad luck (bench.py:")
    assert re.fullmatch(r"\d[.\d]* [nu]s", rows["bench.Sort.time_sort(n=10, order='up')"])


def test_selection(suite, capsys, tmp_path):
    path = tmp_path / "run.json"
    chosen = ["-b", r"n=\d0", "--param", "order=up", "--param", "n=10", "--param", "n=20"]
    assert main(["run", suite, "--quick", *chosen, "--json", "--save", str(path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [record["params"] for record in printed["records"]] == [
        {"n": 10, "order": "up"},
        {"n": 20, "order": "up"},
    ]
    assert printed["records"] == json.loads(path.read_text())["records"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-b", "nothing"], "no benchmark is selected by only='nothing'"),
        (["-b", "("], "not a regular expression"),
        (["--param", "size=3"], "no benchmark has 'size'; there are 'n', 'order'"),
        (["--param", "n=3"], "no benchmark is selected"),
        (["--resume"], "resume=True needs the file"),
    ],
)
def test_errors(suite, capsys, arguments, message):
    assert main(["run", suite, *arguments]) == 1
    assert message in capsys.readouterr().err


def test_wrong_usage(suite, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["run", suite, "--param", "n"])
    assert caught.value.code == 2
    assert "'n' is not NAME=VALUE" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(tmp_path):
    (tmp_path / "bench.py").write_text(
        "import pathlib, time\n"
        "here = pathlib.Path(__file__).parent\n"
        "rounds = 1\n"
        "def time_quick():\n"
        "    with (here / 'ran').open('a') as file:\n"
        "        file.write('x')\n"
        "time_quick.number = time_quick.repeat = 1\n"
        "time_quick.warmup_time = 0\n"
        "def time_slow():\n"
        "    (here / 'began').touch()\n"
        "    while not (here / 'go').exists():\n"
        "        time.sleep(0.01)\n"
    )
    command = [sys.executable, "-m", "gpubench", "run", tmp_path, "--save", tmp_path / "a.json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "began").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.splitlines()[-1] == "1 ok, 1 interrupted"
    first = {record.name: record for record in load(tmp_path / "a.json").records}
    assert first["bench.time_quick"].status == "ok"
    assert first["bench.time_slow"].reason == "not run"
    n_calls = len((tmp_path / "ran").read_text())

    (tmp_path / "go").touch()
    subprocess.run([*command, "--resume"], check=True, stdout=subprocess.DEVNULL)
    assert len((tmp_path / "ran").read_text()) == n_calls
    second = {record.name: record for record in load(tmp_path / "a.json").records}
    assert second["bench.time_slow"].status == "ok"
    assert second["bench.time_quick"] == first["bench.time_quick"]
