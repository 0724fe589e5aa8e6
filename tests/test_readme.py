"""README.md: its snippets run, its figures look as they do there, and it names what there is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpubench

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
SNIPPETS = [
    (code, shown) for language, code, shown in BLOCK.findall(README) if language == "python"
]


def run(code, folder=ROOT):
    """Run code in a fresh interpreter that sees no GPU, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONUTF8": "1"},
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def layout(text):
    """The lines' beginnings: words without their figures, which differ from run to run."""
    lines = [re.sub(r"[-\d.]+", "#", line).split() for line in text.strip().splitlines()]
    return [line[:3] for line in lines]


def test_the_snippets_are_found():
    assert README.count("```python\n") == len(SNIPPETS)
    assert len(SNIPPETS) >= 4


@pytest.mark.parametrize(("code", "shown"), SNIPPETS)
def test_snippets_run_without_a_gpu(code, shown, tmp_path):
    printed = run(code, tmp_path)
    if shown:
        assert layout(printed) == layout(shown)


def test_the_names_that_it_mentions_exist():
    code = "\n".join(code for code, _ in SNIPPETS)
    imported = re.findall(r"^from gpubench import (.+)$", code, re.MULTILINE)
    names = {name for line in imported for name in line.split(", ")}
    assert names | set(re.findall(r"\bgpubench\.(\w+)", README)) <= set(gpubench.__all__)


def test_the_extras_that_it_lists_are_those_that_exist():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = re.search(r"^\| extra .*\n\|---\|---\|\n((?:\|.*\n)+)", README, re.MULTILINE)
    rows = [row.split("|")[1] for row in listed[1].splitlines()]
    assert re.findall(r"`(\w+)`", "".join(rows)) == list(project["optional-dependencies"])
