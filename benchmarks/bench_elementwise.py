"""Functions of each element."""

from .arrays import SIZES, random, xp


class Elementwise:
    params = SIZES
    param_names = ("n",)

    def setup(self, n):
        self.a, self.b = random(n), random(n)
        self.out = xp.empty_like(self.a)

    def gputime_add(self, n):
        xp.add(self.a, self.b, out=self.out)

    def gputime_sqrt(self, n):
        xp.sqrt(self.a, out=self.out)

    def gputime_exp(self, n):
        xp.exp(self.a, out=self.out)

    def gputime_where(self, n):
        xp.where(self.a > 0.5, self.a, self.b)

    def gputime_polynomial(self, n):
        (self.a * self.b + 1) * self.a - 2  # four kernels, unless fused


class Broadcast:
    params = ((0, 1),)
    param_names = ("axis",)

    def setup(self, axis):
        side = int(SIZES[1] ** 0.5)
        self.a = random(side, side)
        self.b = xp.expand_dims(random(side), axis)

    def gputime_add(self, axis):
        self.a + self.b
