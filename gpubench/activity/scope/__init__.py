"""Timers of blocks, as NVIDIA Warp has them, for the work of any framework."""
