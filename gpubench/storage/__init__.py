"""Results on disk: one versioned schema of strict JSON, and the files of other tools."""

from gpubench.storage.files import load, save
from gpubench.storage.record import Record, SavedResults

__all__ = ["Record", "SavedResults", "load", "save"]
