"""Peaks, the share of them, and the verdict."""

import math
from types import SimpleNamespace

import pytest
from example_sweeps import measured, metric, precision, swept

from gpubench.devices.base import DeviceProperties
from gpubench.errors import ArgumentError
from gpubench.sweeps.roofline import Hardware, Peaks, device_peaks

H100 = Hardware(
    compute_capability="9.0",
    n_multiprocessors=132,
    sm_clock=1.98e9,
    memory_clock=2.619e9,
    bus_bits=5120,
)


PEAKS = Peaks(10e12, 1e12)


def verdict(flops=None, moved=None, peaks=PEAKS):
    """What is said of these amounts, done in 10 us."""
    (row,) = swept(measured({"n": 1}), flops=flops, bytes=moved, peaks=peaks).rows
    return str(row.roofline)


def test_peaks_of_a_known_card():
    peaks = H100.peaks()
    assert peaks.flops_per_second == pytest.approx(66.9e12, rel=1e-3)
    assert peaks.bytes_per_second == pytest.approx(3.352e12, rel=1e-3)
    assert peaks.source == "132 SMs x 128 FP32 x 2 x 1.98 GHz; memory 5120 bit x 2 x 2.62 GHz"


def test_an_unknown_architecture_has_no_peak():
    hardware = Hardware(
        compute_capability="99.0", n_multiprocessors=4, sm_clock=1e9, memory_clock=0, bus_bits=0
    )
    assert hardware.peaks() == Peaks(
        None,
        None,
        "FP32 peak unknown (compute capability 99.0, 4 SMs, 1 GHz); "
        "memory peak unknown (the driver doesn't tell clock and width)",
    )


@pytest.fixture
def cuda(fake_cuda):
    """A CUDA runtime that tells the attributes of an H100."""
    attributes = {
        "MultiProcessorCount": 132,
        "ClockRate": 1_980_000,
        "MemoryClockRate": 2_619_000,
        "GlobalMemoryBusWidth": 5120,
    }
    runtime = fake_cuda.runtime
    for name in attributes:
        setattr(runtime, f"cudaDevAttr{name}", name)
    runtime.deviceGetAttribute = lambda name, device: attributes[name]
    return runtime


CUDA = SimpleNamespace(name="cuda")
DEVICE = SimpleNamespace(id=0, properties=DeviceProperties("H100", compute_capability="9.0"))


def test_the_driver_tells_what_peaks_are_computed_from(cuda):
    assert device_peaks(CUDA, [DEVICE]) == H100.peaks()


def test_several_devices_can_do_more(cuda):
    both = device_peaks(CUDA, [DEVICE, DEVICE])
    assert both.flops_per_second == 2 * H100.peaks().flops_per_second
    assert both.bytes_per_second == 2 * H100.peaks().bytes_per_second
    assert both.source == f"{H100.peaks().source} + {H100.peaks().source}"


def test_one_unknown_device_makes_the_sum_unknown(cuda):
    other = SimpleNamespace(id=1, properties=DeviceProperties("?", compute_capability="99.0"))
    both = device_peaks(CUDA, [DEVICE, other])
    assert both.flops_per_second is None
    assert both.bytes_per_second == 2 * H100.peaks().bytes_per_second


def test_capabilities_of_another_vendor_mean_nothing(cuda):
    cuda.is_hip = True
    assert device_peaks(CUDA, [DEVICE]).flops_per_second is None


def test_a_runtime_that_does_not_tell(cuda):
    def refuses(name, device):
        raise cuda.CUDARuntimeError("cudaErrorInvalidValue: invalid argument")

    cuda.deviceGetAttribute = refuses
    peaks = device_peaks(CUDA, [DEVICE])
    assert peaks.flops_per_second is None
    assert peaks.source == (
        "the CUDA runtime doesn't tell: cudaErrorInvalidValue: invalid argument"
    )


def test_what_has_no_peaks_says_why(gpu, no_cupy):
    assert device_peaks(gpu, []) == Peaks(source="no GPU was timed")
    assert device_peaks(gpu, [gpu.device(0)]) == Peaks(source="a simulated device has none")


@pytest.mark.parametrize("peak", [0, -1, math.nan, math.inf, "fast"])
def test_a_peak_is_a_number_above_zero(peak):
    with pytest.raises(ArgumentError, match="bytes_per_second"):
        Peaks(1e12, peak)


@pytest.mark.parametrize("peaks", [4.8e12, (1, 2), {"f": 3}, {1: Peaks()}])
def test_peaks_have_a_type(peaks):
    with pytest.raises(ArgumentError, match="peaks must be a Peaks, a mapping"):
        precision(peaks=peaks)


@pytest.mark.parametrize(
    ("flops", "moved", "expected"),
    [
        (1e6, 7.8e6, "memory-bound: 78 % of 1 TB/s"),
        (None, 7.8e6, "memory-bound: 78 % of 1 TB/s"),
        (90e6, 7.8e6, "compute-bound: 90 % of 10 TFLOP/s"),
        (90e6, None, "compute-bound: 90 % of 10 TFLOP/s"),
        (1e6, 0.12e6, "far from the memory ceiling: 1.2 % of 1 TB/s"),
        (2e6, 0.12e6, "far from the compute ceiling: 2 % of 10 TFLOP/s"),
        (1e6, 5.9e6, "far from the memory ceiling: 59 % of 1 TB/s"),
        (400e6, 1e6, "above the compute ceiling: 400 % of 10 TFLOP/s"),
        (None, 0, "far from the memory ceiling: 0 % of 1 TB/s"),
    ],
)
def test_the_nearest_ceiling(flops, moved, expected):
    assert verdict(flops, moved) == expected


def test_a_ceiling_that_is_not_known_is_none():
    assert verdict(90e6, 7.8e6, Peaks(None, 1e12)) == "memory-bound: 78 % of 1 TB/s"
    assert verdict(90e6, 7.8e6, Peaks()) == "None"
    assert verdict(90e6, 7.8e6, None) == "None"
    assert verdict(None, None) == "None"


def test_small_peaks_are_readable():
    assert verdict(None, 7.8, Peaks(None, 1e6)) == "memory-bound: 78 % of 1 MB/s"
    assert verdict(None, 7.8e-3, Peaks(None, 1e3)) == "memory-bound: 78 % of 1e+03 B/s"


def test_the_share_has_an_interval():
    (row,) = swept(measured({"n": 1}), bytes=5e6, peaks=Peaks(None, 1e12)).rows
    share = metric(row, "peak_share")
    assert (share.unit, share.device) == ("%", 0)
    assert share.statistics.median == pytest.approx(50)
    assert share.statistics.ci95 == pytest.approx((50 / 1.03, 50 / 0.97))


def test_regions_may_have_peaks_of_their_own():
    sweep = precision(
        flops=8e6, peaks={"fp32": Peaks(1e12, source="a"), "fp16": Peaks(4e12, source="b")}
    )
    shares = [metric(row, "peak_share").statistics.median for row in sweep.rows[:2]]
    assert shares == pytest.approx([10, 10])


def test_an_unknown_peak_is_said_with_its_reason():
    sweep = precision(flops=8e6, peaks={"fp32": Peaks(1e12)})
    (note,) = sweep.remarks
    assert str(note) == (
        "no-peak: The share of the device's peak isn't known for 2 of 4 measurements: no peaks are "
        "given for fp16. Give peaks=Peaks(flops_per_second, bytes_per_second)."
    )
    assert precision(bytes=1).remarks[0].code == "no-peak"
    assert precision().remarks == ()


def test_more_than_the_peak_is_said():
    (note,) = precision(flops=80e6, peaks=Peaks(1e12, source="from a data sheet")).remarks
    assert note.code == "above-peak"
    assert note.message == "1 of 4 measurements did more than the peak (from a data sheet)."
