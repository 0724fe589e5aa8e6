"""The result of a sweep: what was measured, and ways to show it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpubench.arguments import text
from gpubench.notes import Note
from gpubench.render import sweep as render
from gpubench.sweeps import frame
from gpubench.sweeps.cells import cell
from gpubench.sweeps.measurement import Measurement
from gpubench.sweeps.metrics import Declared, Derive, checked_declared, checked_derive
from gpubench.sweeps.normalization import Against, checked_against
from gpubench.sweeps.plain import measurement_to_dict
from gpubench.sweeps.roofline import GivenPeaks, checked_peaks
from gpubench.sweeps.rows import Row, remarks, rows_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SweepResult:
    """What a sweep measured. Printed, it is a table and the notes.

    What is derived is computed when it is asked for, so ``dataclasses.replace(result,
    derive=...)``, and likewise for `flops`, `bytes`, `normalize_against` and `peaks`, look at
    the same measurements in another way.

    Attributes
    ----------
    name : str
        The function's.
    parameters : tuple of str
        Names of the function's parameters, in order.
    measurements : tuple of Measurement
        One for each region in each configuration, and one for each configuration that failed.
    derive : mapping of str to callable
        Functions by the name of the metric that they compute. One gets seconds, and the values
        of the configuration by the names of its parameters (by position if they are named
        otherwise), and returns a number or (number, unit). It is applied to every sample of the
        busiest GPU's time, or of the CPU's where no GPU was timed.
    flops, bytes : float, callable, mapping or None
        Floating-point operations, and bytes that are read and written, in one run of the
        function: a number, or a function of the configuration; or a mapping that has either for
        the names of regions.
    normalize_against : str, mapping or None
        The baseline: the name of a region; or values of parameters, such as ``{"dtype": "fp32"}``,
        for the configuration that differs in nothing else.
    peaks : Peaks, mapping or None
        What the device can do at most; or a mapping that has it for the names of regions, whose
        work may be done by different units.
    environment : mapping
        The machine and the software, as plain JSON values.
    notes : tuple of Note
        What the sweep as a whole has to say, in addition to the notes of each measurement.

    Raises
    ------
    ArgumentError
        If what is to be derived, declared or normalized against has the wrong form; the message
        names it.
    """

    name: str
    parameters: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    derive: Derive = dataclasses.field(default_factory=dict)
    flops: Declared = None
    bytes: Declared = None
    normalize_against: Against = None
    peaks: GivenPeaks = None
    environment: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        parameters = tuple(self.parameters)
        values = {
            "name": text("name", self.name),
            "parameters": parameters,
            "measurements": tuple(self.measurements),
            "derive": checked_derive(self.derive),
            "flops": checked_declared("flops", self.flops),
            "bytes": checked_declared("bytes", self.bytes),
            "normalize_against": checked_against(self.normalize_against, parameters),
            "peaks": checked_peaks(self.peaks),
            "environment": dict(self.environment),
            "notes": tuple(self.notes),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Each measurement with its metrics, in their order."""
        return rows_of(self)

    @cached_property
    def remarks(self) -> tuple[Note, ...]:
        """What a reader should know of what was derived, declared and normalized."""
        return remarks(self)

    def __str__(self) -> str:
        return render.text(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {render.heading(self)}>"

    def _repr_html_(self) -> str:
        return render.html(self)

    def to_markdown(self) -> str:
        """Return the table that is printed as a table of Markdown."""
        return render.table(self, "github")

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row for each metric of each measurement, and for each failure.

        Returns
        -------
        pandas.DataFrame
            See `gpubench.sweeps.long_table` for the columns.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        return frame.to_dataframe(self)

    def to_csv(self, path: str | PathLike[str], samples: bool = False) -> None:
        """Write the rows of `to_dataframe`, or a row for each sample, to a file.

        Parameters
        ----------
        path : str or path-like
            What is there is replaced.
        samples : bool
            Whether each sample of each metric has a row, with the columns region, those of the
            configuration, metric, unit, baseline, device, sample (from 0), value and throttled.

        Raises
        ------
        OSError
            If the file can't be written.
        """
        frame.to_csv(self, path, samples)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but functions as plain values; None where something is unknown.

        Returns
        -------
        dict
            Each of ``measurements`` holds its configuration, its ``result`` with the raw samples,
            and the statistics of its ``metrics``.
        """
        return {
            "name": self.name,
            "parameters": list(self.parameters),
            "derive": list(self.derive),
            "normalize_against": _against(self.normalize_against),
            "peaks": _peaks(self.peaks),
            "environment": dict(self.environment),
            "notes": [dataclasses.asdict(note) for note in (*self.notes, *self.remarks)],
            "measurements": [_row_dict(row) for row in self.rows],
        }

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON: what is unknown is null, never NaN."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def plot(
        self,
        x: str | None = None,
        y: str | None = None,
        hue: str | None = None,
        row: str | None = None,
        col: str | None = None,
        kind: str = "line",
        log: bool | str | None = None,
    ) -> Figure:
        """Draw a metric's median with its 95 % interval, or its range where that is unknown.

        Parameters
        ----------
        x, hue, row, col : str or None
            What decides the place along the axis, the colour, and the panel: a parameter,
            ``"region"`` or ``"device"``. Unless given, `x` is the first parameter with numbers,
            of those that vary, else the first that varies, else the region; `hue` is the region,
            if there are several. Whatever else varies and has no place joins `hue`. In a heat map,
            `hue` decides the line.
        y : str or None
            A metric: the first that was derived or declared unless given, else the GPU time, else
            the CPU time.
        kind : {"line", "bar", "heatmap"}
            How to draw it.
        log : bool, {"x", "y"} or None
            Which axes are logarithmic: both, neither, or one. If not given, the x axis of lines is
            if its values are powers of two, and then the y axis if its values span more than two
            decades.

        Returns
        -------
        matplotlib.figure.Figure
            To be saved with ``savefig``; nothing is shown.

        Raises
        ------
        ArgumentError
            If a name or kind is unknown, or a logarithmic axis would have to show zero, a
            negative number or a text.
        MissingExtraError
            If matplotlib is not installed.
        """
        from gpubench.render.plot import figure

        return figure(self, {"x": x, "hue": hue, "row": row, "col": col}, y, kind, log)


def _against(against: Against) -> Any:
    if isinstance(against, Mapping):
        return {name: cell(value) for name, value in against.items()}
    return against


def _peaks(peaks: GivenPeaks) -> Any:
    if isinstance(peaks, Mapping):
        return {region: dataclasses.asdict(each) for region, each in peaks.items()}
    return dataclasses.asdict(peaks) if peaks else None


def _row_dict(row: Row) -> dict[str, Any]:
    return {
        **measurement_to_dict(row.measurement),
        "metrics": [
            {
                "name": metric.name,
                "unit": metric.unit,
                "device": metric.device,
                "baseline": metric.baseline,
                "problem": metric.problem,
                "statistics": metric.statistics.to_dict() if metric.statistics else None,
            }
            for metric in row.metrics
        ],
        "roofline": str(row.roofline) if row.roofline else None,
    }
