"""Imports in a fresh interpreter."""

from .arrays import ON_GPU


def timeraw_gpubench():
    return "import gpubench"


def timeraw_benchmark():
    return "from gpubench import benchmark"


def timeraw_cupy():
    return "import cupy"


def setup_cupy():
    if not ON_GPU:
        raise NotImplementedError("there is no GPU")


timeraw_cupy.setup = setup_cupy
