"""What keeps the GPUs from their work, according to a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from gpubench.activity.diagnosis.evidence import Evidence
from gpubench.activity.diagnosis.findings import Finding
from gpubench.activity.diagnosis.rules import RULES
from gpubench.activity.recording import Recording

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter


@dataclass(frozen=True, repr=False)
class Diagnosis(Sequence[Finding]):
    """What was found, the costliest first; empty if nothing was.

    That records were dropped comes before all else, and what could not be looked at last.
    Findings may share time: their shares need not add up to what could be gained.

    Attributes
    ----------
    findings : tuple of Finding
        As the diagnosis itself lists them.
    """

    findings: tuple[Finding, ...]

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        listed = ", ".join(f"{each.code} {each.share:.1%}" for each in self)
        return f"<{type(self).__name__}: {listed or 'nothing found'}>"

    def __str__(self) -> str:
        if not self:
            return "Nothing was found that keeps the GPU from its work."
        return "\n\n".join(map(str, self))

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        for number, line in enumerate(str(self).splitlines()):
            if number:
                printer.break_()
            printer.text(line)


def diagnose(recording: Recording) -> Diagnosis:
    """Apply every rule in `RULES` to a recording.

    Parameters
    ----------
    recording : Recording
        May hold no records at all.

    Returns
    -------
    Diagnosis
        Printed, it says what was seen, what it costs, and what to do about it.
    """
    evidence = Evidence(recording)
    found = [finding for rule in RULES if (finding := rule(evidence)) is not None]
    found.sort(key=lambda finding: (finding.code != "dropped-records", -finding.share))
    return Diagnosis(tuple(found))
