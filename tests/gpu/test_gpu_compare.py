"""CuPy's back ends compared on a real GPU."""

import pytest

import gpubench
from gpubench import compare, compare_accelerators

cp = pytest.importorskip("cupy")
work = pytest.importorskip("work")


@pytest.fixture(scope="module")
def cube():
    return cp.random.default_rng(0).random((128, 128, 128), dtype="f4")


def test_cub_sums_faster_and_alike(cube):
    comparison = compare_accelerators(cube.sum, max_duration=5)
    assert comparison.verdict["cub"] == "faster"
    assert comparison.ratio["cub"] < 0.1
    assert comparison["none"].back_end == "CuPy"
    assert "cub" in comparison["cub"].back_end.split("+")
    assert comparison["cub,cutensor"].status in ("ok", "unavailable")


def test_in_workers_too(cube):
    pytest.importorskip("cloudpickle")
    comparison = compare_accelerators(
        lambda a: a.sum(), (cube,), settings=["", "cub", "cutensor"], isolate=True, max_duration=5
    )
    assert comparison.verdict["cub"] == "faster"
    assert "cub" in comparison["cub"].back_end.split("+")
    missing = "cutensor" in gpubench.accelerators().unavailable
    assert comparison["cutensor"].status == "unavailable" or not missing


@pytest.mark.parametrize("name", ["matmul", "add"])
def test_where_a_setting_does_not_matter(name):
    a = cp.ones((512, 512), "f4")
    comparison = compare_accelerators(
        getattr(cp, name), (a, a), settings=["", "cub"], isolate=False, max_duration=2
    )
    if comparison["cub"].kernels:
        assert comparison.verdict["cub"] == "no effect"


def test_settings_are_restored(cube):
    before = gpubench.accelerators()
    compare_accelerators(cube.sum, settings=["", "cub"], isolate=False, max_duration=1)
    assert gpubench.accelerators() == before


def test_kernels_of_known_length():
    comparison = compare(
        {"100": lambda: work.spin(100e-6), "105": lambda: work.spin(105e-6)}, max_duration=3
    )
    assert comparison.verdict["105"] == "slower"
    assert comparison.ratio["105"] == pytest.approx(1.05, abs=0.01)


def test_a_call_and_itself():
    comparison = compare({"a": lambda: work.spin(100e-6), "b": lambda: work.spin(100e-6)})
    assert comparison.verdict["b"] == "same"


def test_what_compiled_is_in_the_result():
    kernel = cp.ElementwiseKernel("float32 x", "float32 y", "y = x * 7.125f", "times_seven")
    a = cp.ones(1000, "f4")
    result = gpubench.benchmark(kernel, (a,), n_repeat=20)
    assert any("times_seven" in name for c in result.compilations for name in c.names)
    assert 0 < result.first_call_compile_time <= result.first_call_time
