"""Which back ends CuPy is set to use, which of them it could use here, and how to choose.

CuPy calls CUB, cuTENSOR and cuTensorNet accelerators. It keeps three ordered lists of them, for
elementwise functions, for reduction kernels and for routines such as `sum` and `einsum`, reads
all three from ``CUPY_ACCELERATORS`` when it is imported, and silently passes over any that it
can't use.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import ModuleType

from gpubench.cutensor import cutensor_problem, preload_cutensor
from gpubench.devices.cuda import find_cuda
from gpubench.errors import ArgumentError, UnsupportedError
from gpubench.notes import Note

VARIABLE = "CUPY_ACCELERATORS"
_KINDS = ("elementwise", "reduction", "routine")
_NAMES = ("cub", "cutensor", "cutensornet")


@dataclass(frozen=True)
class Accelerators:
    """CuPy's back ends in this process.

    Attributes
    ----------
    elementwise, reduction, routine : tuple of str
        What is set now for each kind of function, in the order in which CuPy tries them.
    variable : str or None
        ``CUPY_ACCELERATORS`` as it is now; None if it isn't set.
    from_variable : tuple of str
        What CuPy makes of that when it is imported: ``("cub",)`` if it isn't set (nothing on
        HIP), and otherwise the text between the commas as it stands.
    available : tuple of str
        The back ends that CuPy can use here.
    unavailable : Mapping of str to str
        The others, and for each why CuPy can't use it and what to do about it.
    notes : tuple of Note
        What is odd about the settings.
    """

    elementwise: tuple[str, ...]
    reduction: tuple[str, ...]
    routine: tuple[str, ...]
    variable: str | None
    from_variable: tuple[str, ...]
    available: tuple[str, ...]
    unavailable: Mapping[str, str]
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        value = "is not set" if self.variable is None else f"is {self.variable!r}"
        lines = [f"{VARIABLE} {value}, which CuPy reads as {_listed(self.from_variable)}"]
        lines += [f"{kind:<12} {_listed(getattr(self, kind))}" for kind in _KINDS]
        lines += [f"{name:<12} available" for name in self.available]
        lines += [f"{name:<12} unavailable: {why}" for name, why in self.unavailable.items()]
        lines += [str(note) for note in self.notes]
        return "\n".join(lines)


def accelerators() -> Accelerators:
    """Tell which back ends CuPy is set to use and which it could use here.

    Imports CuPy if that has not happened yet, after loading cuTENSOR so that CuPy finds it.

    Returns
    -------
    Accelerators
        Without CuPy nothing is set and nothing is available.

    Examples
    --------
    >>> print(accelerators())  # doctest: +SKIP
    CUPY_ACCELERATORS is not set, which CuPy reads as cub
    elementwise  cub
    reduction    cub
    routine      cub
    cub          available
    cutensor     available
    cutensornet  unavailable: the package cuquantum is not installed; pip install cuquantum-python
    """
    cupy, problem = _find_cupy()
    names = _known_names(cupy)
    settings = _settings(cupy) if cupy else dict.fromkeys(_KINDS, ())
    problems = {name: (_own_problem(name, cupy) if cupy else "") or problem for name in names}
    unavailable = {name: why for name, why in problems.items() if why}
    variable = os.environ.get(VARIABLE)
    on_hip = cupy is not None and cupy.cuda.runtime.is_hip
    from_variable = _read_variable(variable, default=() if on_hip else ("cub",))
    skipped = {} if problem else unavailable
    return Accelerators(
        **settings,
        variable=variable,
        from_variable=from_variable,
        available=tuple(name for name in names if name not in unavailable),
        unavailable=unavailable,
        notes=(*_variable_notes(from_variable, names), *_skipped_notes(settings, skipped)),
    )


def use_accelerators(*names: str) -> AbstractContextManager[None]:
    """Let CuPy use these back ends, and no others, for all kinds of functions in a block.

    On leaving the block, by an exception too, each kind's list is what it was before. CuPy has
    one set of lists for all threads. ``CUPY_ACCELERATORS`` stays as it is, so processes that
    are started in the block don't inherit the choice.

    Parameters
    ----------
    *names : str
        Back ends in the order in which CuPy is to try them, as `parse_accelerators` takes them;
        none for CuPy's own kernels alone.

    Returns
    -------
    context manager

    Raises
    ------
    ArgumentError
        If a name is unknown; at the call, before the block.
    UnsupportedError
        If CuPy can't use one of them here: it would pass over it without a word. The message
        says why and what to do. At the call, too. Where there is no CuPy, no names are fine.

    Examples
    --------
    >>> with use_accelerators("cub", "cutensor"):  # doctest: +SKIP
    ...     benchmark(a.sum)
    """
    wanted = parse_accelerators(names)
    unavailable = accelerators().unavailable
    for name in wanted:
        if name in unavailable:
            raise UnsupportedError(f"CuPy can't use {name!r} here: {unavailable[name]}")
    cupy = sys.modules.get("cupy")
    return _set_for_a_while(cupy, wanted) if cupy else nullcontext()


def parse_accelerators(setting: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names in a setting such as ``"cub, cutensor"`` or ``["cub", "cutensor"]``.

    Parameters
    ----------
    setting : str or iterable of str
        Names, or lists of names with commas. Space around a name and case don't matter; empty
        ones are dropped, and repeated ones count where they come first.

    Returns
    -------
    tuple of str

    Raises
    ------
    ArgumentError
        If something isn't a string, or is a name that neither gpubench nor the installed CuPy
        knows.
    """
    is_one = isinstance(setting, (str, bytes)) or not isinstance(setting, Iterable)
    parts = [setting] if is_one else setting
    names: dict[str, None] = {}
    for part in parts:
        if not isinstance(part, str):
            raise ArgumentError(
                f"accelerators must be given by name, such as 'cub' or 'cub,cutensor', not {part!r}"
            )
        names.update(dict.fromkeys(name.strip().lower() for name in part.split(",")))
    names.pop("", None)
    # CuPy is asked only about names that are not everyday ones: importing it takes a while.
    if unknown := [name for name in names if name not in _NAMES]:
        known = _known_names(_find_cupy()[0])
        for name in unknown:
            if name not in known:
                raise ArgumentError(
                    f"accelerator {name!r} is unknown; there are {_listed(known)}, "
                    "and an empty setting for none"
                )
    return tuple(names)


def _find_cupy() -> tuple[ModuleType | None, str]:
    """Return CuPy, None if it can't be imported, and why it can't be used; empty if it can."""
    preload_cutensor()
    try:
        find_cuda()
    except UnsupportedError as error:
        return sys.modules.get("cupy"), str(error)
    return sys.modules["cupy"], ""


def _numbers(cupy: ModuleType) -> dict[int, str]:
    """Return the numbers by which CuPy tells the back ends apart, with their names."""
    prefix = "ACCELERATOR_"
    return {
        int(number): constant.removeprefix(prefix).lower()
        for constant, number in vars(cupy._core._accelerator).items()
        if constant.startswith(prefix)
    }


def _known_names(cupy: ModuleType | None) -> tuple[str, ...]:
    newer = _numbers(cupy).values() if cupy else ()
    return tuple(dict.fromkeys((*_NAMES, *newer)))


def accelerators_in_effect() -> dict[str, tuple[str, ...]] | None:
    """Return what is set now for each kind of function; None if CuPy hasn't been imported."""
    cupy = sys.modules.get("cupy")
    try:
        return _settings(cupy) if cupy else None
    except AttributeError:  # a CuPy without accelerators, or one that failed to import
        return None


def _settings(cupy: ModuleType) -> dict[str, tuple[str, ...]]:
    names = _numbers(cupy)
    return {
        kind: tuple(names.get(number, str(number)) for number in _get(cupy, kind))
        for kind in _KINDS
    }


def _get(cupy: ModuleType, kind: str) -> tuple[int, ...]:
    return tuple(getattr(cupy._core, f"get_{kind}_accelerators")())


def _set(cupy: ModuleType, kind: str, wanted: Sequence[str | int]) -> None:
    getattr(cupy._core, f"set_{kind}_accelerators")(wanted)


@contextmanager
def _set_for_a_while(cupy: ModuleType, wanted: tuple[str, ...]) -> Iterator[None]:
    before = {kind: _get(cupy, kind) for kind in _KINDS}
    try:
        for kind in _KINDS:
            _set(cupy, kind, wanted)
        yield
    finally:
        for kind, numbers in before.items():
            _set(cupy, kind, numbers)


def _own_problem(name: str, cupy: ModuleType) -> str:
    """Return why CuPy can't use this back end, apart from the lack of a GPU."""
    if name == "cub" and not cupy.cuda.cub.available:
        return "this CuPy was built without it"
    if name == "cutensor":
        return cutensor_problem(cupy)
    if name == "cutensornet":
        if cupy.cuda.runtime.is_hip:
            return "cuTensorNet is a library for CUDA, and this CuPy is built for HIP"
        if importlib.util.find_spec("cuquantum") is None:
            return "the package cuquantum is not installed; pip install cuquantum-python"
    return ""


def _read_variable(variable: str | None, *, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that CuPy takes from the variable: it strips and checks nothing here."""
    return default if variable is None else tuple(name for name in variable.split(",") if name)


def _variable_notes(from_variable: tuple[str, ...], known: Sequence[str]) -> tuple[Note, ...]:
    refused = [name for name in from_variable if name not in known]
    if not refused:
        return ()
    meant = [name.strip().lower() for name in from_variable]
    value = ",".join(dict.fromkeys(name for name in meant if name in known))
    note = Note(
        "accelerators-variable",
        f"{VARIABLE} keeps CuPy from being imported: it knows no {refused[0]!r}, and takes "
        "space and case as they are.",
        f"Set it to {value!r}.",
    )
    return (note,)


def _skipped_notes(
    settings: Mapping[str, tuple[str, ...]], unavailable: Mapping[str, str]
) -> tuple[Note, ...]:
    names = dict.fromkeys(name for kind in _KINDS for name in settings[kind])
    return tuple(
        Note("accelerator-skipped", f"{name} is set, but CuPy passes over it: {unavailable[name]}.")
        for name in names
        if name in unavailable
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
