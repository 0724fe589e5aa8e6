"""Everything that gpubench raises of its own accord."""


class GpubenchError(Exception):
    """Base class of gpubench's own errors."""


class ArgumentError(GpubenchError, ValueError, TypeError):
    """An argument that can't be used; the message names it, its value and what would do.

    It is a `ValueError` and a `TypeError` at once, so that code which guarded calls of
    ``cupyx.profiler.benchmark`` (a `ValueError` there) goes on working.
    """


class UnsupportedError(GpubenchError, RuntimeError):
    """This machine, driver or function can't do what was asked; the message says why."""


class MissingExtraError(GpubenchError, ImportError):
    """An optional package is needed and not installed; the message says what to install."""

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: "
            f'pip install "gpubench[{extra}]"'
        )


def first_line(text: object) -> str:
    """Return the first line with anything in it; of an exception, its name if it says nothing."""
    lines = str(text).strip().splitlines()
    return lines[0].strip() if lines else type(text).__name__
