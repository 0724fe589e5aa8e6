"""Cache files as CuPy writes them, with code that NVRTC compiles without a GPU."""

import hashlib
import os
import time

import pytest

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry cupy_sum(
	.param .u64 cupy_sum_param_0
)
{ ret; }
"""


def encoded(payload):
    """The content of a cache file."""
    return hashlib.sha1(payload).hexdigest().encode() + payload


def entry_name(key, kind="cubin"):
    return f"{hashlib.sha1(key.encode()).hexdigest()}.{kind}"


def store(folder, key, payload=PTX, *, kind="cubin", age_time=0.0, source=None):
    """Write an entry, and its source if there is one; return the entry's path."""
    path = folder / entry_name(key, kind)
    path.write_bytes(encoded(payload))
    if source is not None:
        path.with_name(f"{path.name}.cu").write_text(source)
    return aged(path, age_time)


def aged(path, age_time):
    """Make a file look as if it had been written that many seconds ago."""
    written = time.time() - age_time
    os.utime(path, (written, written))
    return path


def compiled(source, *options, output="CUBIN"):
    """Compile CUDA source to ``"CUBIN"``, ``"PTX"`` or ``"LTOIR"``; skip where NVRTC is absent."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC's bindings are absent")
    try:
        nvrtc.nvrtcVersion()
    except Exception as error:  # noqa: BLE001  # which one depends on the bindings' version
        pytest.skip(f"NVRTC can't be loaded: {error}")
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, None, None)
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    _, size = getattr(nvrtc, f"nvrtcGet{output}Size")(program)
    code = bytearray(size)
    getattr(nvrtc, f"nvrtcGet{output}")(program, code)
    return bytes(code)
