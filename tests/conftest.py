"""Fixtures shared by the tests that need no GPU."""

import sys

import pytest
from fake_cupy import FakeCuda

import gpubench
from gpubench.devices import cuda


@pytest.fixture
def gpu():
    """A simulated GPU without jitter, current while the test runs."""
    with gpubench.simulated_gpu(jitter=0) as simulated:
        yield simulated


@pytest.fixture
def no_cupy(monkeypatch):
    """A machine without CuPy."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("cupy", "cupyx")]:
        monkeypatch.delitem(sys.modules, name)  # some import CuPy as they are looked at
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.fixture
def fake_cuda(monkeypatch):
    """A machine with CuPy and a CUDA device, all of it fake."""
    fake = FakeCuda()
    fake.install(monkeypatch)
    monkeypatch.delitem(sys.modules, "torch", raising=False)  # knows of the real devices
    cuda._platform.cache_clear()
    yield fake
    cuda._platform.cache_clear()
