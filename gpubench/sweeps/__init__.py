"""Sweeps: a function, or regions of it, measured in many configurations."""
