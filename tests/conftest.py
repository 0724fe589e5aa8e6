"""Fixtures shared by the tests that need no GPU."""

import sys

import pytest

import gpubench


@pytest.fixture
def gpu():
    """A simulated GPU without jitter, current while the test runs."""
    with gpubench.simulated_gpu(jitter=0) as simulated:
        yield simulated


@pytest.fixture
def no_cupy(monkeypatch):
    """A machine without CuPy."""
    monkeypatch.setitem(sys.modules, "cupy", None)
