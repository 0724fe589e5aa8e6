"""What an entry holds: real code, compiled by NVRTC, in every form that CuPy stores."""

import struct
import sys

import pytest
from cache_files import PTX, compiled, entry_name, store

import gpubench
from gpubench.cache import kernel_cache

SOURCE = """
__device__ __noinline__ float helper(float x) { return x * 2 + 1; }
extern "C" __global__ void cupy_sum(float* a) { a[0] = helper(a[1]); }
extern "C" __global__ void no_arguments() {}
template <class T> __global__ void scale(T* a) { a[0] *= 2; }
template __global__ void scale<float>(float*);
"""
KERNELS = {"cupy_sum", "no_arguments", "_Z5scaleIfEvPT_"}

_ABI_VERSION, _MACHINE, _SECTIONS, _FLAGS = 8, 18, 40, 48  # offsets in a 64-bit ELF header


def only_entry(folder, payload, *, kind="cubin"):
    store(folder, "key", payload, kind=kind)
    (entry,) = kernel_cache(folder).entries
    return entry


def with_names(payload, *names):
    """The form of CuPy 14.2 for modules that were compiled with name expressions."""
    header = b"\x93CUPYNE\x00" + struct.pack("<I", len(names))
    for name in map(str.encode, names):
        header += struct.pack("<I", len(name)) + name
    return header + payload


def patched(image, offset, value):
    return image[:offset] + value + image[offset + len(value) :]


@pytest.fixture(scope="module")
def cubin():
    return compiled(SOURCE, "--gpu-architecture=sm_90")


@pytest.fixture
def no_elftools(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "elftools"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "elftools", None)


@pytest.mark.parametrize("sm", [75, 90, 120])
def test_cubin(tmp_path, sm):
    entry = only_entry(tmp_path, compiled(SOURCE, f"--gpu-architecture=sm_{sm}"))
    assert entry.valid
    assert entry.payload.format == "elf"
    assert entry.architecture == f"sm_{sm}"
    assert set(entry.kernel_names) == KERNELS
    assert len(entry.kernel_names) == len(KERNELS)


def test_global_device_functions_are_no_kernels(tmp_path):
    code = compiled(SOURCE, "--gpu-architecture=sm_90", "--relocatable-device-code=true")
    assert b"_Z6helperf" in code
    assert set(only_entry(tmp_path, code).kernel_names) == KERNELS


def test_cubin_of_elf_abi_7_has_the_architecture_in_the_low_byte(tmp_path, cubin):
    image = patched(patched(cubin, _ABI_VERSION, b"\x07"), _FLAGS, b"\x4b\x05\x56\x00")
    assert only_entry(tmp_path, image).architecture == "sm_75"


def test_cubin_of_an_abi_to_come_has_no_architecture_but_names(tmp_path, cubin):
    entry = only_entry(tmp_path, patched(cubin, _ABI_VERSION, b"\x09"))
    assert entry.architecture == ""
    assert set(entry.kernel_names) == KERNELS


def test_hip_code_object(tmp_path, cubin):
    # Only the machine makes it one: enough to see that CUDA's flags and bits aren't looked for.
    entry = only_entry(tmp_path, patched(cubin, _MACHINE, b"\xe0\x00"), kind="hsaco")
    assert entry.kind == "hsaco"
    assert entry.architecture == ""
    assert set(entry.kernel_names) > KERNELS


def test_ptx(tmp_path):
    code = compiled(SOURCE, "--gpu-architecture=compute_90", output="PTX")
    entry = only_entry(tmp_path, code)
    assert entry.payload.format == "ptx"
    assert entry.architecture == "sm_90"
    assert set(entry.kernel_names) == KERNELS


def test_lto_code(tmp_path):
    code = compiled(SOURCE, "--gpu-architecture=compute_90", "-dlto", output="LTOIR")
    entry = only_entry(tmp_path, code, kind="ltoir")
    assert entry.kind == "ltoir"
    assert entry.valid
    assert entry.payload.format == "ltoir"
    assert entry.kernel_names == ()


def test_names_before_a_cubin(tmp_path, cubin):
    entry = only_entry(tmp_path, with_names(cubin, "_Z5scaleIfEvPT_"))
    assert entry.valid
    assert entry.architecture == "sm_90"
    assert set(entry.kernel_names) == KERNELS


def test_names_before_unknown_code_stand_for_it(tmp_path):
    entry = only_entry(tmp_path, with_names(b"to come", "one", "zwölf"))
    assert entry.payload.format == "unknown"
    assert entry.kernel_names == ("one", "zwölf")


@pytest.mark.parametrize("length", [8, 10, 12, 14, 16])
def test_truncated_names(tmp_path, length):
    entry = only_entry(tmp_path, with_names(PTX, "first", "second")[:length])
    assert entry.valid  # the checksum is right
    assert entry.payload.format == "unknown"
    assert entry.kernel_names == ()


def test_names_that_are_no_text(tmp_path):
    header = b"\x93CUPYNE\x00" + struct.pack("<II", 1, 2) + b"\xff\xfe"
    assert only_entry(tmp_path, header + PTX).payload.format == "unknown"


def test_damaged_images_are_unknown_and_never_fatal(tmp_path, cubin):
    huge = patched(cubin, _SECTIONS, b"\xff" * 8)
    for image in (huge, *(cubin[:size] for size in range(4, len(cubin), 97))):
        entry = only_entry(tmp_path, image)
        assert entry.valid
        assert entry.payload.format in {"elf", "unknown"}
    assert only_entry(tmp_path, huge).kernel_names == ()


@pytest.mark.parametrize("content", [b"", b"0" * 39, b"0" * 40 + PTX])
def test_corrupt(tmp_path, content):
    (tmp_path / entry_name("key")).write_bytes(content)
    (entry,) = kernel_cache(tmp_path).entries
    assert entry.status == "corrupt"
    assert not entry.valid
    assert (entry.payload.format, entry.architecture, entry.kernel_names) == ("unknown", "", ())


def test_without_pyelftools(tmp_path, cubin, no_elftools):
    store(tmp_path, "ptx")
    store(tmp_path, "elf", cubin)
    cache = kernel_cache(tmp_path)
    assert cache.verify().ok
    assert {entry.name: entry for entry in cache.entries}[entry_name("ptx")].kernel_names
    assert 'unknown without "gpubench[cache]"' in cache.table()
    for call in (lambda: cache.find("sum"), cache.by_architecture):
        with pytest.raises(gpubench.MissingExtraError, match=r"pyelftools.*gpubench\[cache\]"):
            call()
