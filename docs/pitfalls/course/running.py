"""Lessons run without Jupyter, one cell after the other."""

import ast
import re

_CELL = re.compile(
    r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*\n?(.*?)^```$", re.MULTILINE | re.DOTALL
)


def run(path, names):
    """Run a lesson as a notebook does.

    Parameters
    ----------
    path : Path
        The lesson's file.
    names : dict
        Takes up the lesson's variables.

    Yields
    ------
    object
        What each cell displays, for those that display something.
    """
    for code in _CELL.findall(path.read_text(encoding="utf-8")):
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            if shown is not None:
                yield shown
