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


def test_what_is_assigned_stays(names):
    function = compile_statement("x += 1\nseen = x", names)
    function()
    function()
    assert (names["x"], names["seen"]) == (3, 3)


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


def test_it_travels_to_another_process(names):
    cloudpickle = pytest.importorskip("cloudpickle")
    run_setup("def f(): return x + 1", names)
    function = compile_statement("f()", names)
    assert pickle.loads(cloudpickle.dumps(function))() == 2
