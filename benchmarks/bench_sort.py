"""Sorting and searching."""

from .arrays import ON_GPU, random, xp


class Sort:
    params = (10**5, 10**7) if ON_GPU else (10**3, 10**4)
    param_names = ("n",)

    def setup(self, n):
        self.a = random(n)
        self.sorted = xp.sort(self.a)

    def gputime_sort(self, n):
        xp.sort(self.a)

    def gputime_argsort(self, n):
        xp.argsort(self.a)

    def gputime_searchsorted(self, n):
        xp.searchsorted(self.sorted, self.a)
