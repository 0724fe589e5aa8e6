"""Fourier transforms."""

from .arrays import ON_GPU, random, xp


class Transform:
    params = (2**16, 2**24) if ON_GPU else (2**8, 2**14)
    param_names = ("n",)

    def setup(self, n):
        self.a = random(n)
        self.z = self.a.astype("complex64")
        self.image = self.z.reshape(2 ** (n.bit_length() // 2), -1)

    def gputime_fft(self, n):
        xp.fft.fft(self.z)

    def gputime_rfft(self, n):
        xp.fft.rfft(self.a)

    def gputime_fft2(self, n):
        xp.fft.fft2(self.image)
