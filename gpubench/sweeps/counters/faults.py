"""What keeps counters from being read: what happened, and what to do about it.

Nothing here ends a sweep: `collect_counters` makes notes of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpubench.errors import GpubenchError
from gpubench.notes import Note

_N_LISTED = 3


class CounterError(GpubenchError):
    """Counters can't be had.

    Parameters
    ----------
    message : str
        What happened, in one sentence.
    advice : str
        What to do about it.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message} {advice}".rstrip())
        self.message = message
        self.advice = advice


def no_counters(error: Exception) -> Note:
    """There are no counters at all."""
    if isinstance(error, CounterError):
        return Note("no-counters", error.message, error.advice)
    return Note("no-counters", f"Hardware counters couldn't be read: {error}.")


def some_counters(error: CounterError) -> Note:
    """Some counters are missing."""
    return Note("some-counters", error.message, error.advice)


def not_found(name: str) -> CounterError:
    """There is no such program."""
    return CounterError(
        f"{name!r}, which reads hardware counters (NVIDIA Nsight Compute), was not found on PATH "
        "or in CUDA's usual places.",
        "Install it (it comes with the CUDA Toolkit, and by itself as nsight-compute), or name it: "
        "ncu='/path/to/ncu'.",
    )


def too_old(path: str, version: str, minimum: str) -> CounterError:
    """The program lacks what is needed of it."""
    return CounterError(
        f"{path} is Nsight Compute {version}, and {minimum} or newer is needed.",
        "Install a newer one (CUDA 11.8 and newer come with one), or name it: ncu='/path/to/ncu'.",
    )


def timed_out(seconds: float) -> CounterError:
    """The pass was ended before it was done."""
    return CounterError(
        f"Reading the counters took longer than {seconds:g} s and was ended.",
        "Allow more time, ask for fewer counters (ncu repeats each kernel for every few of them), "
        "or make the configurations smaller.",
    )


def no_kernels() -> CounterError:
    """Nothing was launched where it is looked for."""
    return CounterError(
        "Nsight Compute saw no kernel in the sweep's configurations.",
        "Check that the function launches kernels, and not in processes of its own.",
    )


def unmarked() -> CounterError:
    """A report has kernels, as ncu leaves none without, but none where it is looked for."""
    return CounterError(
        "No kernel in Nsight Compute's report is told to be in one of the sweep's NVTX ranges.",
        'Install the package that reads reports: pip install "gpubench[counters]".',
    )


def raised(errors: Mapping[int, str]) -> CounterError:
    """The function raised in some configurations."""
    return CounterError(
        "Under ncu, the function failed in "
        + _listed([f"configs[{index}] ({error})" for index, error in errors.items()])
        + "."
    )


def died(index: int, errors: Sequence[str], output: str) -> CounterError:
    """The process ended before all configurations were done."""
    lines = [line.strip() for line in output.strip().splitlines()]
    fatal = next((i for i, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if fatal is not None:  # a list of where each thread was follows, the innermost place first
        place = next((line for line in lines[fatal:] if line.startswith("File ")), "")
        words = [*errors, f"{lines[fatal]} {place}".rstrip()]
    else:
        words = [*errors, *lines[-_N_LISTED:]]
    return CounterError(
        f"The process under ncu ended in configs[{index}]; last words: {_listed(words) or 'none'}."
    )


def failed(errors: Sequence[str]) -> CounterError:
    """The program itself reports errors."""
    return CounterError(f"Nsight Compute failed: {_listed(errors)}.")


def unavailable(missing: Mapping[str, str]) -> CounterError:
    """Metrics have no value; by a kernel that lacks it."""
    metrics = [f"{metric} ({kernel})" for metric, kernel in missing.items()]
    return CounterError(
        f"Nsight Compute has no value of {_listed(metrics)}.",
        "Check each name, with its suffix, and whether this GPU has it: "
        "ncu --query-metrics-mode suffix --metrics NAME.",
    )


def unreduced(error: Exception) -> CounterError:
    """The caller's own reduction failed."""
    return CounterError(f"reduce failed ({type(error).__name__}: {error}).")


def errors_in(log: str) -> list[str]:
    """Return the errors that ncu wrote, without repeats."""
    found = re.findall(r"^==ERROR==\s*(.+?)\s*$", log, re.MULTILINE)
    return list(dict.fromkeys(found))


def explained(errors: Sequence[str]) -> CounterError | None:
    """Return what one of ncu's errors means, if it is a known one.

    Source: the FAQ in NVIDIA's Kernel Profiling Guide.
    """
    for sign, message, advice in _KNOWN:
        if any(re.search(sign, error) for error in errors):
            return CounterError(message, advice)
    return None


def _listed(items: Sequence[str]) -> str:
    shown = "; ".join(item.rstrip(".") for item in items[:_N_LISTED])
    more = len(items) - _N_LISTED
    return f"{shown}; and {more} more" if more > 0 else shown


ALLOW_COUNTERS = (
    "Run as root; or allow everyone: put 'options nvidia NVreg_RestrictProfilingToAdminUsers=0'"
    " into a file in /etc/modprobe.d and reboot (on Windows and WSL: in the NVIDIA Control "
    "Panel, Developer, Manage GPU Performance Counters); in a container, add "
    "--cap-add=SYS_ADMIN. See https://developer.nvidia.com/ERR_NVGPUCTRPERM."
)
"""What to do where the driver lets only an administrator read hardware counters."""

_KNOWN = (
    (
        "ERR_NVGPUCTRPERM",
        "The NVIDIA driver lets only an administrator read hardware counters (ERR_NVGPUCTRPERM).",
        ALLOW_COUNTERS,
    ),
    (
        "driver resource was unavailable",
        "Another tool holds the GPU's hardware counters.",
        "End it; NVIDIA's DCGM is told to pause by: dcgmi profile --pause.",
    ),
    (
        "lock file",
        "Nsight Compute can't use its lock file in the folder for temporary files, which another "
        "user owns.",
        "Set TMPDIR to a folder of your own.",
    ),
    (
        "(?i)failed to connect to the CUDA driver",
        "Nsight Compute found no CUDA driver.",
        "Install the driver, and take stubs of libcuda.so off LD_LIBRARY_PATH.",
    ),
)
