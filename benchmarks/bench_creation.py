"""New arrays."""

from .arrays import SIZES, random, xp


class Creation:
    params = SIZES
    param_names = ("n",)

    def gputime_zeros(self, n):
        xp.zeros(n, "float32")

    def gputime_full(self, n):
        xp.full(n, 2.5, "float32")

    def gputime_arange(self, n):
        xp.arange(n, dtype="float32")

    def gputime_linspace(self, n):
        xp.linspace(0, 1, n, dtype="float32")


class Random:
    params = SIZES
    param_names = ("n",)

    def setup(self, n):
        self.rng = xp.random.default_rng(0)

    def gputime_random(self, n):
        self.rng.random(n, dtype="float32")

    def gputime_standard_normal(self, n):
        self.rng.standard_normal(n, dtype="float32")


class Copies:
    params = SIZES
    param_names = ("n",)

    def setup(self, n):
        self.a = random(n)

    def gputime_copy(self, n):
        self.a.copy()

    def gputime_astype(self, n):
        self.a.astype("float64")
