"""C++ names as they stand in the source, by the C++ library that CuPy needs anyway."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


def demangled(name: str) -> str:
    """Return a C++ function's name as in the source; others, and all on other systems, as is."""
    return _demangler()(name) if name.startswith("_Z") else name


@functools.cache
def _demangler() -> Callable[[str], str]:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return str
    # int status; char* __cxa_demangle(const char* name, char* out, size_t* length, int* status)
    demangle = library.__cxa_demangle
    demangle.restype = ctypes.c_void_p
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]

    def demangler(name: str) -> str:
        status = ctypes.c_int()
        text = demangle(name.encode(), None, None, ctypes.byref(status))
        if text is None:
            return name
        try:
            return ctypes.string_at(text).decode()
        finally:
            free(text)

    return demangler
