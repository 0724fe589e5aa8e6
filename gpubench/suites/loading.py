"""A suite's file is imported as asv does it: as a module of the package that its folder is."""

from __future__ import annotations

import re
import sys
import sysconfig
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from gpubench.suites.case import SuiteFile


def load(file: SuiteFile) -> ModuleType:
    """Import a file; modules that lie beside it can be imported with or without the package.

    Raises
    ------
    BaseException
        Whatever the file raises.
    """
    if file.root not in sys.path:
        sys.path.append(file.root)
    package = _package(Path(file.root))
    return import_module(f"{package.__name__}.{file.module}") if file.module else package


def is_of_suite(defined: object, module: ModuleType) -> bool:
    """Whether a function or a class comes from the suite, rather than a library.

    Parameters
    ----------
    defined : function or class
        It.
    module : module
        A module of the suite.
    """
    package = module.__name__.partition(".")[0]
    home = getattr(defined, "__module__", None) or ""
    if home.partition(".")[0] == package:
        return True
    path = getattr(sys.modules.get(home), "__file__", None)
    root = sys.modules[package].__path__[0]
    return path is not None and Path(root) in Path(path).parents


def _is_taken(name: str, root: Path) -> bool:
    """Whether the name is that of an installed module, which a suite might want to import."""
    known = sys.modules.get(name)
    if known is not None:
        return list(getattr(known, "__path__", ())) != [str(root)]
    spec = PathFinder.find_spec(name, [sysconfig.get_path(each) for each in _INSTALLED])
    return spec is not None and spec.origin is not None  # a mere folder has none


_INSTALLED = ("stdlib", "purelib", "platlib")


def _package(root: Path) -> ModuleType:
    """Import a folder as a package, wherever it lies and whether or not it has an `__init__`."""
    name = re.sub(r"\W", "_", root.name)
    while _is_taken(name, root):  # benchmarks of NumPy may lie in a folder of that name
        name += "_"
    known = sys.modules.get(name)
    if known is not None:
        return known
    init = root / "__init__.py"
    loader = SourceFileLoader(name, str(init)) if init.is_file() else None
    spec = ModuleSpec(name, loader, origin=str(init), is_package=True)
    spec.submodule_search_locations = [str(root)]
    spec.has_location = loader is not None  # so that it has a __file__
    package = module_from_spec(spec)
    sys.modules[name] = package
    if loader is not None:
        loader.exec_module(package)
    return package
