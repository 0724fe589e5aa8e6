"""Chrome traces as tests read them: strictly, checked against the trace-event format."""

import itertools
import json
from collections import Counter, defaultdict

import pytest

from gpubench.render import chrome


def document_of(recording, path):
    chrome.write(recording, path)
    return strictly_parsed(path.read_bytes())


def strictly_parsed(content):
    document = json.loads(content.decode(), parse_constant=pytest.fail)
    json.dumps(document, ensure_ascii=False).encode()  # fails at half a surrogate pair
    return document


def ns(us):
    """Return a time in ns, which it must be a whole number of."""
    assert isinstance(us, float)
    assert abs(us * 1000 - round(us * 1000)) < 1e-3
    return round(us * 1000)


def events_of(document):
    """Return the events by phase, after checking all that the format asks of them."""
    by_phase = defaultdict(list)
    for event in document["traceEvents"]:
        KEYS[event["ph"]](event)
        by_phase[event["ph"]].append(event)
    check_names(by_phase["M"], [event for event in document["traceEvents"] if "ts" in event])
    check_nesting(by_phase["X"])
    check_arrows(by_phase["s"], by_phase["f"], by_phase["X"])
    check_counters(by_phase["C"])
    return by_phase


def has(*keys, **types):
    def check(event):
        assert set(event) == {"ph", *keys, *types}
        assert all(isinstance(event[key], kind) for key, kind in types.items())
        assert all(0 < event[key] < 2**31 for key in ("pid", "tid") if key in event)
        if "ts" in event:
            assert ns(event["ts"]) >= 0

    return check


TIMED = {"name": str, "cat": str, "pid": int, "tid": int, "ts": float}
KEYS = {
    "X": has(**TIMED, dur=float, args=dict),
    "i": has(**TIMED, s=str, args=dict),
    "s": has(**TIMED, id=int),
    "f": has(**TIMED, id=int, bp=str),
    "C": has(name=str, pid=int, ts=float, args=dict),
    "M": lambda event: has(*event.keys() & {"tid"}, name=str, pid=int, args=dict)(event),
}


def check_names(metadata, timed):
    """Every process and row that is used has one name and one place."""
    facts = Counter((event["name"], event["pid"], event.get("tid")) for event in metadata)
    assert set(facts.values()) <= {1}
    for event in timed:
        for kind, tid in ("process", None), ("thread", event.get("tid")):
            if kind == "process" or tid:
                assert facts[f"{kind}_name", event["pid"], tid] == 1
                assert facts[f"{kind}_sort_index", event["pid"], tid] == 1
    pids = {event["pid"] for event in metadata}
    tids = Counter(event["tid"] for event in metadata if event["name"] == "thread_name")
    assert set(tids.values()) <= {1}
    assert not pids & set(tids)


def check_nesting(slices):
    """In each row, by the order in the file, a slice lies apart from the one before or in it."""
    rows = defaultdict(list)
    for event in slices:
        start, duration = ns(event["ts"]), ns(event["dur"])
        assert duration >= 0
        rows[event["pid"], event["tid"]].append((start, start + duration))
    for row in rows.values():
        assert row == sorted(row, key=lambda times: (times[0], -times[1]))
        around = []
        for start, end in row:
            while around and around[-1] <= start:
                around.pop()
            assert not around or end <= around[-1]
            around.append(end)


def check_arrows(begins, ends, slices):
    """Each has its two ends, in this order, inside slices."""
    rows = defaultdict(list)
    for event in slices:
        start = ns(event["ts"])
        rows[event["pid"], event["tid"]].append((start, start + ns(event["dur"])))
    arrows = {event["id"]: event for event in begins}
    assert len(arrows) == len(begins) == len(ends) == len({event["id"] for event in ends})
    for end in ends:
        begin = arrows[end["id"]]
        assert end["bp"] == "e"
        assert (begin["cat"], begin["name"]) == (end["cat"], end["name"])
        assert begin["ts"] <= end["ts"]
        for event in (begin, end):
            at = ns(event["ts"])
            assert any(first <= at <= last for first, last in rows[event["pid"], event["tid"]])


def check_counters(counts):
    series = defaultdict(list)
    for event in counts:
        assert all(value >= 0 for value in event["args"].values())
        series[event["pid"], event["name"]].append(event["ts"])
    for times in series.values():
        assert all(one < other for one, other in itertools.pairwise(times))


def labels_of(events):
    """Return the rows' labels, by process."""
    processes = {e["pid"]: e["args"]["name"] for e in events["M"] if e["name"] == "process_name"}
    rows = {label: [] for label in processes.values()}
    for event in events["M"]:
        if event["name"] == "thread_name":
            rows[processes[event["pid"]]].append(event["args"]["name"])
    return rows


def row_of(events, name):
    """Return the labels of the rows that hold the slices of a name."""
    tids = {e["tid"]: e["args"]["name"] for e in events["M"] if e["name"] == "thread_name"}
    return [tids[event["tid"]] for event in events["X"] if event["name"] == name]
