"""gpubench inside other tools."""
