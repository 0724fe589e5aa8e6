"""The pages in docs/: their snippets run, and they leave nothing out that the package has."""

import ast
import re
import shlex

import pytest
from snippets import ROOT, layout, outputs, snippets

import gpubench
from gpubench import cli

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md"))
RUN = {path: [s for s in snippets(path, "python", "ipython") if not s.unrun] for path in PAGES}


def read(name):
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [path for path in PAGES if RUN[path]], ids=lambda path: path.stem)
def test_snippets_run_and_print_what_the_page_shows(path, tmp_path):
    if any(each.language == "ipython" for each in RUN[path]):
        pytest.importorskip("IPython")
    for snippet, printed in zip(RUN[path], outputs(RUN[path], tmp_path), strict=True):
        if snippet.shown:
            assert layout(printed) == layout(snippet.shown), snippet.place


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_snippets_that_are_not_run_are_python(path):
    for snippet in snippets(path, "python"):
        compile(snippet.code, snippet.place, "exec")


def test_snippets_are_found():
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        assert len(re.findall(r"^```(?:python|ipython)$", text, re.MULTILINE)) == len(
            snippets(path, "python", "ipython")
        )
    assert sum(map(len, RUN.values())) > 20


def test_the_picture_of_the_gate_is_what_its_program_draws(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    import gate

    assert read("gate.svg") == gate.drawing()


def note_codes():
    """Return the codes of all notes that the package's own source makes."""
    codes = set()
    for path in sorted((ROOT / "gpubench").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else function
            name = getattr(name, "id", name)
            if name not in ("Note", "Finding", "finding"):
                continue
            given = node.args[0] if node.args else node.keywords[0].value
            if isinstance(given, ast.Constant):
                codes.add(given.value)
            else:
                # passed on from another note, or read from a file
                assert ast.unparse(given) in PASSED_ON, f"{path}:{node.lineno}"
    return codes


PASSED_ON = ("note.code", "code", "text('notes: code', entry.get('code', ''))")


def test_every_note_has_a_section():
    sections = re.findall(r"^### `([\w-]+)`$", read("notes.md"), re.MULTILINE)
    assert sorted(set(sections)) == sorted(sections)
    assert set(sections) == note_codes()


def test_every_public_name_is_in_the_reference_once():
    listed = re.findall(
        r"^(?:\.\. )?(?:auto\w+|py:\w+):: gpubench\.(\w+)$", read("api.md"), re.MULTILINE
    )
    assert sorted(listed) == sorted(gpubench.__all__)


def test_every_command_has_a_section():
    sections = re.findall(r"^## `([\w-]+)`$", read("command-line.md"), re.MULTILINE)
    assert sections == list(cli.COMMANDS)


COMMANDS = [
    (snippet.place, line)
    for path in PAGES
    for snippet in snippets(path, "sh")
    for line in re.findall(r"(?:^|&& )gpubench (.+)$", snippet.code, re.MULTILINE)
]


@pytest.mark.parametrize(("place", "line"), COMMANDS, ids=[place for place, _ in COMMANDS])
def test_command_lines_are_understood(place, line):
    options = cli._parser().parse_args(shlex.split(line))
    assert callable(options.execute)


def test_every_extra_that_a_page_names_exists():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"extra `(\w+)`", text)
        named += re.findall(r"gpubench\[([\w,]+)\]", text)
        for each in ",".join(named).split(","):
            assert not each or each in project["optional-dependencies"], path.name


def test_the_reductions_that_a_page_counts_are_those_measured():
    data = (ROOT / "benchmarks/data/reductions_h200.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (\d+) \| (\w+) \|.* ([\w,]+) \|$", data, re.MULTILINE)
    settings = ("none", "cub", "cutensor", "cub,cutensor")
    for axis in ("all", "leading", "middle", "trailing"):
        winners = [winner for *_, layout, winner in rows if layout == axis]
        counts = [len(winners), *map(winners.count, settings)]
        assert f"| {axis} | {' | '.join(map(str, counts))} |" in read("backends.md")


def test_the_house_has_the_rooms_that_are_drawn():
    drawn = re.search(r"^gpubench/\n((?:  .*\n)+)", read("architecture.md"), re.MULTILINE)
    named = set()
    for line in drawn[1].splitlines():
        # what a line names stands before its description
        named |= set(re.findall(r"[\w.]+", re.match(r"(?:  ?(?:\w+/|\w+\.py))+", line)[0]))
    there = {
        path.name
        for path in (ROOT / "gpubench").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert named == there - {"__init__.py", "__main__.py"}
