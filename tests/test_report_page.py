"""The report in Chromium: sorted, filtered and opened, by mouse and by keyboard."""

import pytest
from chromium import BROWSER, Page
from example_reports import hostile, record, suite
from example_sweeps import precision

from gpubench.render import report
from gpubench.storage import save

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")

NAMES = """
    [...document.querySelectorAll("#table tbody:not([hidden]) .line th")]
        .map(each => each.innerText)
"""
SHOWN = "document.getElementById('count').textContent"


def head(text):
    """A selector of the button in a column's head."""
    return f"#table thead th:nth-child({text}) button"


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Reports: of two runs and a sweep, of names that mean harm, of one run, of few samples."""
    folder = tmp_path_factory.mktemp("report")
    save(folder / "before.json", suite(), environment={"host": "somewhere", "cupy": "13.0"})
    save(folder / "after.json", suite(1.2), environment={"host": "somewhere", "cupy": "14.2"})
    (folder / "sweep.json").write_text(precision().to_json())
    save(folder / "hostile.json", hostile())
    save(folder / "hostile2.json", hostile())
    save(folder / "few.json", [record("few", n=n) for n in (1, 2, 3, 9)])
    reports = {
        "three": ("before.json", "after.json", "sweep.json"),
        "hostile": ("hostile.json", "hostile2.json"),
        "one": ("before.json",),
        "few": ("few.json",),
    }
    for name, files in reports.items():
        runs = report.read_runs([folder / file for file in files])
        report.write(runs, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in reports}


@pytest.fixture(scope="module")
def browser():
    with Page() as page:
        yield page


@pytest.fixture
def page(browser):
    """A browser whose console must be empty, and that must fetch nothing but the page."""
    browser.problems.clear()
    browser.fetched.clear()
    yield browser
    assert browser.problems == []
    assert {url.rpartition("/")[2].partition("#")[0] for url in browser.fetched} <= {
        "three.html", "hostile.html", "one.html", "few.html",
    }  # fmt: skip


def names(page):
    return [text.replace("\n", "") for text in page.run(NAMES)]


def test_a_head_sorts_up_then_down_then_not(page, paths):
    page.open(paths["three"])
    first = names(page)
    sort = f"document.querySelector({head(2)!r}).parentElement.ariaSort"
    page.click(head(2))
    up = names(page)
    assert page.run(sort) == "ascending"
    assert up.index("suite.time_host") < up.index("suite.Sum.time_sum(dtype='f4', n=1024)")
    assert up.index("suite.Sum.time_sum(dtype='f8', n=1024)") < up.index("suite.time_noted")
    assert {"suite.time_svd", "suite.time_nccl"} <= set(up[-6:])  # without a figure: last
    page.click(head(2))
    down = names(page)
    assert page.run(sort) == "descending"
    assert down.index("suite.time_noted") < down.index("suite.time_host")
    assert {"suite.time_svd", "suite.time_nccl"} <= set(down[-6:])
    page.click(head(2))
    assert page.run(sort) is None
    assert names(page) == first


def test_names_are_sorted_as_numbers_where_they_hold_some(page, paths):
    page.open(paths["one"])
    page.click(head(1))
    sums = [name for name in names(page) if "f4" in name]
    assert [name.partition("n=")[2] for name in sums] == ["1024)", "4096)", "16384)"]


def test_words_and_choices_filter(page, paths):
    page.open(paths["three"])
    assert page.run(SHOWN) == "15 benchmarks"
    page.click("#find")
    page.type("SUM f8")
    assert page.run(SHOWN) == "3 of 15 benchmarks"
    assert {name.partition("(")[0] for name in names(page)} == {"suite.Sum.time_sum"}
    page.type(" nothing")
    assert page.run("document.getElementById('none').hidden") is False
    assert names(page) == []
    page.run("document.getElementById('find').value = ''")
    choose = """((name, value) => {
        const select = document.querySelector(`[data-filter=${name}]`);
        select.value = value;
        select.dispatchEvent(new Event("input", { bubbles: true }));
    })"""
    page.run(f"{choose}('status', 'failed')")
    assert names(page) == ["suite.time_svd"]
    page.run(f"{choose}('status', '')")
    page.run(f"{choose}('verdict', 'slower')")
    assert len(names(page)) == 6
    page.run(f"{choose}('verdict', '')")
    page.run(f"{choose}('note', 'drifting')")
    assert names(page) == ["suite.time_noted"]


def test_opening_a_benchmark_draws_it(page, paths):
    page.open(paths["three"])
    assert page.run("getComputedStyle(document.querySelector('#b7 .more')).display") == "none"
    page.click("#b7 .line button")
    page.wait("document.querySelectorAll('#b7 .chart svg').length === 2")
    assert page.run("document.querySelector('#b7 .line button').ariaExpanded") == "true"
    drawn = "[...document.querySelectorAll('#b7 [role=graphics-document]')]"
    labels = f"{drawn}.map(each => each.ariaLabel)"
    assert page.run(labels) == [
        "Histogram of GPU-0 times", "GPU-0 times in run order, noted: drifting, unstable",
    ]  # fmt: skip
    texts = page.run("[...document.querySelectorAll('#b7 svg text')].map(t => t.textContent)")
    assert {"drifting (before.json)", "unstable (after.json)", "before.json"} <= set(texts)
    page.click("#b7 fieldset:nth-of-type(2) label:nth-of-type(2)")
    page.wait(f"({labels})[0] === 'Distribution of GPU-0 times'")
    page.click("#b7 fieldset:nth-of-type(1) label:nth-of-type(2)")
    page.wait(f"({labels})[1] === 'CPU times in run order'")  # the notes are on the GPU's
    page.click("#close")
    assert page.run("document.querySelectorAll('#table .open').length") == 0


def test_few_samples_are_counted_in_whole_numbers(page, paths):
    page.open(paths["few"])
    for number, n in enumerate((1, 2, 3, 9), start=1):
        page.click(f"#b{number} .line button")
        order = f"#b{number} .chart:nth-of-type(3) svg"
        page.wait(f"document.querySelector('{order}')")
        labels = page.run(
            f"[...document.querySelector('{order} .mark-text.role-axis-label').children]"
            ".filter(text => text.getAttribute('opacity') !== '0').map(text => text.textContent)"
        )
        assert labels == [str(k) for k in range(n)]


def test_the_keyboard_is_enough(page, paths):
    page.open(paths["one"])
    page.run(f"document.querySelector({head(2)!r}).focus()")
    page.press("Enter")
    assert page.run("document.activeElement.parentElement.ariaSort") == "ascending"
    page.run("document.querySelector('#b1 .line button').focus()")
    page.press("Tab")
    assert page.run("document.activeElement.closest('tbody').id") != "b1"  # closed: nothing in it
    page.run("document.querySelector('#b1 .line button').focus()")
    page.press(" ")
    page.wait("document.querySelectorAll('#b1 .chart svg').length === 2")
    page.press("Tab")
    assert page.run("document.activeElement.type") == "radio"
    page.press("Tab")
    page.press("ArrowRight")
    page.wait("document.querySelector('#b1 [aria-label^=Distribution]')")


def test_the_address_opens_a_benchmark(page, paths):
    page.open(paths["one"], fragment="#b2")
    page.wait("document.querySelector('#b2.open .chart svg')")


def test_comparison_and_curves_are_drawn_where_they_are_seen(page, paths):
    page.open(paths["three"])
    page.run("document.querySelector('#comparison figure').scrollIntoView()")
    page.wait("document.querySelector('#comparison svg')")
    page.run("document.querySelector('#curves figure:last-child').scrollIntoView()")
    page.wait("document.querySelector('#curves figure:last-child svg')")
    texts = "[...document.querySelectorAll('#comparison svg text')].map(t => t.textContent)"
    assert "time_sum(dtype='f4', n=1024)" in page.run(texts)
    last = texts.replace("#comparison", "#curves figure:last-child")
    assert {"fp32", "fp16", "512", "1,024"} <= set(page.run(last))


def test_a_point_says_what_it_is(page, paths):
    page.open(paths["three"])
    page.run("document.querySelector('#curves').scrollIntoView({ behavior: 'instant' })")
    page.wait("document.querySelector('#curves svg .mark-symbol path')")
    page.point("#curves svg .mark-symbol.role-mark path")
    page.wait("document.getElementById('tooltip').innerText")
    assert "1024" in page.run("document.getElementById('tooltip').innerText")


def test_what_files_hold_is_shown_and_never_run(page, paths):
    page.open(paths["hostile"])
    buttons = "#table tbody:nth-of-type(odd):nth-of-type(-n + 20) .line button"
    page.run(f"document.querySelectorAll({buttons!r}).forEach(button => button.click())")
    page.run("document.querySelectorAll('figure').forEach(figure => figure.scrollIntoView())")
    page.wait("document.querySelectorAll('.more .chart svg').length === 20")
    page.printed()
    page.wait("document.querySelectorAll('figure .chart svg').length === 11")
    assert page.run("window.hacked") is None
    for selector in ("img", "iframe", "object", "[onload]", "[onerror]", "[src]", "[href^=java]"):
        assert page.run(f"document.querySelectorAll('{selector}').length") == 0


@pytest.mark.parametrize("dark", [False, True])
def test_it_follows_the_colours_and_the_width_of_the_screen(page, paths, dark):
    page.open(paths["three"], dark=dark, width=380)
    page.click("#b1 .line button")
    page.wait("document.querySelectorAll('#b1 .chart svg').length === 2")
    assert page.run("document.documentElement.scrollWidth") <= 380
    assert page.run("document.querySelector('#b1 .chart svg').getBoundingClientRect().width") < 360
    colours = page.run(
        "['body', '#b1 .chart svg .role-axis-title text']"
        ".map(each => document.querySelector(each)).map(each => getComputedStyle(each))"
        ".map(({ backgroundColor, fill }) => backgroundColor + fill)"
    )
    assert colours[0].startswith("rgb(20, 23, 26)" if dark else "rgb(251, 251, 250)")
    assert colours[1].endswith("rgb(152, 162, 169)" if dark else "rgb(95, 104, 109)")


def test_without_scripts_there_are_tables(page, paths):
    page.open(paths["three"], scripts=False)
    try:
        text = page.run("document.body.innerText")
        assert "Scripts are off" in text
        assert "8.00 us" in text
        assert "1.200" in text
        assert page.run("getComputedStyle(document.getElementById('tools')).display") == "none"
        assert page.run("document.querySelector('#b1 summary').checkVisibility()") is True
    finally:
        page.open(paths["three"])
