"""Statements as functions: what they return, what they keep, how they fail."""

import pickle
import traceback

import pytest

from gpubench.statement import compile_statement, run_setup


@pytest.fixture
def names():
    return {"__name__": "__main__", "x": 1}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("x + 1", 2),
        ("y = x\ny * 3", 3),
        ("x = 2", None),
        ("", None),
        ("# nothing", None),
        ("for i in range(3):\n    x", None),
        ("def f(): return x\nf()", 1),
        ("import math as m\nm.floor(1.5)", 1),
        ("[x + i for i in range(2)]", [1, 2]),
        ("(w := 5)", 5),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    pass\nx", 1),
        ("global z; z = 4\nz", 4),
        ("y: int = 7\ny", 7),
    ],
)
def test_the_last_expression_is_returned_at_each_call(source, value, names):
    function = compile_statement(source, names)
    assert [function(), function()] == [value, value]


@pytest.mark.parametrize(
    "source", ["x += 1\nx", "x: int = x + 1\nx", "x += 1\n(lambda: x)()", "for x in [2]: pass\nx"]
)
def test_each_call_begins_with_the_same_values_and_leaves_them(source, names):
    function = compile_statement(source, names)
    assert [function(), function(), names["x"]] == [2, 2, 1]


def test_what_is_declared_global_stays(names):
    function = compile_statement("global x\nx += 1\nx", names)
    assert [function(), function(), names["x"]] == [2, 3, 3]


def test_variables_are_as_fast_as_a_functions(names):
    names["i"] = 5
    function = compile_statement("for i in range(9): y = i", names)
    assert {"i", "y"} <= set(function.__code__.co_varnames)


def test_setup_runs_once_for_its_names(names):
    run_setup("from math import *\ny = x + 1", names)
    assert compile_statement("floor(y)", names)() == 2


@pytest.mark.parametrize("source", ["return 1", "yield 1", "await x", "1 +", " x", "break"])
def test_what_is_no_statement_is_refused(source, names):
    with pytest.raises(SyntaxError) as caught:
        compile_statement(source, names)
    assert caught.value.filename == "<statement>"


def test_tracebacks_quote_the_line(names):
    function = compile_statement("x\n1 / 0", names)
    with pytest.raises(ZeroDivisionError) as caught:
        function()
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.line) == ("<statement>", 2, "1 / 0")


def test_several_have_files_of_their_own(names):
    first, _ = (compile_statement(s, names, f"<{s}>") for s in ("1 / 0", "x"))
    with pytest.raises(ZeroDivisionError) as caught:
        first()
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.line) == ("<1 / 0>", "1 / 0")


def test_it_travels_to_another_process(names):
    cloudpickle = pytest.importorskip("cloudpickle")
    run_setup("def f(): return x + 1", names)
    function = compile_statement("f()", names)
    assert pickle.loads(cloudpickle.dumps(function))() == 2
