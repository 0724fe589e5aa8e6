import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpubench.sweeps.counters.faults import CounterError
from gpubench.sweeps.counters.parse import Kernel, parse_csv, read_report

HANDMADE = (Path(__file__).parent / "data" / "ncu_handmade_regions.csv").read_text()
READ = "dram__bytes_read.sum"
TIME = "gpu__time_duration.sum"
REGISTERS = "launch__registers_per_thread"
THROUGHPUT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def test_a_table_is_read_among_other_lines():
    report = parse_csv(HANDMADE, [READ, TIME, REGISTERS, THROUGHPUT])
    assert report.units == {READ: "byte", TIME: "ns", REGISTERS: "register/thread", THROUGHPUT: "%"}
    assert report.kernels == (
        Kernel(
            "void add<float>(float *, int)",
            config=0,
            regions=frozenset({0}),
            values={READ: 1048576, TIME: 3000, REGISTERS: 16, THROUGHPUT: 20.5},
        ),
        Kernel(
            "mul(float *, int)",
            config=0,
            regions=frozenset({0, 1}),
            values={READ: 512, TIME: 1000, THROUGHPUT: 60.5},
        ),
        Kernel("mul(float *, int)", config=12, values={READ: 0, TIME: 1000.25, REGISTERS: 16}),
    )


def test_a_metric_without_a_column_has_no_value():
    report = parse_csv(HANDMADE, [TIME, "nosuch__counter.sum"])
    assert [set(kernel.values) for kernel in report.kernels] == [{TIME}] * 3


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("", "Nsight Compute failed: it printed no table of its report."),
        ("==PROF== nothing else\n", "Nsight Compute failed: it printed no table of its report."),
        (
            "==ERROR== Could not open report file 'x'.\n==ERROR== Could not open report file 'x'.",
            "Nsight Compute failed: Could not open report file 'x'.",
        ),
    ],
)
def test_no_table_is_an_error_that_quotes_ncu(printed, message):
    with pytest.raises(CounterError) as error:
        parse_csv(printed, [TIME])
    assert str(error.value) == message


class Metric:
    def __init__(self, value, unit):
        self.value, self._unit = value, unit

    def has_value(self):
        return self.value is not None

    def as_double(self):
        return float(self.value)

    def unit(self):
        return self._unit


def action(name, domains, metrics):
    """A profile result of the package ncu-report; `domains` has the names of open ranges."""
    infos = [
        SimpleNamespace(
            name=lambda domain=domain: domain,
            push_pop_ranges=lambda ranges=ranges: ranges[0],
            start_end_ranges=lambda ranges=ranges: ranges[1],
        )
        for domain, ranges in (domains or {}).items()
    ]
    state = SimpleNamespace(
        domains=lambda: tuple(range(len(infos))), domain_by_id=infos.__getitem__
    )
    return SimpleNamespace(
        name=lambda: name,
        nvtx_state=lambda: None if domains is None else state,
        metric_by_name=metrics.get,
    )


@pytest.fixture
def ncu_report(monkeypatch):
    """The package ncu-report, with what is put into the list as a report's actions."""
    actions = []
    run = SimpleNamespace(num_actions=lambda: len(actions), action_by_idx=actions.__getitem__)
    context = SimpleNamespace(num_ranges=lambda: 1, range_by_idx=[run].__getitem__)
    package = SimpleNamespace(load_report=lambda path: context)
    monkeypatch.setitem(sys.modules, "ncu_report", package)
    return actions


def test_the_package_reads_a_report_by_itself(ncu_report):
    process = ("configuration 3", "counted")
    metrics = {TIME: Metric(1500, "ns"), READ: Metric(None, ""), THROUGHPUT: Metric("nan", "%")}
    ncu_report += [
        action("warm_up", None, metrics),
        action("other", {"gpubench": (("region 5",), ())}, metrics),
        action(
            "sum",
            {
                "gpubench": (("region 9",), ("configuration 8",)),
                "gpubench-counters": (("region 0", "region 2"), process),
            },
            metrics,
        ),
    ]
    report = read_report(Path("report.ncu-rep"), [TIME, READ, THROUGHPUT], "no-ncu", 1)
    assert report.kernels == (Kernel("sum", 3, frozenset({0, 2}), {TIME: 1500.0}),)
    assert report.units == {TIME: "ns", THROUGHPUT: "%"}


def test_without_the_package_ncu_must_print_the_report(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(CounterError, match="no-ncu can't print its report"):
        read_report(tmp_path / "report.ncu-rep", [TIME], "no-ncu", 1)
