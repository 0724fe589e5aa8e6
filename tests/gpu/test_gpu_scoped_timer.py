"""`ScopedTimer` and the timing functions on a real GPU, for CuPy's and PyTorch's work."""

import pytest

from gpubench import TIMING_ALL, ScopedTimer, timing_begin, timing_end

cp = pytest.importorskip("cupy")
work = pytest.importorskip("work")


def test_the_gpus_time_without_waiting_for_it():
    work.spin(1e-6)
    with ScopedTimer("spin", print=False) as timer:
        work.spin(10e-3)
    assert timer.elapsed < 5
    assert timer.gpu_elapsed == pytest.approx(10, rel=0.02)


def test_synchronized_both_clocks_agree(capsys):
    work.spin(1e-6)
    with ScopedTimer("spin", synchronize=True) as timer:
        work.spin(10e-3)
    assert timer.elapsed == pytest.approx(timer.gpu_elapsed, rel=0.05)
    assert "spin took 10." in capsys.readouterr().out


def test_work_on_pytorchs_stream_counts():
    torch = pytest.importorskip("torch")
    square = torch.rand((4096, 4096), device="cuda")
    square @ square
    with (
        torch.cuda.stream(torch.cuda.Stream()),
        ScopedTimer("product", print=False, synchronize=True) as timer,
    ):
        square @ square
    assert 1 < timer.gpu_elapsed < 10


def test_the_list_of_activities(capsys):
    pytest.importorskip("cupti")
    a = cp.ones(10**6, "f4")
    cp.sqrt(a).get()
    with ScopedTimer("step", activity_filter=TIMING_ALL) as timer:
        cp.sqrt(a).get()
    names = [result.name for result in timer.timing_results]
    assert names == ["cupy_sqrt__float32_float32", "memcpy DtoH"]
    printed = capsys.readouterr().out
    assert all(name in printed for name in names)
    assert "step took" in printed


def test_between_two_places():
    pytest.importorskip("cupti")
    work.spin(1e-6)
    timing_begin()
    work.spin(1e-3)
    (result,) = timing_end()
    assert result.name == "spin"
    assert result.elapsed == pytest.approx(1, rel=0.02)
