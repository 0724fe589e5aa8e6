"""The snippets of Markdown documents: found, run in a fresh interpreter, and what they print."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"```(?P<language>\w+)\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<shown>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_END = "\x1e"
"""What the runner prints behind each snippet's own output."""

_RUNNER = """
import json, sys
namespace = {"__name__": "__main__"}
shell = None
for language, name, code in json.load(sys.stdin):
    if language == "ipython":
        if shell is None:
            from IPython.core.interactiveshell import InteractiveShell
            from traitlets.config import Config
            no_history = Config(HistoryManager={"enabled": False})
            shell = InteractiveShell(user_ns=namespace, config=no_history)
        shell.run_cell(code).raise_error()
    else:
        exec(compile(code, name, "exec"), namespace)
    print(end="\\x1e", flush=True)
"""


@dataclass(frozen=True)
class Snippet:
    """A fenced block of code.

    `shown` is the text block that follows, empty if none does; `unrun` why it isn't run.
    """

    place: str
    language: str
    code: str
    shown: str
    unrun: str


def snippets(path, *languages):
    """Return a document's snippets in these languages."""
    text = path.read_text(encoding="utf-8")
    return [
        Snippet(
            place=f"{path.name}:{text.count(chr(10), 0, match.start('code')) + 1}",
            language=match["language"],
            code=match["code"],
            shown=match["shown"] or "",
            unrun=match["reason"] or "",
        )
        for match in _BLOCK.finditer(text)
        if match["language"] in languages
    ]


def outputs(chosen, folder):
    """Run snippets one after the other, as one reader would, and return what each printed.

    They run in a fresh interpreter that sees no GPU.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _RUNNER],
        input=json.dumps([(each.language, each.place, each.code) for each in chosen]),
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={
            **os.environ,
            "CUDA_VISIBLE_DEVICES": "",
            "IPYTHONDIR": str(folder),
            "PYTHONUTF8": "1",
        },
        cwd=folder,
    )
    printed = done.stdout.split(_END)
    assert done.returncode == 0, f"{chosen[len(printed) - 1].place}: {done.stderr}"
    return printed[:-1]


def layout(text):
    """Return the lines' beginnings: words without their figures, which differ from run to run."""
    lines = [re.sub(r"[-\d.]+", "#", line).split() for line in text.strip().splitlines()]
    return [line[:3] for line in lines]
