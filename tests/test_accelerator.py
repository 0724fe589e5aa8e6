import pickle
import sys
from types import ModuleType, SimpleNamespace

import pytest

from gpubench import accelerator
from gpubench.accelerator import accelerators, parse_accelerators, use_accelerators
from gpubench.cutensor import preload_cutensor
from gpubench.errors import ArgumentError, GpubenchError, UnsupportedError

CUTENSOR = "cupy_backends.cuda.libs.cutensor"
NUMBERS = {"cub": 1, "cutensor": 2, "cutensornet": 3}


@pytest.fixture(autouse=True)
def _fresh_preload(monkeypatch):
    monkeypatch.delenv("CUPY_ACCELERATORS", raising=False)
    preload_cutensor.cache_clear()
    yield
    preload_cutensor.cache_clear()


@pytest.fixture
def no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


class FakeCore(ModuleType):
    """The accelerator settings as CuPy keeps them: numbers, set by name or number."""

    def __init__(self, numbers=NUMBERS):
        super().__init__("cupy._core")
        self._accelerator = SimpleNamespace(
            **{f"ACCELERATOR_{name.upper()}": number for name, number in numbers.items()}
        )
        for kind in ("elementwise", "reduction", "routine"):
            self._add(kind, numbers)

    def _add(self, kind, numbers):
        current = [1]

        def setter(wanted):
            new = [each if isinstance(each, int) else numbers[each] for each in wanted]
            current[:] = new

        setattr(self, f"get_{kind}_accelerators", lambda: list(current))
        setattr(self, f"set_{kind}_accelerators", setter)

    def settings(self):
        kinds = ("elementwise", "reduction", "routine")
        return [getattr(self, f"get_{kind}_accelerators")() for kind in kinds]


class FakeCupy(ModuleType):
    def __init__(self, core, *, is_hip=False, has_cub=True):
        super().__init__("cupy")
        self._core = core
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(is_hip=is_hip),
            cub=SimpleNamespace(available=has_cub),
            driver=SimpleNamespace(get_build_version=lambda: 12090),
        )


@pytest.fixture
def install(monkeypatch):
    """Install a fake CuPy with a GPU; `held` is what its routines hold of cuTENSOR."""

    def install(*, held="the library", numbers=NUMBERS, **features):
        cupy = FakeCupy(FakeCore(numbers), **features)
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        routines = ModuleType("cupy._core._routines_math")
        if held != "nothing is told":
            routines.cuda_cutensor = held
        monkeypatch.setitem(sys.modules, routines.__name__, routines)
        monkeypatch.setitem(sys.modules, "cuquantum", ModuleType("cuquantum"))
        sys.modules["cuquantum"].__spec__ = "found"
        monkeypatch.setattr(accelerator, "find_cuda", lambda: None)
        return cupy

    return install


def break_cutensor(monkeypatch, error):
    """Let the import of CuPy's cuTENSOR module fail."""

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == CUTENSOR:
                raise error

    for parent in ("cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.libs"):
        package = ModuleType(parent)
        package.__path__ = []
        monkeypatch.setitem(sys.modules, parent, package)
    monkeypatch.delitem(sys.modules, CUTENSOR, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("", ()),
        (" , ", ()),
        ([], ()),
        ("cub", ("cub",)),
        ("CUB", ("cub",)),
        ("cub, cutensor", ("cub", "cutensor")),
        ("cutensor,cub", ("cutensor", "cub")),
        ("cub,cub", ("cub",)),
        (["cutensor", "cub,CuTensor "], ("cutensor", "cub")),
        (iter(["cub", "", "cutensornet"]), ("cub", "cutensornet")),
    ],
)
def test_parse_strips_lowers_and_drops_repeats(setting, names):
    assert parse_accelerators(setting) == names


@pytest.mark.parametrize("setting", [3, None, b"cub", ["cub", 3], [["cub"]]])
def test_parse_refuses_what_is_no_name(setting):
    culprit = setting[-1] if isinstance(setting, list) else setting
    with pytest.raises(ArgumentError) as caught:
        parse_accelerators(setting)
    assert str(caught.value) == (
        f"accelerators must be given by name, such as 'cub' or 'cub,cutensor', not {culprit!r}"
    )


def test_parse_refuses_unknown_names(no_cupy):
    with pytest.raises(ArgumentError) as caught:
        parse_accelerators("cub, Foo")
    assert str(caught.value) == (
        "accelerator 'foo' is unknown; there are cub, cutensor, cutensornet, "
        "and an empty setting for none"
    )


def test_parse_takes_a_newer_name_that_the_installed_cupy_knows(install):
    install(numbers={**NUMBERS, "cuda_compute": 4})
    assert parse_accelerators("cuda_compute,cub") == ("cuda_compute", "cub")
    assert "cuda_compute" in accelerators().available
    with pytest.raises(ArgumentError, match="cutensornet, cuda_compute, and"):
        parse_accelerators("foo")


def test_accelerators_tells_settings_and_availability(install):
    cupy = install()
    cupy._core.set_routine_accelerators(["cutensor", "cub"])
    cupy._core.set_elementwise_accelerators([])
    found = accelerators()
    assert found.routine == ("cutensor", "cub")
    assert found.available == ("cub", "cutensor", "cutensornet")
    assert found.unavailable == {}
    assert pickle.loads(pickle.dumps(found)) == found
    assert str(found) == (
        "CUPY_ACCELERATORS is not set, which CuPy reads as cub\n"
        "elementwise  none\n"
        "reduction    cub\n"
        "routine      cutensor, cub\n"
        "cub          available\n"
        "cutensor     available\n"
        "cutensornet  available"
    )


def test_without_cupy_nothing_is_available(no_cupy):
    found = accelerators()
    assert found.elementwise == found.reduction == found.routine == found.available == ()
    why = 'CuPy is not installed; pip install "gpubench[cuda12]" (or [cuda13])'
    assert found.unavailable == dict.fromkeys(NUMBERS, why)
    assert "cub          unavailable: CuPy is not installed" in str(found)


def test_without_a_gpu_the_settings_are_told_all_the_same(install, monkeypatch):
    install()

    def find_cuda():
        raise UnsupportedError("there is no NVIDIA driver; install one")

    monkeypatch.setattr(accelerator, "find_cuda", find_cuda)
    found = accelerators()
    assert found.reduction == ("cub",)
    assert found.unavailable["cub"] == "there is no NVIDIA driver; install one"
    assert found.notes == ()


def test_a_missing_cutensor_names_what_to_install(install, monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    hide_pathfinder(monkeypatch)
    preload_cutensor()
    break_cutensor(monkeypatch, ImportError("libcutensor.so.2: cannot open\nmore"))
    install(held=None)
    assert accelerators().unavailable["cutensor"] == (
        'libcutensor.so.2: cannot open; pip install "gpubench[cuda12,cutensor12]"'
    )


def test_a_cupy_that_was_imported_too_early_is_told_from_a_missing_cutensor(install, monkeypatch):
    install(held=None)
    break_cutensor(monkeypatch, ImportError("libcutensorMg.so.2: cannot open"))
    assert accelerators().unavailable["cutensor"] == (
        'libcutensorMg.so.2: cannot open; pip install "gpubench[cuda12,cutensor12]" if it is '
        "missing, and call gpubench.preload_cutensor() before CuPy is imported"
    )


def test_a_cutensor_that_was_loaded_too_late_does_not_count(install, monkeypatch):
    install(held=None)
    monkeypatch.setitem(sys.modules, CUTENSOR, ModuleType(CUTENSOR))
    assert (
        accelerators()
        .unavailable["cutensor"]
        .startswith(
            "it could be loaded only after CuPy was imported, which is too late; pip install"
        )
    )


def test_a_cupy_that_does_not_tell_what_it_holds_is_asked_by_importing(install, monkeypatch):
    install(held="nothing is told")
    monkeypatch.setitem(sys.modules, CUTENSOR, ModuleType(CUTENSOR))
    assert "cutensor" in accelerators().available


def test_on_hip_there_is_no_cutensor_and_the_default_is_none(install):
    install(is_hip=True, has_cub=False)
    found = accelerators()
    assert found.from_variable == ()
    assert found.unavailable == {
        "cub": "this CuPy was built without it",
        "cutensor": "cuTENSOR is a library for CUDA, and this CuPy is built for HIP",
        "cutensornet": "cuTensorNet is a library for CUDA, and this CuPy is built for HIP",
    }


def test_cutensornet_needs_cuquantum(install, monkeypatch):
    install()
    monkeypatch.setattr(accelerator.importlib.util, "find_spec", lambda name: None)
    assert accelerators().unavailable["cutensornet"] == (
        "the package cuquantum is not installed; pip install cuquantum-python"
    )


@pytest.mark.parametrize(
    ("value", "reading"),
    [
        ("", ()),
        ("cub", ("cub",)),
        ("cub,,cub", ("cub", "cub")),
        ("cutensor,cub", ("cutensor", "cub")),
    ],
)
def test_the_variable_is_read_as_cupy_reads_it(install, monkeypatch, value, reading):
    install()
    monkeypatch.setenv("CUPY_ACCELERATORS", value)
    found = accelerators()
    assert found.variable == value
    assert found.from_variable == reading
    assert found.notes == ()


@pytest.mark.parametrize(
    ("value", "refused", "meant"),
    [
        ("cub, cutensor", " cutensor", "cub,cutensor"),
        ("CUB", "CUB", "cub"),
        ("foo", "foo", ""),
        (" ", " ", ""),
    ],
)
def test_a_variable_that_cupy_refuses_is_noted(install, monkeypatch, value, refused, meant):
    install()
    monkeypatch.setenv("CUPY_ACCELERATORS", value)
    (note,) = accelerators().notes
    assert str(note) == (
        f"accelerators-variable: CUPY_ACCELERATORS keeps CuPy from being imported: it knows no "
        f"{refused!r}, and takes space and case as they are. Set it to {meant!r}."
    )


def test_a_set_accelerator_that_cupy_passes_over_is_noted(install):
    cupy = install(is_hip=True)
    cupy._core.set_routine_accelerators(["cub", "cutensor"])
    assert [note.code for note in accelerators().notes] == ["accelerator-skipped"]
    assert "cutensor is set, but CuPy passes over it: cuTENSOR is" in str(accelerators())


def test_use_sets_all_three_and_restores_each(install):
    core = install()._core
    core.set_elementwise_accelerators([])
    core.set_reduction_accelerators(["cutensor", "cub"])
    before = core.settings()
    assert before == [[], [2, 1], [1]]
    with use_accelerators("CUB, cutensor"):
        assert core.settings() == [[1, 2]] * 3
        with use_accelerators():
            assert core.settings() == [[], [], []]
        assert core.settings() == [[1, 2]] * 3
    assert core.settings() == before


def test_use_restores_when_the_block_raises(install):
    core = install()._core
    with pytest.raises(KeyError), use_accelerators("cutensor"):
        raise KeyError
    assert core.settings() == [[1], [1], [1]]


def test_use_restores_when_setting_fails_halfway(install):
    core = install()._core
    set_routine = core.set_routine_accelerators

    def refuse(wanted):
        if "cutensor" in wanted:
            raise ValueError("refused")
        set_routine(wanted)

    core.set_routine_accelerators = refuse
    with pytest.raises(ValueError, match="refused"), use_accelerators("cutensor"):
        pytest.fail("the block ran")
    assert core.settings() == [[1], [1], [1]]


def test_use_refuses_unknown_names_at_the_call(install):
    install()
    with pytest.raises(ArgumentError, match="'foo' is unknown"):
        use_accelerators("cub", "foo")


def test_use_refuses_unavailable_names_at_the_call(install):
    core = install(is_hip=True)._core
    with pytest.raises(UnsupportedError) as caught:
        use_accelerators("cub", "cutensor")
    assert str(caught.value) == (
        "CuPy can't use 'cutensor' here: "
        "cuTENSOR is a library for CUDA, and this CuPy is built for HIP"
    )
    assert core.settings() == [[1], [1], [1]]


def test_use_without_cupy(no_cupy):
    with use_accelerators():
        ran = True
    assert ran
    with pytest.raises(UnsupportedError, match="'cub' here: CuPy is not installed"):
        use_accelerators("cub")


def test_use_with_the_real_cupy():
    cupy = pytest.importorskip("cupy")
    core = cupy._core
    before = list(core.get_reduction_accelerators())
    core.set_reduction_accelerators(["cutensor", "cub"])
    try:
        with use_accelerators():
            assert accelerators().reduction == ()
        assert accelerators().reduction == ("cutensor", "cub")
        with pytest.raises(GpubenchError):
            use_accelerators("foo")
    finally:
        core.set_reduction_accelerators(before)


def hide_pathfinder(monkeypatch):
    package = ModuleType("cuda")
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "cuda", package)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    return package


def test_preload_loads_both_libraries_once(monkeypatch):
    loaded = []
    package = hide_pathfinder(monkeypatch)
    package.pathfinder = SimpleNamespace(load_nvidia_dynamic_lib=loaded.append)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert preload_cutensor() == ""
    assert preload_cutensor() == ""
    assert loaded == ["cutensor", "cutensorMg"]


def test_preload_tells_why_it_failed(monkeypatch):
    def load(name):
        raise RuntimeError(f'Failure finding "lib{name}.so.2"\nwhere it looked')

    package = hide_pathfinder(monkeypatch)
    package.pathfinder = SimpleNamespace(load_nvidia_dynamic_lib=load)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert preload_cutensor() == 'Failure finding "libcutensor.so.2"'


def test_preload_needs_pathfinder(monkeypatch):
    hide_pathfinder(monkeypatch)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert preload_cutensor().startswith("the package cuda-pathfinder can't be imported (")


def test_preload_after_cupy_loads_nothing(install, monkeypatch):
    install()
    package = hide_pathfinder(monkeypatch)
    package.pathfinder = SimpleNamespace(load_nvidia_dynamic_lib=pytest.fail)
    assert preload_cutensor() == "CuPy was imported before gpubench could load cuTENSOR"
