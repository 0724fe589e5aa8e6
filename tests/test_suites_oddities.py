"""Benchmarks that do what none should, and names that are taken: the rest of the suite runs."""

import os

import pytest

from gpubench.suites.run import run_suite

ODD = """
import os, sys, time

def time_interrupt():
    raise KeyboardInterrupt

def time_base():
    class Strange(BaseException):
        pass
    raise Strange("odd")

def time_hang_after_words():
    print("x" * 1000, end="")
    time.sleep(60)
time_hang_after_words.timeout = 0.5

def time_outputs_closed():
    sys.stdout.close()
    sys.stderr.close()
time_outputs_closed.number = time_outputs_closed.repeat = 1

class Setup:
    params = [1, 2]
    def time_it(self, n):
        pass

class Generated:
    params = (n for n in (1, 2))
    def time_it(self, n):
        pass

class SameNames:
    params = [[1, 2], [3]]
    param_names = ["n", "n"]
    def track_sum(self, one, other):
        return one + other

class ParamsExit:
    @property
    def params(self):
        raise SystemExit("no params")
    def time_it(self):
        pass

def time_one():
    pass

def time_other():
    pass
time_other.benchmark_name = "bench.time_one"

def time_labelled():
    pass
time_labelled.pretty_name = 5
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    (folder / "bench.py").write_text(ODD)
    (folder / "bench_interrupted.py").write_text("raise KeyboardInterrupt\ndef time_it(): 1\n")
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "pipe.py")
    saved = run_suite(folder, quick=True)
    return dict(zip(saved.keys, saved.records, strict=True))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
class TestOddities:
    def test_whatever_is_raised_is_told_with_its_place(self, odd):
        assert odd["bench.time_interrupt"].reason == (
            "KeyboardInterrupt (bench.py:5, in time_interrupt)"
        )
        assert odd["bench.time_base"].reason.startswith("Strange: odd (bench.py:")
        assert odd["bench.ParamsExit.time_it"].reason.startswith("SystemExit: no params")
        assert odd["bench_interrupted"].reason.startswith("KeyboardInterrupt (bench_interrupted")

    def test_a_timeout_is_known_behind_unfinished_and_long_lines(self, odd):
        reason = odd["bench.time_hang_after_words"].reason
        assert reason.startswith("it took too long; ")
        assert "in time_hang_after_words" in reason
        assert max(map(len, reason.splitlines())) < 600

    def test_parameters(self, odd):
        assert odd["bench.SameNames.track_sum(n=1, n#2=3)"].value == 4
        assert odd["bench.SameNames.track_sum(n=2, n#2=3)"].value == 5

    def test_all_others_run(self, odd):
        failed = {name for name, record in odd.items() if record.status != "ok"}
        assert failed == {
            "bench.time_interrupt",
            "bench.time_base",
            "bench.time_hang_after_words",
            "bench.ParamsExit.time_it",
            "bench_interrupted",
        }
        assert set(odd) - failed == {
            "bench.time_outputs_closed",
            "bench.Setup.time_it(param1=1)",
            "bench.Setup.time_it(param1=2)",
            "bench.Generated.time_it(param1=1)",
            "bench.Generated.time_it(param1=2)",
            "bench.SameNames.track_sum(n=1, n#2=3)",
            "bench.SameNames.track_sum(n=2, n#2=3)",
            "bench.time_one",
            "bench.time_one#2",
            "bench.time_labelled",
        }
        assert odd["bench.time_labelled"].result.name == "5"


def test_a_suite_may_be_called_like_what_it_benchmarks(tmp_path):
    folder = tmp_path / "numpy"
    folder.mkdir()
    (folder / "helper.py").write_text("N = 7\n")
    (folder / "bench.py").write_text(
        "import numpy\nfrom .helper import N\n\ndef track_n():\n    return numpy.ones(N).sum()\n"
    )
    (record,) = run_suite(folder, quick=True).records
    assert (record.status, record.value) == ("ok", 7.0)
