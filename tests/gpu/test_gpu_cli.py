"""The command line on a real GPU, as a user would run it."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("cupy")


def gpubench(*words, status=0, **options):
    """Run the command; return what it printed on standard output."""
    command = [sys.executable, "-m", "gpubench", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_info_finds_what_every_gpu_has():
    found = {each["name"]: each for each in json.loads(gpubench("info", "--json"))["capabilities"]}
    for name in ("driver", "GPU", "CuPy", "NVRTC", "CUDA headers", "cub"):
        assert found[name]["available"], found[name]
    assert not [each for each in found.values() if "the check failed" in each["detail"]]


def test_info_says_that_all_gpus_are_hidden(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = {each["name"]: each for each in json.loads(gpubench("info", "--json"))["capabilities"]}
    assert found["driver"]["available"]
    assert not found["GPU"]["available"]
    assert found["GPU"]["remedy"] == "unset CUDA_VISIBLE_DEVICES"


def test_timeit():
    words = ("-s", "a = cp.ones((256, 1024))", "a.sum()", "-n", 50, "--json")
    result = json.loads(gpubench("timeit", *words))
    assert result["method"] == "gated"
    assert len(result["gpu_times_s"][0]) == 50


@pytest.mark.parametrize("words", [("", "cub"), ("", "cub", "cub,cutensor")])
def test_timeit_of_accelerators(words):
    setup = "a = cp.random.rand(128, 128, 128)"
    options = ("--accelerators", *words, "--json")
    arms = json.loads(gpubench("timeit", "-s", setup, "a.sum()", *options))["arms"]
    cub = arms[1]
    assert (cub["name"], cub["mismatch"], cub["verdict"]) == ("cub", "", "faster")


def test_trace(tmp_path):
    pytest.importorskip("cupti")
    script = tmp_path / "script.py"
    script.write_text("import cupy\na = cupy.ones(1000)\n(a + 1).sum()\nraise SystemExit(3)\n")
    words = (script, "-o", "trace.json", "--json")
    document = json.loads(gpubench("trace", *words, status=3, cwd=tmp_path))
    (device,) = document["devices"]
    assert any("add" in activity["name"] for activity in device["activities"])
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
