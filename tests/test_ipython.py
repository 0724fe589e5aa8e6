"""The IPython extension, in a real shell."""

import sys
from contextlib import contextmanager
from fnmatch import fnmatchcase

import pytest

import gpubench
from gpubench import accelerator

pytest.importorskip("IPython")
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


class Shell:
    """A shell, with what it showed last."""

    def __init__(self, shell, capsys):
        self.shell = shell
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, cell):
        """Run a cell, and return its value."""
        self._capsys.readouterr()
        done = self.shell.run_cell(cell)
        self.out, self.err = self._capsys.readouterr()
        done.raise_error()
        return done.result

    def error(self, cell):
        """Run a cell that ends in an error, and return that."""
        with pytest.raises(Exception) as caught:  # noqa: PT011  # the tests look at what it is
            self(cell)
        return caught.value

    def usage_error(self, cell):
        """Run a cell that is used in a wrong way, and return what IPython says."""
        assert isinstance(self.error(cell), UsageError)
        return self.err.removeprefix("UsageError: ").rstrip()


@pytest.fixture(scope="module")
def interactive_shell():
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    main = sys.modules["__main__"]  # which a shell replaces
    yield InteractiveShell.instance(config=config)
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


@pytest.fixture
def ip(interactive_shell, capsys, no_cupy):
    ip = Shell(interactive_shell, capsys)
    names = dict(interactive_shell.user_ns)
    ip("%load_ext gpubench")
    yield ip
    if "gpubench" in interactive_shell.extension_manager.loaded:
        ip("%unload_ext gpubench")
    interactive_shell.user_ns.clear()
    interactive_shell.user_ns.update(names)


def timed(ip, statement, options="-n 2 -w 1"):
    """Return the result of a statement in line mode."""
    return ip(f"%gpu_timeit -o -q {options} {statement}")


def test_loading_again_is_fine(ip):
    ip("%reload_ext gpubench")
    assert ip("%gpu_timeit -o -q -n 2 1").cpu.n == 2


def test_unloading_takes_the_magics_away(ip):
    ip("%unload_ext gpubench")
    assert "gpu_timeit" not in ip.shell.magics_manager.magics["line"]
    assert "gpu_timeit" not in ip.shell.magics_manager.magics["cell"]


def test_each_has_a_help_text(ip):
    for name in ("gpu_timeit", "gpu_compare", "gpu_trace", "accelerators"):
        help_text = ip.shell.find_line_magic(name).__doc__
        assert f"%{name}" in help_text


class TestTimeit:
    def test_a_line_shows_the_panel(self, ip):
        assert ip("%gpu_timeit -n 5 sum(range(10))") is None
        assert ip.out.startswith("sum(range(10)): n=5, host")
        assert "median" in ip.out

    def test_options(self, ip):
        result = ip("%gpu_timeit -n 7 -w3 -oq --method host --max-duration=60 1")
        assert (result.cpu.n, result.n_warmup, result.method) == (7, 3, "host")
        assert "median" not in ip.out.partition("Out")[0]

    def test_without_n_it_takes_what_it_needs(self, ip):
        assert ip("%gpu_timeit -oq --max-duration 0.2 1").stopped_by != "n_repeat"

    def test_it_can_be_assigned(self, ip):
        ip("r = %gpu_timeit -o -q -n 2 1 + 1")
        assert ip.shell.user_ns["r"].name == "1 + 1"
        assert ip.out == ""

    @pytest.mark.parametrize(
        "statement",
        [
            "-x",
            "-n",
            "-n.bit_length()",
            "- -1",
            "--x",
            "x - -1",
            "5 -- 3",
            "'-n 5'",
            "\"it's\" + '\"'",
            "f'{x!r:>{n}}'",
            "x  # -n 'comment",
            "x; -x",
            "{'a': x}['a']",
            "x if x else '--method'",
            "[-x for x in (1, 2)]",
            "%time x",
        ],
    )
    def test_statements_that_look_like_something_else(self, ip, statement):
        ip("x = n = 3")
        assert timed(ip, f"-- {statement}").name == statement
        if not statement.startswith(("-n", "%")):
            assert timed(ip, statement).name == statement

    def test_a_long_one_is_called_by_its_beginning(self, ip):
        assert timed(ip, " + ".join(["1"] * 40)).name == f"{'1 + ' * 12}1 …"

    def test_values_of_names_are_not_filled_in(self, ip):
        ip("x = 'y'")
        assert timed(ip, "'{x} $x'").name == "'{x} $x'"

    def test_it_is_compiled_once(self, ip, monkeypatch):
        compiled = []
        with monkeypatch.context() as patch:
            patch.setattr(ip.shell, "transform_cell", lambda cell: compiled.append(cell) or cell)
            ip.shell.run_line_magic("gpu_timeit", "-n 20 -q 1")
        assert compiled == ["1"]

    def test_variables_are_the_users_and_stay_as_they_are(self, ip):
        ip("x = 1\ncalls = []")
        timed(ip, "calls.append(x); x = 2; new = 3")
        assert ip.shell.user_ns["x"] == 1
        assert "new" not in ip.shell.user_ns
        assert len(ip.shell.user_ns["calls"]) == 3

    def test_variables_of_a_function_are_found(self, ip):
        ip("y = 2")
        ip(
            "def f():\n"
            "    x = 1\n"
            "    return get_ipython().run_line_magic('gpu_timeit', '-o -q -n 2 x + y')\n"
            "r = f()"
        )
        assert ip.shell.user_ns["r"].cpu.n == 2

    def test_a_cells_first_line_is_its_setup(self, ip):
        result = ip(
            "%%gpu_timeit -o -q -n 4 -w 2 calls = []; x = 1\n"
            "# a comment\n"
            "calls.append(x)\n"
            "assert len(calls) < 7, 'so the set-up ran once'\n"
        )
        assert (result.cpu.n, result.name) == (4, "# a comment …")
        assert "calls" not in ip.shell.user_ns

    def test_the_last_value_is_not_printed(self, ip):
        ip("%gpu_timeit -q -n 2 'value'")
        assert ip.out == ""

    def test_gpu_times(self, ip, gpu):
        ip.shell.user_ns["gpu"] = gpu
        assert timed(ip, "gpu.launch(1e-3)").gpu[0].median == pytest.approx(1e-3, rel=0.1)

    def test_errors_show_the_users_code_alone(self, ip):
        ip("def f(x):\n    return 1 / x\n")
        assert isinstance(ip.error("%gpu_timeit -n 2 f(0)"), ZeroDivisionError)
        shown = ip.out + ip.err
        assert "----> 1 f(0)" in shown
        assert "----> 2     return 1 / x" in shown
        assert "measure.py" not in shown
        assert "extension.py" not in shown

    def test_ctrl_c_before_the_first_sample_shows_the_users_code_alone(self, ip):
        with pytest.raises(KeyboardInterrupt):
            ip("%gpu_timeit raise KeyboardInterrupt")
        shown = ip.out + ip.err
        assert "----> 1 raise KeyboardInterrupt" in shown
        assert "session.py" not in shown

    def test_what_an_error_came_from_is_shown_too(self, ip):
        ip("def f():\n    try: {}['a']\n    except KeyError: raise OSError('lost')\n")
        assert isinstance(ip.error("%gpu_timeit f()"), OSError)
        assert "KeyError: 'a'" in ip.out + ip.err

    def test_errors_of_the_setup_show_it(self, ip):
        assert isinstance(ip.error("%%gpu_timeit x = nothing\nx"), NameError)
        assert "----> 1 x = nothing" in ip.out + ip.err

    @pytest.mark.parametrize(
        ("cell", "shown"),
        [
            ("%gpu_timeit x +* 2", "    x +* 2\n       ^"),
            ("%%gpu_timeit\nx = 1\nreturn x", "    return x\n    ^"),
            ("%%gpu_timeit x +* 2\nx", "    x +* 2\n       ^"),
            ("%gpu_timeit await x", "    await x\n    ^"),
        ],
    )
    def test_syntax_errors_point_into_the_statement(self, ip, cell, shown):
        assert isinstance(ip.error(cell), SyntaxError)
        assert shown in ip.out + ip.err

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("", "a statement is needed, such as a.sum()"),
            ("-n 5", "a statement is needed, such as a.sum()"),
            ("-n", "-n needs a whole number, got nothing; put -- before a statement that *"),
            ("-n x", "-n needs a whole number, got x; put -- *"),
            ("-n -5 x", "n_repeat must be at least 1, got -5"),
            ("--max-duration long x", "--max-duration needs a number of seconds, got long; *"),
            ("--method gate 1", "method must be one of *; got 'gate'"),
            ("--method gated 1", "method='gated' needs a GPU, and none was found: *"),
            ("--methd gated 1", "--methd is no option: there are -n, -w, --method, *"),
            ("-r 7 x", "-r is no option: *"),
            ("(i for i in 'ab')", "func returned a generator, *"),
        ],
    )
    def test_wrong_use_is_said_in_a_line(self, ip, line, message):
        assert ip.usage_error(f"%gpu_timeit {line}") == Matching(message)

    def test_errors_of_gpubench_in_the_statement_are_the_users(self, ip):
        error = ip.error("%gpu_timeit -n 2 gpubench.benchmark(3)")
        assert isinstance(error, NameError)
        ip("import gpubench")
        error = ip.error("%gpu_timeit -n 2 gpubench.benchmark(3)")
        assert isinstance(error, gpubench.ArgumentError)
        assert "gpubench.benchmark(3)" in ip.out + ip.err

    def test_ctrl_c_keeps_what_there_is(self, ip):
        ip(
            "import itertools\n"
            "calls = itertools.count()\n"
            "def interrupt():\n"
            "    if next(calls) == 20: raise KeyboardInterrupt\n"
        )
        result = ip("%gpu_timeit -o -n 1000 -w 10 interrupt()")
        assert (result.interrupted, result.cpu.n) == (True, 10)
        assert "interrupted" in ip.out


class TestCompare:
    def test_a_line(self, ip):
        ip("x = list(range(2000))")
        assert ip("%gpu_compare -n 8 sum(x) ;; sum(x) + sum(x) - sum(x)") is None
        assert ip.out.startswith("sum(x) + sum(x) - sum(x) ran ")
        assert "times slower than sum(x) (CPU time)" in ip.out

    def test_options(self, ip):
        comparison = ip("%gpu_compare -o -q -n 6 -w 2 --method host --max-duration 60 1 ;; 1 ;; 1")
        assert [arm.name for arm in comparison.arms] == ["1", "1#2", "1#3"]
        assert len(comparison.order) == 18
        assert "ran" not in ip.out.partition("Out")[0]

    def test_each_statement_of_a_cell(self, ip):
        comparison = ip(
            "%%gpu_compare -o -q -n 6 x = [1, 2]\n"
            "sum(x)\n"
            "\n"
            "# the other way\n"
            "max(x) + \\\n"
            "    min(x)\n"
        )
        assert [arm.name for arm in comparison.arms] == ["sum(x)", "max(x) + \\ …"]
        assert not comparison.arms[1].mismatch

    def test_statements_of_a_line_stay_together(self, ip):
        comparison = ip("%%gpu_compare -o -q -n 6\nx = 1; x\n1")
        assert [arm.name for arm in comparison.arms] == ["x = 1; x", "1"]

    def test_parts_between_dashes(self, ip):
        comparison = ip(
            "%%gpu_compare -o -q -n 6\n"
            "x = 1\n"
            "x\n"
            "---\n"
            "'''\n"
            "---\n"
            "'''  # ;; --- \n"
            "';;'; 1\n"
            "  -----  \n"
            "x = -1\n"
            "-x\n"
        )
        assert [arm.name for arm in comparison.arms] == ["x = 1 …", "''' …", "x = -1 …"]
        assert not any(arm.mismatch for arm in comparison.arms)

    def test_parts_of_several_lines_between_semicolons(self, ip):
        comparison = ip("%%gpu_compare -o -q -n 6\nx = 1\nx ;; y = 1\ny\n;; 1  \n")
        assert [arm.name for arm in comparison.arms] == ["x = 1 …", "y = 1 …", "1"]
        assert not any(arm.mismatch for arm in comparison.arms)

    def test_different_values_are_a_mismatch(self, ip):
        ip("%gpu_compare -n 6 1 + 1 ;; 1 + 2")
        assert "1 + 2: MISMATCH with 1 + 1" in ip.out

    def test_assignments_have_no_values_to_compare(self, ip):
        ip("%gpu_compare -n 6 x = 1 ;; 2")
        assert "MISMATCH" not in ip.out

    def test_gpu_times(self, ip, gpu):
        ip.shell.user_ns["gpu"] = gpu
        ip("%gpu_compare -n 8 gpu.launch(40e-6) ;; gpu.launch(20e-6)")
        assert "gpu.launch(20e-6) ran" in ip.out
        assert "times faster than gpu.launch(40e-6) (GPU time)" in ip.out

    @pytest.mark.parametrize("line", ["", "x", "';;'", "x # ;; y", "x ;;"])
    def test_one_statement_is_too_few(self, ip, line):
        said = ip.usage_error(f"%gpu_compare {line}")
        assert said.startswith("two statements or more are needed")

    def test_errors_show_the_users_code(self, ip):
        assert isinstance(ip.error("%gpu_compare 1 / 0 ;; 1"), ZeroDivisionError)
        assert "----> 1 1 / 0" in ip.out + ip.err

    @pytest.mark.parametrize("cell", ["%gpu_compare 1 ;; x +* 2", "%%gpu_compare\n1\nx +* 2"])
    def test_syntax_errors_point_into_the_statement(self, ip, cell):
        assert isinstance(ip.error(cell), SyntaxError)
        assert "    x +* 2\n       ^" in ip.out + ip.err

    def test_notebooks_get_a_table(self, ip):
        from IPython.utils.capture import capture_output

        with capture_output() as captured:
            ip.shell.run_line_magic("gpu_compare", "-n 6 '<b>' ;; '<b>'")
        (shown,) = captured.outputs
        assert "<table>" in shown.data["text/html"]
        assert "<b>" not in shown.data["text/html"]
        assert "baseline" in shown.data["text/plain"]


class TestTrace:
    @pytest.fixture
    def ip(self, ip, gpu):
        ip.shell.user_ns["gpu"] = gpu
        return ip

    def test_a_line_shows_table_and_diagnosis(self, ip):
        assert ip("%gpu_trace gpu.launch(20e-6, 'sqrt'); gpu.synchronize()") is None
        assert "sqrt" in ip.out
        assert ip.out.rstrip().endswith(".")

    def test_a_cell_runs_once_and_its_variables_stay(self, ip):
        trace = ip("%%gpu_trace -o\nx = 1\nfor i in range(3):\n    gpu.launch(20e-6, 'sqrt')\n")
        assert len(trace.recording.activities) == 3
        assert (ip.shell.user_ns["x"], ip.shell.user_ns["i"]) == (1, 2)

    def test_in_a_function_its_variables_are_found(self, ip):
        ip(
            "def f(seconds):\n"
            "    return get_ipython().run_line_magic('gpu_trace', '-o gpu.launch(seconds)')\n"
            "trace = f(1e-5)"
        )
        assert len(ip.shell.user_ns["trace"].recording.activities) == 1

    def test_the_timeline_goes_to_a_page(self, ip, tmp_path):
        page = tmp_path / "a page.html"
        ip(f"%gpu_trace --html '{page}' gpu.launch(1e-5)")
        assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")

    def test_errors_show_the_users_code(self, ip):
        assert isinstance(ip.error("%gpu_trace 1 / 0"), ZeroDivisionError)
        assert "----> 1 1 / 0" in ip.out + ip.err

    def test_ctrl_c_keeps_what_ran(self, ip):
        trace = ip("%%gpu_trace -o\ngpu.launch(1e-5, 'first')\nraise KeyboardInterrupt")
        assert len(trace.recording.activities) == 1
        assert "Interrupted: this is what ran until then." in ip.out

    def test_code_beside_the_magic_of_a_cell_is_refused(self, ip):
        assert ip.usage_error("%%gpu_trace x = 1\nx").startswith("what is to be traced goes below")


def test_without_a_gpu_there_is_nothing_to_trace(ip):
    assert "no" in ip.usage_error("%gpu_trace 1")


class TestAccelerators:
    @pytest.fixture
    def in_use(self, monkeypatch):
        """The back ends in use, where CuPy can use any."""
        in_use = ["cub"]

        @contextmanager
        def use(*names):
            before = in_use[:]
            in_use[:] = names
            yield
            in_use[:] = before

        monkeypatch.setattr(accelerator, "use_accelerators", use)
        return in_use

    def test_they_are_shown(self, ip):
        ip("%accelerators")
        assert ip.out == f"{gpubench.accelerators()}\n"

    @pytest.mark.parametrize(
        ("line", "names"),
        [
            ("cutensor cub", ["cutensor", "cub"]),
            ("cutensor, cub", ["cutensor", "cub"]),
            ("none", []),
        ],
    )
    def test_they_are_set_until_the_extension_goes(self, ip, in_use, line, names):
        ip("%accelerators cutensor")
        ip(f"%accelerators {line}")
        assert in_use == names
        assert ip.out == f"{gpubench.accelerators()}\n"
        ip("%unload_ext gpubench")
        assert in_use == ["cub"]

    def test_what_cannot_be_used_is_said_and_changes_nothing(self, ip):
        assert ip.usage_error("%accelerators cub").startswith("CuPy can't use 'cub' here: ")
        assert ip.usage_error("%accelerators cube").startswith("accelerator 'cube' is unknown")


class Matching(str):
    """Equal to a text that begins and ends as it says, with ``*`` for whatever is between."""

    def __eq__(self, text):
        return fnmatchcase(text, self.replace("[", "[[]"))

    __hash__ = str.__hash__
