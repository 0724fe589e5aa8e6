"""The progress bar: when there is one, and where."""

import io
import sys

import numpy as np
import pytest

import gpubench
from gpubench.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(progress, total=3):
    """What a bar writes to a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", Terminal())
        with progress_bar(progress, total, "my run") as advance:
            for _ in range(3):
                advance(1)
        return sys.stderr.getvalue()


@pytest.mark.parametrize("total", [3, None])
@pytest.mark.parametrize("progress", [True, np.True_])
def test_asked_for_it_is_there_at_once(progress, total):
    assert "my run" in shown(progress, total)


@pytest.mark.parametrize("progress", [False, np.False_])
def test_unwanted_it_never_is(progress):
    assert shown(progress) == ""


def test_left_open_it_waits_two_seconds():
    assert "my run" not in shown(None)


def test_left_open_it_appears_on_a_terminal_in_a_long_run(monkeypatch):
    monkeypatch.setattr("gpubench.progress._DELAY", 0.0)
    assert "my run" in shown(None)


def test_left_open_it_is_not_written_to_a_file(monkeypatch, capsys):
    monkeypatch.setattr("gpubench.progress._DELAY", 0.0)
    with progress_bar(None, 3, "my run") as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [0, 1, "yes", [], np.array([True])])
def test_other_values_are_refused(progress):
    with pytest.raises(gpubench.ArgumentError, match="progress must be True, False or None, got"):
        shown(progress)
