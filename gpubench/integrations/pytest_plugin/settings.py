"""What the command line asks of the plugin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gpubench import arguments
from gpubench.comparison.judgement import MARGIN
from gpubench.errors import ArgumentError, GpubenchError
from gpubench.storage import SavedResults, load
from gpubench.timers import METHODS


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options, checked.

    Attributes
    ----------
    save : Path or None
        Where results go.
    baseline : SavedResults or None
        What results are compared with.
    fail_on_slower : bool
        Whether a test fails that is slower than its baseline.
    margin : float
        Relative difference up to which times count as the same.
    method : str
        How to time, where a test doesn't say.
    disabled : str
        Why nothing is timed; empty if it is.
    """

    save: Path | None
    baseline: SavedResults | None
    fail_on_slower: bool
    margin: float
    method: str
    disabled: str


def read_settings(config: pytest.Config) -> Settings:
    """Return what the options say.

    Raises
    ------
    pytest.UsageError
        If they contradict each other, or a file can't be read or written.
    """
    try:
        return _settings(config)
    except GpubenchError as error:
        raise pytest.UsageError(f"gpubench: {error}") from error


def _settings(config: pytest.Config) -> Settings:
    disabled = _why_disabled(config)
    baseline = config.getoption("gpubench_compare")
    fail_on_slower = config.getoption("gpubench_fail_on_slower")
    if fail_on_slower and not baseline:
        raise ArgumentError("--gpubench-fail-on-slower needs --gpubench-compare FILE")
    # A worker of pytest-xdist is never the first to read the options.
    if fail_on_slower and disabled and not hasattr(config, "workerinput"):
        raise ArgumentError(f"--gpubench-fail-on-slower needs times, but {disabled}")
    save = config.getoption("gpubench_save")
    return Settings(
        save=_writable(_absolute(config, save)) if save and not disabled else None,
        baseline=load(_absolute(config, baseline)) if baseline and not disabled else None,
        fail_on_slower=fail_on_slower,
        margin=_margin(config.getoption("gpubench_margin")),
        method=arguments.one_of(
            "--gpubench-method", config.getoption("gpubench_method") or "auto", METHODS
        ),
        disabled=disabled,
    )


def _why_disabled(config: pytest.Config) -> str:
    if config.getoption("gpubench_disable"):
        return "--gpubench-disable was given"
    if hasattr(config, "workerinput") or config.getoption("dist", "no") != "no":
        return "pytest-xdist runs tests side by side, which disturbs times (-n 0 runs them in turn)"
    return ""


def _absolute(config: pytest.Config, path: str) -> Path:
    """Return where a path leads to even when tests have changed the current folder."""
    return config.invocation_params.dir / Path(path).expanduser()


def _writable(path: Path) -> Path:
    """Return the path of a file that can be written, as far as that can be told beforehand."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"--gpubench-save: no folder {str(path.parent)!r}: {error}") from error
    if path.is_dir():
        raise ArgumentError(f"--gpubench-save needs a file, and {str(path)!r} is a folder")
    return path


def _margin(given: str | None) -> float:
    return MARGIN if given is None else arguments.share("--gpubench-margin", given)
