import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.sweeps.counters import tool
from gpubench.sweeps.counters.faults import CounterError
from gpubench.sweeps.counters.tool import find_ncu, print_command, profile_command


def put(path, says="Version 2025.1.0.0 (build 1)"):
    """Install a program that says its version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\nprint({says!r})\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch, tmp_path):
    """A machine with CUDA's usual places under the test's folder, all of them empty."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    places = [place.replace("/usr", f"{tmp_path}/usr").replace("/opt", f"{tmp_path}/opt")
              for place in tool._PLACES]  # fmt: skip
    monkeypatch.setattr(tool, "_PLACES", places)


def test_the_path_comes_first(tmp_path):
    put(tmp_path / "usr/local/cuda/bin/ncu")
    path = put(tmp_path / "bin/ncu")
    assert find_ncu() == find_ncu("ncu") == path


def test_usual_places_are_looked_into_the_newest_first(tmp_path, monkeypatch):
    with pytest.raises(CounterError):
        find_ncu()
    put(tmp_path / "opt/nvidia/nsight-compute/2024.3.2/ncu")
    newest = put(tmp_path / "opt/nvidia/nsight-compute/2025.10.0/ncu")
    put(tmp_path / "opt/nvidia/nsight-compute/2025.9.1/ncu")
    assert find_ncu() == newest
    put(tmp_path / "usr/local/cuda-9.0/bin/ncu")
    newer = put(tmp_path / "usr/local/cuda-12.8/bin/ncu")
    assert find_ncu() == newer
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "own"))
    assert find_ncu() == newer
    own = put(tmp_path / "own/bin/ncu")
    assert find_ncu() == own


def test_a_file_that_cannot_be_run_is_not_it(tmp_path):
    Path(put(tmp_path / "usr/local/cuda/bin/ncu")).chmod(0o644)
    right = put(tmp_path / "usr/local/cuda-13.0/bin/ncu")
    assert find_ncu() == right


def test_it_can_be_named(tmp_path):
    path = put(tmp_path / "elsewhere/my-ncu")
    assert find_ncu(path) == find_ncu(Path(path)) == path


@pytest.mark.parametrize("name", ["ncu", "/no/such/ncu", "other-ncu"])
def test_absent(name, tmp_path):
    if name != "ncu":  # then the usual places are none of it
        put(tmp_path / "usr/local/cuda/bin/ncu")
    with pytest.raises(CounterError) as error:
        find_ncu(name)
    assert str(error.value) == (
        f"{name!r}, which reads hardware counters (NVIDIA Nsight Compute), was not found on PATH "
        "or in CUDA's usual places. Install it (it comes with the CUDA Toolkit, and by itself as "
        "nsight-compute), or name it: ncu='/path/to/ncu'."
    )


@pytest.mark.parametrize("version", ["2022.2.1.0", "2019.5.0", "2020.10.9"])
def test_too_old(version, tmp_path):
    path = put(tmp_path / "bin/ncu", f"Version {version} (build 1)")
    short = ".".join(version.split(".")[:2])
    with pytest.raises(CounterError) as error:
        find_ncu()
    assert str(error.value) == (
        f"{path} is Nsight Compute {short}, and 2022.3 or newer is needed. Install a newer one "
        "(CUDA 11.8 and newer come with one), or name it: ncu='/path/to/ncu'."
    )


@pytest.mark.parametrize("version", ["2022.3.0.0", "2022.10.0", "2023.1.0"])
def test_new_enough(version, tmp_path):
    path = put(tmp_path / "bin/ncu", f"Version {version}")
    assert find_ncu() == path


@pytest.mark.parametrize(("says", "quoted"), [("", "nothing"), ("\nUnsupported: x", "Unsupported")])
def test_a_program_without_a_version(says, quoted, tmp_path):
    put(tmp_path / "bin/ncu", says)
    with pytest.raises(CounterError, match=f"doesn't tell its version: {quoted}"):
        find_ncu()


def test_a_program_that_cannot_be_started(tmp_path):
    path = Path(put(tmp_path / "bin/ncu"))
    path.write_text("#!/no/such/interpreter\n")
    with pytest.raises(CounterError, match=r"ncu can't be run: .*No such file"):
        find_ncu()


def test_a_program_that_hangs(tmp_path, monkeypatch):
    path = Path(put(tmp_path / "bin/ncu"))
    path.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    monkeypatch.setattr(tool, "_VERSION_TIMEOUT", 0.3)
    with pytest.raises(CounterError, match="timed out"):
        find_ncu()


def test_what_ncu_is_told():
    metrics = ["dram__bytes.sum", "gpu__time_duration.sum"]
    told = profile_command(
        "/bin/ncu", metrics, Path("/a/100%/r.ncu-rep"), Path("/a/l"), ["py", "-c"]
    )
    assert " ".join(told) == (
        "/bin/ncu --metrics dram__bytes.sum,gpu__time_duration.sum "
        "--nvtx --nvtx-include gpubench-counters@counted --clock-control none "
        "--replay-mode kernel --target-processes all --disable-profiler-start-stop "
        "--export /a/100%%/r.ncu-rep --force-overwrite --log-file /a/l py -c"
    )
    assert " ".join(print_command("/bin/ncu", Path("/a/r.ncu-rep"))) == (
        "/bin/ncu --import /a/r.ncu-rep --csv --page raw --print-units base"
    )


def test_the_program_is_run_without_a_shell(tmp_path):
    path = put(tmp_path / "with spaces; and $signs/ncu")
    assert find_ncu(path) == path
    assert subprocess.run([path], capture_output=True, check=True, text=True).stdout.startswith("V")
