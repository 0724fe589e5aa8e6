"""What ``%load_ext gpubench`` adds to IPython: ``%gpu_timeit`` and its like."""

from gpubench.integrations.ipython.extension import (
    load_ipython_extension,
    unload_ipython_extension,
)

__all__ = ["load_ipython_extension", "unload_ipython_extension"]
