"""Parts of arrays, read and written."""

from .arrays import SIZES, indices, random


class Indexing:
    params = SIZES
    param_names = ("n",)

    def setup(self, n):
        self.a = random(n)
        self.places = indices(n // 10, n)
        self.values = random(n // 10)
        self.mask = self.a > 0.5

    def gputime_take(self, n):
        self.a.take(self.places)

    def gputime_put(self, n):
        self.a[self.places] = self.values

    def gputime_every_second(self, n):
        self.a[::2].copy()

    def gputime_masked_fill(self, n):
        self.a[self.mask] = 0
