import asyncio
import copy
import functools
import inspect
import pickle
import threading
import timeit
import types

import numpy as np
import pytest
from recording import Recorder

from gpubench.errors import ArgumentError
from gpubench.ranges import annotation, mark, recording, time_range
from gpubench.ranges.backends import Annotation, Backend


@pytest.fixture
def recorder(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(recording, "backend", lambda: recorder.backend)
    return recorder


class Gpu:
    """A platform of one device that writes down when it is synchronized."""

    def __init__(self, calls):
        self.calls = calls
        self.count = 1
        self.failure = None

    def device_count(self):
        return self.count

    def current_device(self):
        return 3

    def device(self, device_id):
        return types.SimpleNamespace(synchronize=lambda: self._synchronize(device_id))

    def _synchronize(self, device_id):
        self.calls.append(f"synchronize {device_id}")
        if self.failure:
            raise self.failure


@pytest.fixture
def gpu(monkeypatch, recorder):
    gpu = Gpu(recorder.calls)
    monkeypatch.setattr(annotation, "current_platform", lambda: gpu)
    return gpu


# Blocks


def test_block_pushes_and_pops(recorder):
    with time_range("outer"), time_range("inner"):
        recorder.calls.append("body")
    assert recorder.calls == ["push outer", "push inner", "body", "pop inner", "pop outer"]


def test_block_without_a_message_has_the_empty_name(recorder):
    with time_range():
        pass
    assert recorder.calls == ["push ", "pop "]


def test_one_object_nests_in_itself(recorder):
    again = time_range("r")
    with again, again:
        pass
    assert recorder.calls == ["push r", "push r", "pop r", "pop r"]


def test_block_pops_when_its_body_raises(recorder):
    with pytest.raises(KeyError), time_range("r"):
        raise KeyError
    assert recorder.calls == ["push r", "pop r"]


def test_block_gives_the_range(recorder):
    r = time_range("r")
    with r as entered:
        assert entered is r


# Decorated functions


def test_each_function_keeps_its_own_label(recorder):
    shared = time_range()

    def f():
        pass

    def g():
        pass

    wrapped_f, wrapped_g = shared(f), shared(g)
    wrapped_f()
    wrapped_g()
    wrapped_f()
    with shared:
        pass
    assert recorder.calls == [
        *("push f", "pop f", "push g", "pop g", "push f", "pop f"),
        *("push ", "pop "),
    ]


def test_separate_objects_keep_separate_labels(recorder):
    @time_range()
    def f():
        pass

    @time_range()
    def g():
        pass

    g()
    f()
    assert recorder.calls == ["push g", "pop g", "push f", "pop f"]


def test_a_given_message_names_every_function(recorder):
    shared = time_range("phase")
    shared(len)("abc")
    shared(max)(1, 2)
    assert recorder.calls == ["push phase", "pop phase"] * 2


class Scaler:
    def __call__(self, x):
        return 2 * x

    @time_range()
    def method(self, x):
        return x + 1

    @time_range()
    @staticmethod
    def static(x):
        return x + 2

    @time_range()
    @classmethod
    def of_class(cls, x):
        return cls.__name__, x

    @staticmethod
    @time_range()
    def static_outside(x):
        return x + 3


@pytest.mark.parametrize(
    ("func", "argument", "name", "value"),
    [
        (functools.partial(max, 1), 2, "max", 2),
        (functools.partial(functools.partial(max, 1), 5), 2, "max", 5),
        (Scaler(), 4, "Scaler", 8),
        (functools.partial(Scaler()), 4, "Scaler", 8),
        (lambda x: -x, 1, "<lambda>", -1),
        ("a-b".split, "-", "split", ["a", "b"]),
        (np.negative, 3, "negative", -3),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_any_callable_can_be_decorated(recorder, func, argument, name, value):
    wrapped = time_range()(func)
    assert wrapped(argument) == value
    assert recorder.calls == [f"push {name}", f"pop {name}"]
    assert wrapped.__name__ == name


def test_methods_stay_methods(recorder):
    scaler = Scaler()
    assert scaler.method(1) == 2
    assert scaler.static(1) == Scaler.static(1) == 3
    assert scaler.static_outside(1) == 4
    assert scaler.of_class(1) == ("Scaler", 1)


def test_wrapper_looks_like_the_function(recorder):
    def f(x: int, *, y: str = "") -> None:
        """Do it."""

    wrapped = time_range()(f)
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__wrapped__) == ("f", "Do it.", f)
    assert inspect.signature(wrapped) == inspect.signature(f)


def test_exception_of_a_function_passes_unchanged(recorder):
    error = KeyError("x")

    @time_range()
    def f():
        raise error

    with pytest.raises(KeyError) as caught:
        f()
    assert caught.value is error
    assert recorder.calls == ["push f", "pop f"]


def test_recursive_function_nests(recorder):
    @time_range()
    def f(n):
        return f(n - 1) + 1 if n else 0

    assert f(2) == 2
    assert recorder.calls == ["push f"] * 3 + ["pop f"] * 3


def test_threads_share_one_range(recorder, monkeypatch):
    calls = {}

    def note(word):
        calls.setdefault(threading.get_ident(), []).append(word)

    def annotate(label):
        return Annotation(
            *(lambda: note("push"), lambda: note("pop"), lambda: note("start")),
            *(lambda _: note("end"), lambda: note("mark")),
        )

    monkeypatch.setattr(recording, "backend", lambda: Backend("recording", "a test", annotate))
    shared = time_range("r")
    barrier = threading.Barrier(2)

    def work():
        with shared:
            barrier.wait(10)
            with shared:
                barrier.wait(10)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert list(calls.values()) == [["push", "push", "pop", "pop"]] * 2


# Synchronizing


def test_sync_waits_before_opening_and_before_closing(recorder, gpu):
    with time_range("r", sync=True):
        recorder.calls.append("body")
    assert recorder.calls == ["synchronize 3", "push r", "body", "synchronize 3", "pop r"]


def test_sync_in_a_coroutine(recorder, gpu):
    @time_range(sync=True)
    async def f():
        recorder.calls.append("body")

    asyncio.run(f())
    assert recorder.calls == ["synchronize 3", "start f as 0", "body", "synchronize 3", "end 0"]


def test_no_sync_unless_asked_for(recorder, gpu):
    with time_range("r"):
        pass
    assert recorder.calls == ["push r", "pop r"]


def test_sync_without_a_gpu_does_nothing(recorder, gpu):
    gpu.count = 0
    with time_range("r", sync=True):
        pass
    assert recorder.calls == ["push r", "pop r"]


def test_sync_without_a_back_end_still_waits(monkeypatch, recorder, gpu):
    monkeypatch.setattr(recording, "backend", lambda: Backend("none", "a test"))
    with time_range("r", sync=True):
        recorder.calls.append("body")
    assert recorder.calls == ["synchronize 3", "body", "synchronize 3"]


def test_failing_sync_opens_nothing(recorder, gpu):
    gpu.failure = RuntimeError("illegal address")
    with pytest.raises(RuntimeError, match="illegal address"), time_range("r", sync=True):
        recorder.calls.append("body")
    assert recorder.calls == ["synchronize 3"]


def test_failing_sync_closes_the_range_and_is_reported(recorder, gpu):
    with pytest.raises(RuntimeError, match="illegal address"), time_range("r", sync=True):
        gpu.failure = RuntimeError("illegal address")
    assert recorder.calls == ["synchronize 3", "push r", "synchronize 3", "pop r"]


def test_error_of_the_body_wins_over_a_failing_sync(recorder, gpu):
    @time_range(sync=True)
    def f():
        gpu.failure = RuntimeError("illegal address")
        raise KeyError("x")

    with pytest.raises(KeyError):
        f()
    assert recorder.calls == ["synchronize 3", "push f", "synchronize 3", "pop f"]


# Attributes


@pytest.mark.parametrize(
    ("arguments", "color"),
    [
        ({}, None),
        ({"color": "red"}, 0xFFFF0000),
        ({"color": 0x80123456}, 0x80123456),
        ({"color": np.uint32(0xFF00FF00)}, 0xFF00FF00),
        ({"argb_color": 0xFF00FF00}, 0xFF00FF00),
        ({"argb_color": 0}, 0),
        ({"color_id": 0}, 0xFF00FF00),
        ({"color_id": np.int64(9)}, 0xFF7F7F7F),
        ({"color_id": 11}, 0xFF007FFF),
        ({"color_id": -1}, None),
    ],
)
def test_colors(recorder, arguments, color):
    with time_range("r", **arguments):
        pass
    assert [label.color for label in recorder.labels] == [color]


def test_arguments_by_position_are_those_of_cupyx(recorder, gpu):
    with time_range("r", None, 0xFF00FF00, True):
        pass
    assert recorder.labels[0].color == 0xFF00FF00
    assert recorder.calls[0] == "synchronize 3"


def test_all_attributes_reach_the_back_end(recorder):
    with time_range("r", domain="mine", category="io", payload=np.int32(7)):
        pass
    mark("m", "blue", domain="mine", category=np.uint8(2), payload=0.5)
    block, instant = recorder.labels
    assert (block.domain, block.category, block.payload) == ("mine", "io", 7)
    assert type(block.payload) is int
    assert (instant.color, instant.domain) == (0xFF0000FF, "mine")
    assert (instant.category, instant.payload) == (2, 0.5)


def test_domain_is_gpubench_unless_given(recorder):
    with time_range("r"):
        mark("m")
    assert [label.domain for label in recorder.labels] == ["gpubench", "gpubench"]


def test_text_that_nvtx_cannot_encode_is_escaped(recorder):
    with time_range("caf\udce9"):
        pass
    assert recorder.calls == ["push caf\\udce9", "pop caf\\udce9"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"message": 3}, "message must be a str, got 3"),
        ({"message": b"r"}, "message must be a str, got b'r'"),
        ({"message": len}, "message must be a str, got <built-in function len>: write @time_ran"),
        ({"sync": 1}, "sync must be True or False, got 1"),
        ({"sync": "red"}, "sync must be True or False, got 'red'"),
        (
            {"color": "puce"},
            "color must be 0xAARRGGBB or one of green, blue, yel",
        ),
        ({"color": 1.5}, "color (a name or 0xAARRGGBB) must be an integer, got 1.5"),
        ({"color": True}, "color (a name or 0xAARRGGBB) must be an integer, got True"),
        ({"color": -1}, "color (a name or 0xAARRGGBB) must be at least 0, got -1"),
        ({"argb_color": 2**32}, "argb_color (0xAARRGGBB) must be below 0x100000000, got 0x1"),
        ({"argb_color": "red"}, "argb_color (0xAARRGGBB) must be an integer, got 'red'"),
        ({"color_id": "red"}, "color_id must be an integer, got 'red'"),
        ({"color_id": True}, "color_id must be an integer, got True"),
        ({"color_id": 0, "argb_color": 1}, "not color_id=0, argb_color=1, color=None"),
        ({"color_id": 0, "color": "red"}, "not color_id=0, argb_color=None, color='red'"),
        ({"color_id": 0, "argb_color": 0, "color": 0}, "not color_id=0, argb_color=0, color=0"),
        ({"domain": None}, "domain must be a str, got None"),
        ({"category": 1.5}, "category (a name or a number) must be an integer, got 1.5"),
        ({"category": 2**32}, "category (a name or a number) must be below 0x100000000, got"),
        ({"payload": "x"}, "payload must be a number, got 'x'"),
        ({"payload": [1]}, "payload must be a number, got [1]"),
        ({"payload": True}, "payload must be an integer, got True"),
        ({"payload": 2**63}, "payload must be below 0x8000000000000000, got"),
        ({"payload": -(2**63) - 1}, "payload must be at least -9223372036854775808, got"),
    ],
)
def test_arguments_that_cannot_be_used(arguments, message):
    with pytest.raises(ArgumentError) as caught:
        time_range(**arguments)
    assert message in str(caught.value)


def test_only_callables_can_be_decorated():
    with pytest.raises(ArgumentError, match="only a callable can be decorated, got 3"):
        time_range()(3)


def test_mark(recorder):
    mark("now")
    assert recorder.calls == ["mark now"]
    with pytest.raises(ArgumentError, match="message must be a str, got None"):
        mark(None)
    with pytest.raises(ArgumentError, match="got 'puce'"):
        mark("now", "puce")


# Copies and cost


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_used_range_can_be_copied(recorder, duplicate):
    used = time_range("r", color="red")
    with used:
        pass
    with duplicate(used):
        pass
    assert recorder.labels[0] == recorder.labels[1]
    assert recorder.calls == ["push r", "pop r"] * 2


def test_decorated_function_can_be_sent_to_another_process(recorder):
    cloudpickle = pytest.importorskip("cloudpickle")

    def f(x):
        return 2 * x

    wrapped = time_range()(f)
    assert wrapped(1) == 2
    received = pickle.loads(cloudpickle.dumps(wrapped))
    assert received(2) == 4
    assert recorder.calls == ["push f", "pop f"] * 2


def test_back_end_is_asked_once_for_each_range(recorder):
    r = time_range("r")
    f = time_range()(lambda: None)
    for _ in range(3):
        with r:
            f()
    assert [label.message for label in recorder.labels] == ["r", "<lambda>"]


class Empty:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        pass


def cost(statement, **names):
    return min(timeit.repeat(statement, globals=names, number=5000, repeat=9))


def test_range_that_nobody_sees_costs_little_more_than_an_empty_block(monkeypatch):
    monkeypatch.setattr(recording, "backend", lambda: Backend("none", "a test"))
    unseen = time_range("r", color="red", category="io", payload=1)
    decorated = unseen(lambda: None)
    # An empty block takes 0.1 to 0.2 us, a range not much longer; tracing for coverage does.
    bound = 6 * cost("with r: pass", r=Empty())
    assert cost("with r: pass", r=unseen) < bound
    assert cost("f()", f=decorated) < bound
