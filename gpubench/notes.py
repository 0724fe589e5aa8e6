"""The diagnoses: what makes a number hard to trust, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """One thing that a reader of a result should know.

    Attributes
    ----------
    code : str
        Names the kind of note, for example ``"near-floor"``; stable.
    message : str
        What was seen, with its figures, in one sentence.
    advice : str
        What to do about it, in one sentence; may be empty.
    """

    code: str
    message: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.message} {self.advice}".rstrip()
