"""How near a measurement comes to what its device can do.

The model is that of Williams, Waterman and Patterson, "Roofline: an insightful visual performance
model", Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.arguments import finite_number
from gpubench.devices.base import Device, Platform
from gpubench.errors import ArgumentError
from gpubench.sweeps.metrics import PEAK_SHARE, RATE_UNITS, Metric

NEAR = 60.0
"""Percent of a ceiling from which on it counts as the limit. Below 60 % of both, Nsight Compute's
"speed of light" rule takes latency to be the limit."""

ABOVE = 105.0
"""Percent of a ceiling from which on it can't be the right one; clocks are known to a few."""

_FP32_RESULTS_PER_CLOCK = {
    "5.0": 128, "5.2": 128, "5.3": 128, "6.0": 64, "6.1": 128, "6.2": 128, "7.0": 64, "7.2": 64,
    "7.5": 64, "8.0": 64, "8.6": 128, "8.7": 128, "8.9": 128, "9.0": 128, "10.0": 128, "10.1": 128,
    "10.3": 128, "11.0": 128, "12.0": 128, "12.1": 128,
}  # fmt: skip
"""FP32 additions, multiplications or multiply-adds of one multiprocessor in one clock, by compute
capability: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions"; those that
it leaves out, from the cores per multiprocessor in the CUDA samples' ``helper_cuda.h``."""


@dataclass(frozen=True)
class Peaks:
    """What a device can do at most: the two ceilings of a roofline.

    Attributes
    ----------
    flops_per_second : float or None
        Floating-point operations in a second, of the kind that is counted; None if unknown.
    bytes_per_second : float or None
        Bytes that the memory moves in a second; None if unknown.
    source : str
        Where they come from, or why they are unknown.

    Raises
    ------
    ArgumentError
        If a peak isn't a finite number above zero.
    """

    flops_per_second: float | None = None
    bytes_per_second: float | None = None
    source: str = "given"

    def __post_init__(self) -> None:
        for name in ("flops_per_second", "bytes_per_second"):
            peak = getattr(self, name)
            if peak is not None:
                object.__setattr__(self, name, finite_number(name, peak, above=0))


GivenPeaks = Peaks | Mapping[str, Peaks] | None
"""Those of all regions, or of each by its name."""


def checked_peaks(peaks: GivenPeaks) -> GivenPeaks:
    """Return what was given.

    Raises
    ------
    ArgumentError
        If it is none of the forms.
    """
    if peaks is None or isinstance(peaks, Peaks):
        return peaks
    if not isinstance(peaks, Mapping) or not all(
        isinstance(region, str) and isinstance(each, Peaks) for region, each in peaks.items()
    ):
        raise ArgumentError(
            f"peaks must be a Peaks, a mapping of regions' names to Peaks, or None; got {peaks!r}"
        )
    return dict(peaks)


def peaks_of(region: str, peaks: GivenPeaks) -> Peaks:
    """Return the peaks of a region; without values, and with the reason, if there are none."""
    if isinstance(peaks, Mapping):
        return peaks.get(region, Peaks(source=f"no peaks are given for {region}"))
    return peaks or Peaks(source="no peaks are given")


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What the peaks of a CUDA device are computed from; zero is unknown.

    Attributes
    ----------
    compute_capability : str
        For example ``"9.0"``.
    n_multiprocessors : int
        How many there are.
    sm_clock, memory_clock : float
        Their highest, in hertz.
    bus_bits : int
        Width of the memory's bus.
    """

    compute_capability: str
    n_multiprocessors: int
    sm_clock: float
    memory_clock: float
    bus_bits: int

    def peaks(self) -> Peaks:
        """Return the peaks of FP32 outside tensor cores, and of the memory.

        FLOP/s are multiprocessors x results per clock x 2 x clock, as a multiply-add is two
        operations. Bytes per second are memory clock x bus width / 8 x 2, as there are two
        transfers per clock (CUDA C++ Best Practices Guide, "Theoretical Bandwidth Calculation").
        The clocks are the highest that the device knows, so that a device that runs at less is
        seen to fall short.
        """
        lanes = _FP32_RESULTS_PER_CLOCK.get(self.compute_capability, 0)
        flops = self.n_multiprocessors * lanes * 2 * self.sm_clock
        moved = self.memory_clock * self.bus_bits / 8 * 2
        sources = (
            f"{self.n_multiprocessors} SMs x {lanes} FP32 x 2 x {self.sm_clock / 1e9:.3g} GHz"
            if flops
            else f"FP32 peak unknown (compute capability {self.compute_capability}, "
            f"{self.n_multiprocessors} SMs, {self.sm_clock / 1e9:.3g} GHz)",
            f"memory {self.bus_bits} bit x 2 x {self.memory_clock / 1e9:.3g} GHz"
            if moved
            else "memory peak unknown (the driver doesn't tell clock and width)",
        )
        return Peaks(flops or None, moved or None, "; ".join(sources))


def device_peaks(used: Platform, devices: Sequence[Device]) -> Peaks:
    """Return the peaks of the devices that are timed, together.

    Parameters
    ----------
    used : Platform
        Theirs.
    devices : sequence of Device
        All that a function may work on.

    Returns
    -------
    Peaks
        Without values where nothing is known; `source` says why.
    """
    if not devices:
        return Peaks(source="no GPU was timed")
    if used.name != "cuda":
        return Peaks(source=f"a {used.name} device has none")
    each = [_cuda_peaks(device) for device in devices]
    return Peaks(
        _sum([peaks.flops_per_second for peaks in each]),
        _sum([peaks.bytes_per_second for peaks in each]),
        " + ".join(peaks.source for peaks in each),
    )


def _cuda_peaks(device: Device) -> Peaks:
    from cupy.cuda import runtime

    def attribute(name: str) -> int:
        return int(runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), device.id))

    try:
        hardware = Hardware(
            # AMD counts compute capabilities of its own, of which some look like NVIDIA's.
            compute_capability="" if runtime.is_hip else device.properties.compute_capability,
            n_multiprocessors=attribute("MultiProcessorCount"),
            sm_clock=attribute("ClockRate") * 1e3,
            memory_clock=attribute("MemoryClockRate") * 1e3,
            bus_bits=attribute("GlobalMemoryBusWidth"),
        )
    except runtime.CUDARuntimeError as error:
        return Peaks(source=f"the CUDA runtime doesn't tell: {error}")
    return hardware.peaks()


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


@dataclass(frozen=True, eq=False)
class Roofline:
    """The ceiling that a measurement comes nearest to.

    Under the lower part of the roof the share of the memory's peak is the larger one, under the
    upper part that of the arithmetic's; so the larger of both tells the ceiling.

    Attributes
    ----------
    ceiling : {"memory", "compute"}
        Which one.
    peak : float
        Where it is, in `unit`.
    unit : str
        ``"B/s"`` or ``"FLOP/s"``.
    share : Metric
        Percent of it that each sample reached.
    """

    ceiling: str
    peak: float
    unit: str
    share: Metric

    @property
    def percent(self) -> float:
        """The median of `share`."""
        return self.share.statistics.median if self.share.statistics else 0.0

    def __str__(self) -> str:
        percent = f"{self.percent:.2g}" if self.percent < 10 else f"{self.percent:.0f}"
        near = f"{percent} % of {_with_prefix(self.peak, self.unit)}"
        if self.percent > ABOVE:
            return f"above the {self.ceiling} ceiling: {near}"
        if self.percent >= NEAR:
            return f"{self.ceiling}-bound: {near}"
        return f"far from the {self.ceiling} ceiling: {near}"


def roofline(flop_rate: Metric | None, bandwidth: Metric | None, peaks: Peaks) -> Roofline | None:
    """Return the ceiling that a measurement comes nearest to.

    Parameters
    ----------
    flop_rate, bandwidth : Metric or None
        In TFLOP/s and GB/s; None where nothing was declared.
    peaks : Peaks
        Of the device.

    Returns
    -------
    Roofline or None
        None if there is no rate of which the peak is known.
    """
    ceilings = [
        Roofline(ceiling, peak, unit, _share(rate, peak))
        for ceiling, rate, peak, unit in (
            ("memory", bandwidth, peaks.bytes_per_second, "B/s"),
            ("compute", flop_rate, peaks.flops_per_second, "FLOP/s"),
        )
        if rate and rate.statistics and peak
    ]
    return max(ceilings, key=lambda each: each.percent, default=None)


def _share(rate: Metric, peak: float) -> Metric:
    _, scale = RATE_UNITS[rate.name]
    return Metric.of(PEAK_SHARE, "%", 100 * rate.samples / (peak / scale), rate.device)


def _with_prefix(value: float, unit: str) -> str:
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
