import sys
import types

import pytest

from gpubench.ranges import backend, mark, time_range
from gpubench.ranges.backends import SILENT
from gpubench.ranges.label import Label


@pytest.fixture(autouse=True)
def _fresh_choice():
    """Let each test choose a back end, and leave none of its choices behind."""
    backend.cache_clear()
    yield
    backend.cache_clear()


@pytest.fixture
def calls():
    return []


def use_ranges():
    """Open a range of every sort, and mark an instant."""

    @time_range(color="red", category="io", payload=7)
    def f():
        return 5

    @time_range(argb_color=0xFF00FF00)
    def g():
        yield 6

    with time_range("block"):
        mark("now", "blue")
        assert f() == 5
        assert list(g()) == [6]


def without(monkeypatch, *packages):
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


def fake_functions(calls):
    """Make an nvtx package that has functions only, and whose push returns -1."""
    nvtx = types.ModuleType("nvtx")

    def push_range(message=None, color="blue", domain=None, category=None):
        calls.append(f"push {message} {color} {domain} {category}")
        return -1

    def pop_range(domain=None):
        calls.append(f"pop {domain}")
        return -1

    def start_range(message=None, color="blue", domain=None, category=None):
        calls.append(f"start {message} {color} {domain} {category}")
        return "id"

    nvtx.push_range = push_range
    nvtx.pop_range = pop_range
    nvtx.start_range = start_range
    nvtx.end_range = lambda range_id: calls.append(f"end {range_id}")
    nvtx.mark = lambda message, color, domain, category: calls.append(f"mark {message} {color}")
    return nvtx


CALLS_OF_FUNCTIONS = [
    "push block None gpubench None",
    f"mark now {0xFF0000FF}",
    f"push f {0xFFFF0000} gpubench io",
    "pop gpubench",
    f"start g {0xFF00FF00} gpubench None",
    "end id",
    "pop gpubench",
]


class Domain:
    def __init__(self, calls, name):
        self.calls = calls
        self.name = name

    def get_event_attributes(self, message=None, color=None, category=None, payload=None):
        self.calls.append(f"attributes {message}")
        return (message, color, category, payload)

    def push_range(self, attributes):
        self.calls.append(("push", self.name, *attributes))
        return -1

    def pop_range(self):
        self.calls.append(f"pop {self.name}")

    def start_range(self, attributes):
        self.calls.append(("start", self.name, *attributes))
        return 8

    def end_range(self, range_id):
        self.calls.append(f"end {range_id}")

    def mark(self, attributes):
        self.calls.append(("mark", self.name, *attributes))


def test_domains_of_nvtx_are_preferred(monkeypatch, calls):
    nvtx = fake_functions(calls)
    nvtx.get_domain = lambda name: Domain(calls, name)
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    assert (backend().name, backend().reason) == ("nvtx", "the nvtx package is installed")
    use_ranges()
    assert calls == [
        "attributes block",
        ("push", "gpubench", "block", None, None, None),
        "attributes now",
        ("mark", "gpubench", "now", 0xFF0000FF, None, None),
        "attributes f",
        ("push", "gpubench", "f", 0xFFFF0000, "io", 7),
        "pop gpubench",
        "attributes g",
        ("start", "gpubench", "g", 0xFF00FF00, None, None),
        "end 8",
        "pop gpubench",
    ]


def test_attributes_are_made_once(monkeypatch, calls):
    nvtx = types.SimpleNamespace(get_domain=lambda name: Domain(calls, name))
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    r = time_range("r")
    for _ in range(3):
        with r:
            pass
    assert calls.count("attributes r") == 1
    assert calls.count("pop gpubench") == 3


def test_domain_that_no_profiler_listens_to_is_left_alone(monkeypatch, calls):
    class Unheard(Domain):
        def get_event_attributes(self, *attributes):
            return None

    nvtx = types.SimpleNamespace(get_domain=lambda name: Unheard(calls, name))
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    use_ranges()
    assert calls == []


def test_nvtx_without_domains_pops_what_it_pushed(monkeypatch, calls):
    monkeypatch.setitem(sys.modules, "nvtx", fake_functions(calls))
    use_ranges()
    assert backend().name == "nvtx"
    assert calls == CALLS_OF_FUNCTIONS


def test_nvtx_whose_domains_cannot_push(monkeypatch, calls):
    nvtx = fake_functions(calls)
    nvtx.get_domain = lambda name: object()
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    use_ranges()
    assert calls == CALLS_OF_FUNCTIONS


def test_nvtx_with_nothing_but_push_and_pop(monkeypatch, calls):
    nvtx = fake_functions(calls)
    del nvtx.start_range, nvtx.end_range, nvtx.mark
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    use_ranges()
    assert [call.split()[0] for call in calls] == ["push", "push", "pop", "pop"]


def test_nvtx_switched_off_by_its_variable(monkeypatch, calls):
    nvtx = fake_functions(calls)
    nvtx.enabled = lambda: False
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    use_ranges()
    assert (backend().name, backend().reason) == ("none", "the variable NVTX_DISABLE is set")
    assert calls == []


def fake_cupy(monkeypatch, nvtx):
    cuda = types.ModuleType("cupy.cuda")
    cuda.nvtx = nvtx
    cupy = types.ModuleType("cupy")
    cupy.cuda = cuda
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)


def test_cupy_takes_the_place_of_nvtx(monkeypatch, calls):
    def note(name):
        return lambda *arguments: calls.append((name, *arguments))

    names = ("RangePush", "RangePushC", "RangePop", "RangeEnd", "Mark", "MarkC")
    nvtx = types.SimpleNamespace(available=True, **{name: note(name) for name in names})
    nvtx.RangeStart = lambda *arguments: calls.append(("RangeStart", *arguments)) or 4
    without(monkeypatch, "nvtx")
    fake_cupy(monkeypatch, nvtx)
    use_ranges()
    mark("plain")
    assert backend().name == "cupy"
    assert backend().reason.startswith("the nvtx package can't be used (")
    assert calls == [
        ("RangePush", "block"),
        ("MarkC", "now", 0xFF0000FF),
        ("RangePushC", "f", 0xFFFF0000),
        ("RangePop",),
        ("RangeStart", "g", 0xFF00FF00),
        ("RangeEnd", 4),
        ("RangePop",),
        ("Mark", "plain"),
    ]


def test_real_cupy_can_do_all_of_it(monkeypatch):
    pytest.importorskip("cupy")
    without(monkeypatch, "nvtx")
    assert backend().name == "cupy"
    use_ranges()


def test_without_nvtx_and_cupy_ranges_do_nothing(monkeypatch):
    without(monkeypatch, "nvtx", "cupy")
    use_ranges()
    assert backend().name == "none"
    assert backend().reason.startswith("the nvtx package can't be used (")
    assert "nor can CuPy's NVTX (" in backend().reason
    assert backend().annotate(Label("r", None, "gpubench", None, None)) is SILENT


def test_without_nvtx_and_with_a_cupy_that_lacks_it(monkeypatch):
    without(monkeypatch, "nvtx")
    fake_cupy(monkeypatch, types.SimpleNamespace(available=False))
    use_ranges()
    assert backend().name == "none"
    assert backend().reason.endswith("nor can CuPy's NVTX (CuPy was built without it)")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise OSError('libnvToolsExt.so.1: no such file')", "libnvToolsExt.so.1: no such file"),
        ("raise ValueError('numpy.dtype size changed')", "numpy.dtype size changed"),
        ("", "has neither get_domain nor push_range"),
    ],
)
def test_nvtx_that_is_broken(monkeypatch, tmp_path, source, reason):
    (tmp_path / "nvtx.py").write_text(source)
    monkeypatch.delitem(sys.modules, "nvtx", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    without(monkeypatch, "cupy")
    use_ranges()
    assert backend().name == "none"
    assert reason in backend().reason
    sys.modules.pop("nvtx", None)


def test_choice_is_made_once(monkeypatch, calls):
    without(monkeypatch, "nvtx", "cupy")
    chosen = backend()
    monkeypatch.setitem(sys.modules, "nvtx", fake_functions(calls))
    use_ranges()
    assert backend() is chosen
    assert calls == []


def test_real_nvtx_is_chosen_when_installed():
    pytest.importorskip("nvtx")
    use_ranges()
    assert backend().name == "nvtx"


def test_backend_reads_as_name_and_reason(monkeypatch):
    nvtx = types.SimpleNamespace(enabled=lambda: False)
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    assert repr(backend()) == "Backend(name='none', reason='the variable NVTX_DISABLE is set')"
