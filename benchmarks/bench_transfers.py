"""Copies between host and device, timed on the host until they are done."""

import numpy as np

from .arrays import ON_GPU, xp


class Transfer:
    params = (10**4, 10**7) if ON_GPU else (10**3, 10**5)
    param_names = ("n",)
    repeat = 5

    def setup(self, n):
        self.host = np.random.default_rng(0).random(n, dtype="float32")
        self.device = xp.asarray(self.host)

    def time_to_device(self, n):
        xp.array(self.host)

    def time_to_host(self, n):
        self.device.get() if ON_GPU else self.device.copy()
