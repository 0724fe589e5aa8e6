"""Linear algebra."""

from .arrays import ON_GPU, random, xp


class Product:
    params = ((512, 4096) if ON_GPU else (32, 128), ("float32", "float64"))
    param_names = ("n", "dtype")

    def setup(self, n, dtype):
        self.a, self.b = random(n, n, dtype=dtype), random(n, n, dtype=dtype)

    def gputime_matmul(self, n, dtype):
        self.a @ self.b


class Batched:
    def setup(self):
        n = 64 if ON_GPU else 8
        self.a, self.b = random(256, n, n), random(256, n, n)

    def gputime_matmul(self):
        self.a @ self.b

    def gputime_einsum(self):
        xp.einsum("bij,bkj->bik", self.a, self.b)


class Factorization:
    def setup(self):
        n = 1024 if ON_GPU else 64
        a = random(n, n)
        self.a, self.b = a @ a.T + n * xp.eye(n, dtype=a.dtype), random(n)

    def gputime_cholesky(self):
        xp.linalg.cholesky(self.a)

    def gputime_solve(self):
        xp.linalg.solve(self.a, self.b)
