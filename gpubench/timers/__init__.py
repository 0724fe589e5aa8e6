"""One module for each way to time one call, all behind the protocol in `base`."""

METHODS = ("auto", "host", "events", "gated", "graph", "cupti")
"""What can be asked for; ``"auto"`` is ``"gated"`` where there is a device, else ``"host"``."""
