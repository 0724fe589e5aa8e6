"""One function under several settings, each in a process of its own, without a GPU."""

import os
import signal
import sys
import time

import numpy as np
import pytest

from gpubench import ArgumentError, MissingExtraError
from gpubench.comparison import compare_accelerators

pytest.importorskip("cloudpickle")

VARIABLE = "CUPY_ACCELERATORS"
QUICK = {"n_blocks": 3, "n_warmup": 1, "max_duration": 2.0, "isolate": True}


def setting():
    return os.environ.get(VARIABLE)


def codes(comparison):
    return [note.code for note in comparison.notes]


@pytest.fixture
def seen(monkeypatch):
    """Let each arm's return value be seen, by a check that accepts all."""
    values = []

    def check(expected, actual):
        values[:] = [*(values or [expected]), actual]
        return True

    return values, check


def test_each_setting_has_its_own_variable_and_the_parent_keeps_its_own(monkeypatch, seen):
    monkeypatch.setenv(VARIABLE, "cutensor")
    values, check = seen
    comparison = compare_accelerators(
        setting, settings=["", "cub", "cub, cutensor"], check=check, **QUICK
    )
    assert values == ["", "cub", "cub,cutensor"]
    assert os.environ[VARIABLE] == "cutensor"
    assert comparison.baseline == "none"
    assert [arm.name for arm in comparison.arms] == ["none", "cub", "cub,cutensor"]
    assert len(comparison.order) == 9


@pytest.mark.skipif(sys.platform == "win32", reason="has no signals to die of")
def test_an_arm_that_dies_is_a_row_with_its_last_words():
    def fragile():
        if os.environ[VARIABLE] == "cutensor":
            print("about to give up", flush=True)
            os.abort()

    comparison = compare_accelerators(fragile, settings=["", "cub", "cutensor"], **QUICK)
    dead = comparison["cutensor"]
    assert dead.status == "failed"
    assert "SIGABRT" in dead.reason
    assert "about to give up" in dead.reason
    assert comparison.verdict["cutensor"] == "failed"
    assert comparison.results["cub"].cpu.n == comparison.results["none"].cpu.n > 0
    assert "cutensor: failed: " in str(comparison)


@pytest.mark.skipif(sys.platform == "win32", reason="has no signals to die of")
def test_an_arm_that_dies_between_its_blocks_leaves_the_others(tmp_path):
    count = tmp_path / "count"

    def fragile():
        if os.environ[VARIABLE] == "cub" and count.exists():
            os.kill(os.getpid(), signal.SIGKILL)

    def check(expected, actual):
        count.touch()
        return True

    comparison = compare_accelerators(fragile, settings=["", "cub"], check=check, **QUICK)
    assert "SIGKILL" in comparison["cub"].reason
    assert comparison.results["none"].cpu.n > 0


def test_an_arm_that_raises_is_a_row():
    def picky():
        if os.environ[VARIABLE] == "cub":
            raise ValueError("not this one")

    comparison = compare_accelerators(picky, settings=["", "cub"], **QUICK)
    assert comparison["cub"].status == "failed"
    assert comparison["cub"].reason == "ValueError: not this one"


def test_a_baseline_that_fails_leaves_nothing_to_judge():
    def picky():
        if not os.environ[VARIABLE]:
            raise ValueError("not this one")

    comparison = compare_accelerators(picky, settings=["", "cub", "cutensor"], **QUICK)
    assert comparison["none"].status == "failed"
    assert comparison["cub"].judgement is None
    assert comparison["cub"].result is not None
    assert comparison.verdict["cub"] == "unavailable"
    assert "none: failed: ValueError: not this one" in str(comparison)


def test_what_the_function_prints_disturbs_nothing(capfd):
    compare_accelerators(lambda: print("hello"), settings=["", "cub"], **QUICK)
    assert "hello" not in capfd.readouterr().out


def test_a_function_and_arguments_of_the_main_module_travel():
    def add(a, b=0):
        return a + b + len(setting())

    add.__module__ = "__main__"
    array = np.arange(3)
    comparison = compare_accelerators(add, (array,), {"b": 1}, settings=["", "cub"], **QUICK)
    assert comparison.verdict == {"cub": "MISMATCH"}
    assert "3 of 3" in comparison["cub"].mismatch


def test_settings_that_come_to_the_same_run_once():
    comparison = compare_accelerators(
        setting, settings=["", "CUB", "cub,cub", " cub "], check=False, **QUICK
    )
    assert list(comparison.verdict) == ["cub"]
    (note,) = (note for note in comparison.notes if note.code == "repeated-setting")
    assert "'cub,cub', ' cub '" in note.message


def test_without_a_gpu_the_note_says_so():
    comparison = compare_accelerators(setting, settings=["", "cub"], check=False, **QUICK)
    assert "no-accelerators" in codes(comparison)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": ["", "foo"]}, "'foo' is unknown"),
        ({"settings": ["cub"]}, "at least two"),
        ({"settings": ["cub", "CUB"]}, "at least two"),
        ({"settings": "cub,cutensor"}, "list of strings"),
        ({"settings": ["", 3]}, "by name"),
        ({"isolate": "maybe"}, "isolate"),
        ({"n_blocks": 1}, "n_blocks"),
        ({"check": 1}, "check"),
        ({"args": 3}, "args"),
    ],
)
def test_arguments_are_checked_before_anything_runs(options, message):
    with pytest.raises(ArgumentError, match=message):
        compare_accelerators(pytest.fail, **{"settings": ["", "cub"], **options})


def test_what_cannot_travel_is_an_error_of_the_caller():
    with pytest.raises(ArgumentError, match="can't be sent to another process"):
        compare_accelerators(len, (sys._getframe(),), settings=["", "cub"], isolate=True)


def test_without_cloudpickle(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(MissingExtraError, match=r"gpubench\[isolate\]"):
        compare_accelerators(setting, settings=["", "cub"], isolate=True)


def test_a_return_value_that_cannot_travel():
    comparison = compare_accelerators(lambda: sys._getframe(), settings=["", "cub"], **QUICK)
    (note,) = (note for note in comparison.notes if note.code == "not-checked")
    assert "none's can't be sent back" in note.message
    assert comparison.results["none"].cpu.n > 0


def test_an_instance_of_the_main_modules_class_can_be_checked():
    class Pair:
        def __init__(self, first):
            self.first = first

        def __eq__(self, other):
            return self.first == other.first

        __hash__ = None

    Pair.__module__ = "__main__"
    comparison = compare_accelerators(lambda: Pair(1), settings=["", "cub"], **QUICK)
    assert "not-checked" not in codes(comparison)
    assert comparison["cub"].mismatch == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_and_left_holds_nobody_up():
    def leave_a_child():
        if not hasattr(os, "_left"):
            os._left = True
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)

    begin = time.perf_counter()
    compare_accelerators(leave_a_child, settings=["", "cub"], check=False, **QUICK)
    assert time.perf_counter() - begin < 30
