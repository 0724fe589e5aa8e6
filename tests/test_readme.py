"""README.md: its snippets run, its figures look as they do there, and it names what there is."""

import re

import pytest
from snippets import ROOT, layout, outputs, snippets

import gpubench

README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = snippets(ROOT / "README.md", "python")


def test_the_snippets_are_found():
    assert README.count("```python\n") == len(SNIPPETS)
    assert len(SNIPPETS) >= 4


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.place)
def test_snippets_run_without_a_gpu(snippet, tmp_path):
    (printed,) = outputs([snippet], tmp_path)
    if snippet.shown:
        assert layout(printed) == layout(snippet.shown)


def test_the_names_that_it_mentions_exist():
    code = "\n".join(snippet.code for snippet in SNIPPETS)
    imported = re.findall(r"^from gpubench import (.+)$", code, re.MULTILINE)
    names = {name for line in imported for name in line.split(", ")}
    assert names | set(re.findall(r"\bgpubench\.(\w+)", README)) <= set(gpubench.__all__)


def test_the_extras_that_it_lists_are_those_that_exist():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = re.search(r"^\| extra .*\n\|---\|---\|\n((?:\|.*\n)+)", README, re.MULTILINE)
    rows = [row.split("|")[1] for row in listed[1].splitlines()]
    assert re.findall(r"`(\w+)`", "".join(rows)) == list(project["optional-dependencies"])
