"""Several GPUs: each is timed on its own, and the caller's device comes back."""

import numpy as np
import pytest

from gpubench import ArgumentError, benchmark

cp = pytest.importorskip("cupy")
work = pytest.importorskip("work")

pytestmark = pytest.mark.gpus(2)


def spin_on(device, seconds):
    with cp.cuda.Device(device):
        work.spin(seconds)


def test_work_on_the_other_device_shows_there_alone():
    result = benchmark(spin_on, (1, 100e-6), n_repeat=30, devices=(0, 1))
    assert result.gpu_times.shape == (2, 30)
    assert result.gpu[0].median < 6e-6
    assert 98e-6 < result.gpu[1].median < 108e-6


def test_order_of_devices_is_the_callers():
    result = benchmark(spin_on, (1, 100e-6), n_repeat=10, devices=np.array([1, 0]))
    assert result.devices == (1, 0)
    assert result.gpu[0].median > result.gpu[1].median


def test_current_device_is_the_one_timed():
    with cp.cuda.Device(1):
        result = benchmark(work.spin, (100e-6,), n_repeat=10)
    assert result.devices == (1,)
    assert 98e-6 < result.gpu[0].median < 105e-6


def test_nothing_is_allocated_on_a_device_that_is_not_timed():
    with cp.cuda.Device(0):
        before = cp.cuda.runtime.memGetInfo()[0]
    with cp.cuda.Device(1):
        benchmark(work.spin, (10e-6,), n_repeat=10, devices=(1,), cache="cold")
    with cp.cuda.Device(0):
        assert cp.cuda.runtime.memGetInfo()[0] == before


@pytest.mark.parametrize("fails", [False, True])
def test_the_callers_device_comes_back(fails):
    def wander():
        cp.cuda.runtime.setDevice(1)
        work.spin(10e-6)
        if fails:
            raise KeyError("mine")

    with cp.cuda.Device(0):
        if fails:
            with pytest.raises(KeyError, match="mine"):
                benchmark(wander, n_repeat=5)
        else:
            benchmark(wander, n_repeat=5)
        assert cp.cuda.runtime.getDevice() == 0


def test_side_stream_on_the_other_device():
    def aside():
        with cp.cuda.Device(1), cp.cuda.Stream(non_blocking=True):
            work.spin(100e-6)

    result = benchmark(aside, n_repeat=20, devices=(0, 1))
    assert 98e-6 < result.gpu[1].median < 110e-6
    assert "side-stream" in {note.code for note in result.notes}


def test_device_that_is_not_there():
    with pytest.raises(ArgumentError, match="no GPU 99"):
        benchmark(work.empty, devices=99)
