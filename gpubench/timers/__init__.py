"""One module for each way to time one call, all behind the protocol in `base`."""
