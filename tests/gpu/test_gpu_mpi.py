"""Ranks of MPI with a GPU each."""

import json
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("cupy")
pytest.importorskip("mpi4py")

PROGRAM = """
import json, pathlib, sys
import cupy, numpy as np
from mpi4py import MPI
from gpubench import benchmark

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
seen = {}

def keep(name, func, **options):
    result = benchmark(func, n_warmup=10, comm=comm, **options)
    seen[name] = result.to_dict()
    if rank == 0:
        print(name, result, f"imbalance {result.imbalance:.1%}", flush=True)

spin = cupy.RawKernel('''extern "C" __global__ void spin(long long ns) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < ns);
}''', "spin")
work = lambda: spin((1,), (1,), (100_000 * (1 + rank),))
keep("spin", work, n_repeat=50)

def meets():
    work()
    comm.Barrier()
keep("meets", meets, n_repeat=50)

a = cupy.ones(10**6, dtype="float32")
host = np.empty_like(a.get())
def waits():
    comm.Allreduce(a.get(), host)
keep("waits", waits, n_repeat=10)
keep("adaptive", lambda: a * a)
pathlib.Path(sys.argv[1], f"{rank}.json").write_text(json.dumps(seen))
"""


@pytest.mark.gpus(2)
def test_ranks_with_a_gpu_each(tmp_path):
    command = [shutil.which("mpiexec"), "-n", "2", sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    for name in ("spin", "meets"):
        result = first[name]
        assert result["method"] == "gated"
        assert result["gpu"][0]["median_s"] == pytest.approx(200e-6, rel=0.05)
        assert result["ranks"][0]["gpu"][0]["median_s"] == pytest.approx(100e-6, rel=0.05)
        assert result["imbalance"] == pytest.approx(1 / 3, rel=0.1)
        codes = [note["code"] for note in result["notes"]]
        assert "imbalanced" in codes
        assert "shared-gpu" not in codes
    assert [rank["method"] for rank in first["waits"]["ranks"]] == ["events"] * 2
    assert "waits-inside" in [note["code"] for note in first["waits"]["notes"]]
    assert first["adaptive"]["imbalance"] < 0.1
    assert first["adaptive"]["stopped_by"] in ("converged", "max_duration")
