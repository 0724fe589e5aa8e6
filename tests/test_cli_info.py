"""``gpubench info``."""

import json
import subprocess
import sys

import pytest

from gpubench.capabilities import Capability
from gpubench.cli import main


def test_as_a_user_would():
    done = subprocess.run(
        [sys.executable, "-m", "gpubench", "info"], capture_output=True, text=True, check=True
    )
    head, empty, *rows = done.stdout.splitlines()
    assert head.startswith("gpubench ")
    assert empty == ""
    names = ["driver", "GPU", "CuPy", "NVRTC", "CUPTI", "NVML", "ncu", "counters", "NVTX"]
    found = [row.split()[0] for row in rows if not row.startswith(" ")]
    assert [name for name in found if name in names] == names
    assert done.stderr == ""
    assert max(map(len, rows)) <= 100


@pytest.fixture
def machine(monkeypatch):
    found = [
        Capability("driver", True, "570.1 for CUDA up to 12.8"),
        Capability("CuPy", False, "not installed", 'pip install "gpubench[cuda12]"'),
        Capability("GPU", None, "word " * 30),
        Capability("counters", False, "x", "some " * 20 + "--cap-add=SYS_ADMIN"),
    ]
    monkeypatch.setattr("gpubench.capabilities.capabilities", lambda: iter(found))
    return found


def test_layout(machine, capsys):
    assert main(["info"]) == 0
    _, _, *rows = capsys.readouterr().out.splitlines()
    assert rows == [
        "driver           yes  570.1 for CUDA up to 12.8",
        "CuPy             no   not installed",
        '                      -> pip install "gpubench[cuda12]"',
        "GPU              ?    " + "word " * 14 + "word",
        "                      " + "word " * 14 + "word",
        "counters         no   x",
        "                      -> " + "some " * 14 + "some",
        "                         " + "some " * 5 + "--cap-add=SYS_ADMIN",
    ]


def test_json(machine, no_cupy, capsys):
    assert main(["info", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["capabilities"][1] == {
        "name": "CuPy",
        "available": False,
        "detail": "not installed",
        "remedy": 'pip install "gpubench[cuda12]"',
    }
    assert document["environment"]["platform"] == "host"
