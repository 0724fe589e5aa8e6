"""Reductions over all of an array, and along each of its axes."""

from .arrays import SIZES, random


class Reduction:
    params = (("sum", "max", "argmax", "mean", "prod"), (None, 0, 1))
    param_names = ("function", "axis")

    def setup(self, function, axis):
        side = int(SIZES[1] ** 0.5)
        self.call = getattr(random(side, side), function)

    def gputime_reduce(self, function, axis):
        self.call(axis=axis)


class Scan:
    params = SIZES
    param_names = ("n",)

    def setup(self, n):
        self.a = random(n)

    def gputime_cumsum(self, n):
        self.a.cumsum()
