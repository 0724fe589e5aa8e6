"""A session of pytest in which something is benchmarked: what is timed, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpubench.comparison.run_comparison import RunComparison
from gpubench.comparison.runs import compare_runs
from gpubench.errors import GpubenchError
from gpubench.integrations.pytest_plugin.fixture import GpuBenchmark
from gpubench.integrations.pytest_plugin.settings import Settings, read_settings
from gpubench.integrations.pytest_plugin.summary import failures, summary
from gpubench.storage import Record, save
from gpubench.storage.pace import Pace
from gpubench.storage.record import Status

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

_STATUSES: dict[str, Status] = {"passed": "ok", "failed": "failed", "skipped": "skipped"}


class BenchmarkSession:
    """Collects what the tests of a session time; pytest calls its methods as hooks.

    Parameters
    ----------
    settings : Settings
        What is to be done with it.

    Attributes
    ----------
    settings : Settings
        The same.
    comparison : RunComparison or None
        How it compares with the baseline, at the end; None if nothing does.
    n_untimed : int
        How many functions were called without being timed.
    trouble : str
        Why results couldn't be saved; empty if they could.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.comparison: RunComparison | None = None
        self.n_untimed = 0
        self.trouble = ""
        self._records: dict[str, list[Record]] = {}  # by node id
        self._running: dict[str, GpuBenchmark] = {}
        self._reports: dict[str, pytest.TestReport] = {}  # what tells how a running test ended
        self._pace = Pace()

    @property
    def records(self) -> list[Record]:
        """What was timed, in the order in which it ran."""
        return [record for timed in self._records.values() for record in timed]

    @property
    def must_fail(self) -> bool:
        """Whether a benchmark is slower and mustn't be, or nothing is known about that."""
        if not self.settings.fail_on_slower:
            return False
        comparison = self.comparison
        return comparison is None or not comparison.changes or comparison.counts["slower"] > 0

    def benchmark_for(self, item: pytest.Item) -> GpuBenchmark:
        """Return the fixture of a test that begins."""
        self._records.pop(item.nodeid, None)  # if the test runs once more
        self._running[item.nodeid] = GpuBenchmark(self, item)
        return self._running[item.nodeid]

    def add(self, item: pytest.Item, record: Record) -> None:
        """Keep what a test has timed.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C ended it early, so that it ends the session, too.
        """
        interrupted = record.result is not None and record.result.interrupted
        if interrupted:
            record = replace(record, status="interrupted")
        self._records.setdefault(item.nodeid, []).append(record)
        if interrupted:
            raise KeyboardInterrupt

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Learn how a test ends, and settle what its times are worth: nothing, if it failed.

        One with subtests has a report of each before its own, and failed if any of them did.
        """
        test = report.nodeid
        if test not in self._running:
            return
        if report.outcome not in _STATUSES:  # it will run once more
            self._records.pop(test, None)
            del self._running[test]
            self._reports.pop(test, None)
        elif report.when != "teardown":
            if test not in self._reports or self._reports[test].outcome != "failed":
                self._reports[test] = report
        else:
            self._settle(self._running.pop(test), self._reports.pop(test))

    def _settle(self, fixture: GpuBenchmark, report: pytest.TestReport) -> None:
        status = _STATUSES[report.outcome]
        if status != "ok":
            timed = self._records.get(report.nodeid) or [fixture.record()]
            self._records[report.nodeid] = [
                replace(record, status=status, reason=_reason(report), result=None)
                for record in timed
            ]
        if self._pace.is_due:
            self._save()

    def _save(self) -> None:
        """Save what there is, so that a crash of a later test loses little of it."""
        if self.settings.save is None or not self.records:
            return
        try:
            with self._pace.saving():
                save(self.settings.save, self.records)
            self.trouble = ""
        except (GpubenchError, OSError) as error:
            self.trouble = str(error)

    def _compare(self) -> None:
        baseline = self.settings.baseline
        if baseline is None:
            return
        keys = {record.key for record in self.records}
        saved = [record for record in baseline.records if record.key in keys]
        if saved:  # tests that weren't selected are no news
            self.comparison = compare_runs(
                replace(baseline, records=tuple(saved)), self.records, margin=self.settings.margin
            )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Save and compare what was timed, and let the session fail if it has to."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["gpubench"] = self.n_untimed
            return
        self._save()
        self._compare()
        if session.exitstatus == pytest.ExitCode.OK and failures(self):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print what was timed below the tests."""
        lines, failed_by = summary(self), failures(self)
        if lines or failed_by:
            terminalreporter.write_sep("=", "gpubench")
        for line in lines:
            terminalreporter.write_line(line)
        for line in failed_by:
            terminalreporter.write_line(line, red=True)


def _reason(report: pytest.TestReport) -> str:
    """Return in one line why a test failed or was skipped."""
    if hasattr(report, "wasxfail"):
        return f"xfail: {report.wasxfail}".removesuffix(": ")
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        reason: str = crash.message
    elif isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
    else:
        reason = report.longreprtext
    return reason.partition("\n")[0]


_KEY = pytest.StashKey[BenchmarkSession]()


def session_of(config: pytest.Config) -> BenchmarkSession:
    """Return the session, which begins when it is first asked for.

    Raises
    ------
    pytest.UsageError
        If the options are wrong.
    """
    if _KEY not in config.stash:
        config.stash[_KEY] = BenchmarkSession(read_settings(config))
        config.pluginmanager.register(config.stash[_KEY], "gpubench-session")
    return config.stash[_KEY]
