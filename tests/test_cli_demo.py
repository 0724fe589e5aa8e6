"""``gpubench demo``."""

import json
import re
import sys
from types import SimpleNamespace

import pytest

from gpubench.cli import main


@pytest.fixture
def quick(monkeypatch):
    """Adaptive runs that are content with little."""
    monkeypatch.setattr("gpubench.measure.ADAPTIVE_DURATION", 0.02)
    monkeypatch.setattr("gpubench.session._SETTLE_LIMIT", 0.02)


def demo(capsys):
    """Run the demo and return its paragraphs."""
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def rows(text):
    """The tables' rows below their rules: name, number of samples, method."""
    return re.findall(r"^(\w+) +(\d+) +(host|events|gated|graph)\b", text, re.MULTILINE)


class TestDemo:
    def test_without_cupy(self, quick, no_cupy, capsys):
        out = demo(capsys)
        assert out.startswith("sqrt(sum(a**2, axis=-1)) on a 256 x 1024 array of float32\n")
        assert "No GPU found: CuPy is not installed" in out
        host, simulated = out.split("On a SIMULATED GPU")
        assert [(name, method) for name, _, method in rows(host)] == [("NumPy", "host")]
        assert [(name, method) for name, _, method in rows(simulated)] == [
            ("simulated", method) for method in ("gated", "graph", "events", "host")
        ]
        assert "nothing is computed" in simulated

    def test_table_histogram_and_notes(self, quick, no_cupy, capsys):
        out = demo(capsys)
        host, simulated = out.split("On a SIMULATED GPU")
        for part in (host, simulated):
            assert re.search(r"^name +n +method +CPU median +CPU std", part, re.MULTILINE)
            assert re.search("[▁▂▃▄▅▆▇█]", part)
        assert "GPU-0 median" in simulated
        assert re.findall(r"^  (\w+)  +(?:the host's|GPU) time ", out, re.MULTILINE) == [
            "gated",
            "graph",
            "events",
            "host",
        ]
        assert "GPU-0" not in host
        assert "! no-gpu: No GPU found" in host
        assert "! near-floor: The GPU time" in simulated

    def test_with_cupy_and_no_driver(self, quick, fake_cuda, capsys):
        fake_cuda.driver_version = 0
        out = demo(capsys)
        assert "No GPU found: there is no NVIDIA driver; run gpubench info" in out
        assert "SIMULATED" in out

    def test_on_a_gpu(self, quick, fake_cuda, monkeypatch, capsys):
        class Array:
            def __pow__(self, exponent):
                fake_cuda.work(100e-6)
                return self

        def work(array, axis=None):
            fake_cuda.work(100e-6)
            return array

        class Generator:
            def random(self, shape, dtype):
                assert (shape, dtype.__name__) == ((256, 1024), "float32")
                return Array()

        cupy = sys.modules["cupy"]
        cupy.sqrt = cupy.sum = work
        cupy.random = SimpleNamespace(default_rng=lambda seed: Generator())
        out = demo(capsys)
        assert "On Fake \N{REPLACEMENT CHARACTER} GPU, with CuPy:" in out
        assert [(name, method) for name, _, method in rows(out)] == [
            ("CuPy", method) for method in ("gated", "graph", "events", "host")
        ]
        assert "300 us" in out
        assert "SIMULATED" not in out

    def test_as_json(self, quick, no_cupy, capsys):
        assert main(["demo", "--json"]) == 0
        host, simulated = json.loads(capsys.readouterr().out)
        assert host["heading"].startswith("No GPU found: CuPy is not installed")
        assert [result["name"] for result in host["results"]] == ["NumPy"]
        assert [result["method"] for result in simulated["results"]] == [
            "gated",
            "graph",
            "events",
            "host",
        ]
