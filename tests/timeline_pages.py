"""Timeline pages as tests read them: their elements, and the data that they hold."""

import json
from html.parser import HTMLParser
from itertools import accumulate

import pytest

from gpubench.render import timeline

VOID = {"meta", "input"}


class Page(HTMLParser):
    """A page's elements and their text; fails if tags don't match."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", **dict(attributes)})
        if tag not in VOID:
            self._open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self._open.pop()["tag"] == tag

    def handle_data(self, text):
        for element in self._open:
            element["text"] += text

    def all(self, **attributes):
        return [
            each
            for each in self.elements
            if all(each.get(key) == value for key, value in attributes.items())
        ]

    def one(self, **attributes):
        (element,) = self.all(**attributes)
        return element

    @property
    def notes(self):
        return [note["text"] for note in self.all(**{"class": "note"})][:-1]  # less <noscript>'s

    @property
    def data(self):
        return json.loads(self.one(id="recording")["text"], parse_constant=pytest.fail)


def page_of(recording, path):
    timeline.write(recording, path / "timeline.html")
    return Page((path / "timeline.html").read_text("utf-8"))


def rows_of(data):
    """Return the records by the label of their row, with times in us and names in full."""
    columns = data["records"]
    assert len({len(column) for column in columns.values()}) == 1
    rows, first = {}, 0
    for row in data["rows"]:
        places = range(first, first + row["count"])
        first += row["count"]
        starts = list(accumulate(columns["start"][place] for place in places))
        key = data["groups"][row["group"]]["label"], row["label"]
        rows[key] = [
            (
                data["kinds"][columns["kind"][place]],
                data["names"][columns["name"][place]],
                start / 1000,
                columns["duration"][place] / 1000,
                columns["depth"][place],
            )
            for place, start in zip(places, starts, strict=True)
        ]
    assert first == len(columns["start"])
    return rows
