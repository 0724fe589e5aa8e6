"""What one cache entry holds: a checksum, perhaps lowered names, and the compiled code.

A file is 40 hexadecimal characters, the SHA-1 of the payload, then the payload. The payload is
an ELF image, PTX text or LTO intermediate code. CuPy 14.2 puts a header before the code of
modules that were compiled with name expressions: a magic, a little-endian 32-bit count, and
that many names, each a 32-bit length and UTF-8 text.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpubench.errors import MissingExtraError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_CHECKSUM_LENGTH = hashlib.sha1(usedforsecurity=False).digest_size * 2
_NAMES_MAGIC = b"\x93CUPYNE\x00"
_UINT32 = struct.Struct("<I")

_ELF_MAGIC = b"\x7fELF"
_LTOIR_MAGIC = b"\xedCN\x7f"
_PTX_VERSION = re.compile(rb"^\s*\.version\s+\d", re.MULTILINE)
_PTX_TARGET = re.compile(rb"^\s*\.target\s+(\w+)", re.MULTILINE)
_PTX_ENTRY = re.compile(rb"^\s*(?:\.\w+\s+)*\.entry\s+([\w$%]+)", re.MULTILINE)

# How far e_flags is shifted to bring the SM number into its low byte, by ELF ABI version:
# CUDA 12 writes version 7 (8 for the newest architectures), CUDA 13 version 8.
_SM_SHIFTS = {7: 0, 8: 8}
_SYMBOL_OTHER_OFFSET = 5
_CUDA_ENTRY = 0x10  # the bit of st_other that tells a kernel from a device function


@dataclass(frozen=True)
class Payload:
    """The compiled code of one cache entry.

    Attributes
    ----------
    format : str
        ``"elf"``, ``"ptx"``, ``"ltoir"`` or ``"unknown"``.
    architecture : str
        What the code was compiled for, for example ``"sm_90"``; empty if the payload doesn't
        say so in a form that is read here (LTO code, AMD GPUs).
    kernel_names : tuple of str
        The kernels, as the compiler named (mangled) them. Of code that is not read here, the
        names that CuPy recorded with it.
    """

    format: str
    architecture: str = ""
    kernel_names: tuple[str, ...] = ()


UNKNOWN = Payload("unknown")


def checked_payload(data: bytes) -> bytes | None:
    """Return the payload of a whole cache file, None where CuPy would find the file corrupt."""
    checksum, payload = data[:_CHECKSUM_LENGTH], data[_CHECKSUM_LENGTH:]
    computed = hashlib.sha1(payload, usedforsecurity=False).hexdigest()
    return payload if checksum == computed.encode() else None


def read_payload(payload: bytes) -> Payload:
    """Read the names and the architecture from what follows the checksum in a cache file.

    Raises
    ------
    MissingExtraError
        If the code is an ELF image and pyelftools is not installed.
    """
    try:
        names, code = _split_names(payload)
    except (struct.error, UnicodeDecodeError):
        return UNKNOWN
    if code.startswith(_ELF_MAGIC):
        return _read_elf(code)
    if _PTX_VERSION.search(code):
        return _read_ptx(code)
    is_ltoir = code.startswith(_LTOIR_MAGIC)
    return Payload("ltoir" if is_ltoir else "unknown", kernel_names=names)


def _split_names(payload: bytes) -> tuple[tuple[str, ...], bytes]:
    if not payload.startswith(_NAMES_MAGIC):
        return (), payload
    stream = io.BytesIO(payload)
    stream.seek(len(_NAMES_MAGIC))
    (count,) = _UINT32.unpack(stream.read(_UINT32.size))
    names = []
    for _ in range(count):
        (length,) = _UINT32.unpack(stream.read(_UINT32.size))
        names.append(stream.read(length).decode())
    return tuple(names), stream.read()


def _read_ptx(code: bytes) -> Payload:
    target = _PTX_TARGET.search(code)
    names = tuple(name.decode() for name in _PTX_ENTRY.findall(code))
    return Payload("ptx", target[1].decode() if target else "", names)


def _read_elf(image: bytes) -> Payload:
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise MissingExtraError("reading a compiled kernel", "pyelftools", "cache") from None
    try:
        elf = ELFFile(io.BytesIO(image))
        return Payload("elf", _architecture(elf), _kernel_names(elf, image))
    except Exception:  # noqa: BLE001  # a damaged image fails anywhere in the parser, in any way
        return UNKNOWN


def _architecture(elf: ELFFile) -> str:
    shift = _SM_SHIFTS.get(elf["e_ident"]["EI_ABIVERSION"])
    if elf["e_machine"] != "EM_CUDA" or shift is None:
        return ""
    return f"sm_{elf['e_flags'] >> shift & 0xFF}"


def _kernel_names(elf: ELFFile, image: bytes) -> tuple[str, ...]:
    """Names of the STT_FUNC symbols, less the device functions of a CUDA image."""
    from elftools.elf.sections import SymbolTableSection

    is_cuda = elf["e_machine"] == "EM_CUDA"
    names = []
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for index, symbol in enumerate(section.iter_symbols()):
            if symbol["st_info"]["type"] != "STT_FUNC" or symbol["st_shndx"] == "SHN_UNDEF":
                continue
            # pyelftools drops the vendor's bits of st_other, so look at the byte itself.
            start = section["sh_offset"] + index * section["sh_entsize"]
            if not is_cuda or image[start + _SYMBOL_OTHER_OFFSET] & _CUDA_ENTRY:
                names.append(symbol.name)
    return tuple(dict.fromkeys(names))
