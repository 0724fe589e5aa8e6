"""The course: its lessons run, their claims hold, and their exercises know right from wrong."""

import io
import json
import math
import re
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

import gpubench

FOLDER = Path(__file__).parents[1] / "docs" / "pitfalls"
LESSONS = sorted(FOLDER.glob("[0-9]*.md"))


@dataclass(frozen=True)
class Lesson:
    """A lesson that was run: its text, its variables, what it displayed and printed."""

    number: int
    text: str
    names: dict
    shown: tuple
    printed: str


@pytest.fixture(scope="module")
def course():
    """The package that the lessons share, on a machine without a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        import course
        import course.place
        import course.running

        patch.setattr(course.place, "current_platform", lambda: SimpleNamespace(name="host"))
        yield course
        for name in [name for name in sys.modules if name.partition(".")[0] == "course"]:
            patch.delitem(sys.modules, name)


@pytest.fixture(scope="module", params=LESSONS, ids=lambda path: path.stem)
def lesson(request, course):
    """Each lesson, run; its simulated GPU is in use until the lesson's last test."""
    path, names, printed = request.param, {}, io.StringIO()
    text = path.read_text(encoding="utf-8")
    try:
        with redirect_stdout(printed):
            shown = tuple(course.running.run(path, names))
        yield Lesson(int(path.stem[:2]), text, names, shown, printed.getvalue())
    finally:
        course.place.stop()


def near(value, expected, rel=0.03):
    return math.isclose(value, expected, rel_tol=rel)


CLAIMS = {
    1: lambda wrong, right, synchronized, **_: (
        wrong < right / 10 and near(right, 10e-3) and synchronized > 9.9e-3
    ),
    2: lambda wrong, right, **_: wrong > 3 * right and near(right, 1e-3),
    3: lambda wrong, right, early, **_: (
        wrong > 1.25 * right
        and near(right, 1e-3)
        and "drifting" in [note.code for note in early.notes]
    ),
    4: lambda wrong, right, gated, graph, floor, **_: (
        wrong > 3 * gated.gpu[0].median
        and near(right, 5e-6)
        and right < graph.gpu[0].median < gated.gpu[0].median < 10e-6
        and near(floor, 1.25e-6)
    ),
    5: lambda wrong, right, events, result, **_: (
        wrong < right / 3
        and near(right, 1e-3)
        and all("side-stream" in [note.code for note in each.notes] for each in (events, result))
    ),
    6: lambda wrong, right, waiting, overlapping, **_: (
        wrong > 1.5 * right and near(right, 403e-6) and overlapping < waiting
    ),
    7: lambda wrong, right, **_: wrong > 4.8 > 1.2 * right,
    8: lambda wrong, right, minima, medians, **_: (
        1.6 < wrong / right < 2.6
        and near(right, 52e-6)
        and minima[10] > minima[2000]
        and all(near(each, right) for each in medians.values())
    ),
    9: lambda wrong, right, n_tests, result, **_: (
        wrong >= 2 / n_tests
        and right <= 0.5
        and "autocorrelated" in [note.code for note in result.notes]
    ),
    10: lambda wrong, right, **_: wrong > 1.1 * right,
    11: lambda wrong, right, **_: wrong > 500 * right,
    12: lambda wrong, right, verdict, machine, side_by_side, **_: (
        verdict == "slower"
        and side_by_side.verdict["new"] == "faster"
        and near(wrong, 1.03, 0.01)
        and near(right, 0.97, 0.01)
        and near(machine, 1.064, 0.01)
    ),
}

WRONG = {
    1: (
        "def answer(call):\n"
        "    begin = perf_counter()\n"
        "    call()\n"
        "    gpu.synchronize()\n"
        "    return perf_counter() - begin",
        "answer = lambda call: None",
    ),
    2: ("answer = lambda result, n: n * result.first_call_time",),
    3: (
        "answer = lambda samples: abs(samples[-1] / samples[0] - 1) < 0.02",
        "answer = lambda samples: abs(samples[-100:].mean() / samples[:100].mean() - 1) < 0.02",
        "answer = lambda samples: True",
    ),
    4: (
        "answer = lambda call: gpubench.benchmark(call, method='events').gpu[0].median",
        "answer = lambda call: gpubench.benchmark(call, method='graph').gpu[0].median",
    ),
    5: ("answer = 60e-6",),
    6: (
        "answer = lambda gpu, n: [gpu.launch(1e-3) for _ in range(n)]",
        "answer = lambda gpu, n: [gpu.synchronize(), *(gpu.launch(1e-3) for _ in range(n))]",
        "answer = lambda gpu, n: [gpu.launch(n * 1e-3), gpu.synchronize()]",
    ),
    7: ("answer = set()", "answer = {200, 400}"),
    8: ("answer = lambda samples: samples.min()", "answer = lambda samples: samples.max()"),
    9: ("answer = lambda n, correlation: n * (1 - correlation)",),
    10: (
        "answer = lambda n: np.random.default_rng(0).random((n, n))",
        "answer = lambda n: np.zeros((n, n), 'f2')",
        "answer = lambda n: np.full((n, n), np.inf, 'f2')",
        "answer = lambda n: np.linspace(0, 1, n * n).reshape(n, n).astype('f2')",
        "answer = lambda n: np.tile(np.random.default_rng(0).random(n), (n, 1)).astype('f2')",
    ),
    11: ("answer = ''", "answer = 'cub'", "answer = 'cub,cutensor,cutensornet'"),
    12: (
        "answer = lambda old, new, then, now: (new / then) / (old / now)",
        "answer = lambda old, new, then, now: (old / then) / (new / now)",
    ),
}


def test_there_are_twelve_and_the_index_lists_them():
    assert [int(path.stem[:2]) for path in LESSONS] == list(range(1, 13))
    assert CLAIMS.keys() == WRONG.keys() == set(range(1, 13))
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(\d\d-[\w-]+|solutions)$", index, re.MULTILINE)
    assert listed == [*(path.stem for path in LESSONS), "solutions"]


def test_a_lesson_says_where_its_figures_come_from(lesson):
    assert "SIMULATED" in lesson.printed
    assert ("RECORDED" in lesson.printed) is ("recorded(" in lesson.text)


def test_a_lesson_has_its_parts(lesson):
    headings = re.findall(r"^##? (.*)$", lesson.text, re.MULTILINE)
    title, *parts = headings
    assert title.startswith(f"{lesson.number}. ")
    assert parts == ["The wrong way", "Why", "The right way", "Exercise"]


def test_a_lesson_takes_five_minutes(lesson):
    _, _, body = lesson.text.split("---\n", 2)
    prose = re.sub(r"^```.*?^```$", "", body, flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) < 600


def test_pictures_take_the_colours_of_the_page(lesson, course):
    pictures = [each for each in lesson.shown if isinstance(each, course.pictures.Picture)]
    assert pictures
    for picture in pictures:
        svg = picture._repr_html_()
        assert svg.startswith("<svg ")
        assert "currentColor" in svg
        assert "#000000" not in svg
        assert "<style" not in svg  # it would be one of the whole page


def test_its_claims_hold(lesson):
    names = lesson.names
    assert CLAIMS[lesson.number](**names), {name: names[name] for name in ("wrong", "right")}


def test_the_exercise_begins_with_a_wrong_answer(lesson):
    assert not lesson.shown[-1].right
    assert str(lesson.shown[-1]).startswith("Not yet: ")


def test_the_solution_is_accepted(lesson):
    solutions = (FOLDER / "solutions.md").read_text(encoding="utf-8")
    title = re.search(r"^# (.*)$", lesson.text, re.MULTILINE)[1]
    section = solutions.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    names = {**lesson.names}
    exec(code, names)
    (asked,) = re.findall(rf"^check\({lesson.number}, (\w+)\)$", lesson.text, re.MULTILINE)
    verdict = names["check"](lesson.number, names[asked])
    assert verdict.right, verdict
    assert str(verdict).startswith("Right: ")


def test_wrong_answers_are_refused(lesson):
    for code in WRONG[lesson.number]:
        names = {**lesson.names}
        exec(code, names)
        verdict = names["check"](lesson.number, names["answer"])
        assert not verdict.right, code


@pytest.mark.parametrize("path", sorted(FOLDER.glob("recorded/*.json")), ids=lambda p: p.stem)
def test_recorded_figures_say_where_they_come_from(path, course, capsys):
    figures = course.recorded(path.stem)
    assert re.fullmatch(
        r"RECORDED: on an NVIDIA \w+, CuPy [\d.]+, \d{4}-\d\d-\d\d\.\n", capsys.readouterr().out
    )
    assert "host" not in json.dumps(figures["environment"])


def test_a_window_is_that_of_the_shortest_range(course, gpu):
    with gpubench.record_activity() as trace:
        for seconds in (0.05, 0.0, 0.05):
            with gpubench.time_range("mine"):
                gpu.launch(20e-3)
                time.sleep(seconds)
            gpu.synchronize()
    window = course.window(trace, "mine")
    assert 0.04 < window["begin"] < 0.1
    assert 20e-3 < window["end"] - window["begin"] < 45e-3
