"""`run_suite`: goes over a suite in rounds, and keeps what each benchmark gives as it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from gpubench.progress import progress_bar
from gpubench.storage import Record, SavedResults
from gpubench.suites.agenda import Agenda
from gpubench.suites.case import FULL, QUICK
from gpubench.suites.files import suite_files
from gpubench.suites.keeping import Keeper
from gpubench.suites.ledger import Ledger
from gpubench.suites.schedule import Here, Scheduler
from gpubench.suites.selection import select


def run_suite(
    path: str | os.PathLike[str],
    *,
    only: str | None = None,
    params: Mapping[str, object] | None = None,
    save: str | os.PathLike[str] | None = None,
    resume: bool = False,
    quick: bool = False,
    scheduler: Scheduler | None = None,
    on_record: Callable[[Record], object] = lambda _: None,
    progress: bool | None = None,
) -> SavedResults:
    """Run a folder of benchmarks as asv has them, and ``gputime_*`` beside them.

    Each file runs in fresh processes, so what crashes or hangs is a record that says so. The suite
    is gone over in six rounds, each in another order, unless a benchmark says ``rounds``: what
    changes from process to process and with time then shows within a run, not between two.
    `Record.blocks` tells the round of each sample.

    Parameters
    ----------
    path : str or path-like
        A folder, or one file of it. What asv says of attributes holds: ``params``,
        ``param_names``, ``setup``, ``setup_cache``, ``teardown``, ``timeout``, ``number``,
        ``repeat``, ``rounds``, ``warmup_time``, ``sample_time``, ``unit`` and so on. ``time_*``
        take the host's time until the work is done, on GPUs, too; ``gputime_*`` the GPU's, after
        one setup a round, or one before each call with ``number = 1``. ``gpu_method``,
        ``gpu_devices`` and ``gpu_cache`` are then the arguments of `gpubench.benchmark`.
    only : str, optional
        A regular expression that occurs in a name, with or without the parameters.
    params : mapping of str to value or list of values, optional
        Only cases that have each of these parameters with such a value, or a value of such text.
    save : str or path-like, optional
        File of the results, written as each benchmark ends.
    resume : bool
        Whether to go on from that file: what is ok there isn't repeated.
    quick : bool
        Whether to take one round and few samples: to see that all runs, not to compare.
    scheduler : Scheduler, optional
        Imports the files and runs the tasks; by default here, one after the other.
    on_record : callable, optional
        Told of each benchmark that is done.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal.

    Returns
    -------
    SavedResults
        A record for each benchmark and set of parameters, and for each file that can't be
        imported. After Ctrl-C, those that lack rounds are ``"interrupted"``.

    Raises
    ------
    ArgumentError
        If nothing is selected, or an argument can't be used.
    """
    effort = QUICK if quick else FULL
    files = suite_files(path)
    scheduler = scheduler or Here()
    keeper = Keeper(save, files[0].root, quick, scheduler.environment)
    earlier = keeper.earlier() if resume else None
    found, unloadable = scheduler.discover(files)
    cases = select(found, only, params or {}) if found or not unloadable else []
    ledger = Ledger(cases, effort, unloadable)
    if earlier is not None:
        ledger.adopt(earlier)
    keeper.save(ledger.records)  # so that a file that can't be written is known now
    for record in unloadable:
        on_record(record)
    try:
        with progress_bar(progress, ledger.n_lacking, Path(files[0].root).name, "run") as advance:
            for outcome in scheduler.run(Agenda(ledger, effort)):
                record = ledger.add(outcome)
                keeper.save_if_cheap(ledger.records)
                advance(1)
                if record.status != "interrupted":
                    on_record(record)
    except KeyboardInterrupt:
        pass  # what was measured is returned, and says so
    finally:
        keeper.save(ledger.records)
    return SavedResults(
        records=tuple(ledger.records),
        environment=keeper.environment(ledger.records),
        path=None if save is None else os.fspath(save),
    )
