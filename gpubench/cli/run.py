"""``gpubench run``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gpubench.cli.output import add_json, colour, print_json

if TYPE_CHECKING:
    from gpubench.storage import Record
    from gpubench.suites.schedule import Scheduler

HELP = "run a folder of benchmarks in asv's style"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="the folder, or one Python file of it")
    parser.add_argument(
        "-b",
        "--bench",
        metavar="REGEX",
        help="only benchmarks in whose name, with or without parameters, this occurs",
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        type=_name_and_value,
        metavar="NAME=VALUE",
        help="only benchmarks with this value of a parameter; more of one name are alternatives",
    )
    parser.add_argument("--save", metavar="FILE", help="write the results there as they come")
    parser.add_argument(
        "--quick", action="store_true", help="one round and few samples, to see whether all run"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on from FILE, without repeating what is ok there"
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run on the workers of this Dask scheduler, one benchmark at a time on each GPU",
    )
    add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Run the suite; print a line for each benchmark as it is done.

    Returns
    -------
    int
        1 if one failed, 130 after Ctrl-C.
    """
    from tqdm import tqdm

    from gpubench.storage.schema import file_to_dict
    from gpubench.suites.run import run_suite

    def show(record: Record) -> None:
        if not options.json:
            # Above the bar, if there is one; Ctrl-C while tqdm takes its lock would break it.
            tqdm.write(_line(record), nolock=True)
            sys.stdout.flush()

    params: dict[str, list[str]] = {}
    for name, value in options.param:
        params.setdefault(name, []).append(value)
    with _scheduler(options.scheduler) as scheduler:
        saved = run_suite(
            options.path,
            only=options.bench,
            params=params,
            save=options.save,
            resume=options.resume,
            quick=options.quick,
            scheduler=scheduler,
            on_record=show,
        )
    statuses = [record.status for record in saved.records]
    if options.json:
        print_json(file_to_dict(saved.records, saved.environment))
    else:
        counts = {status: statuses.count(status) for status in dict.fromkeys(statuses)}
        print(", ".join(f"{count} {status}" for status, count in counts.items()))
    if "interrupted" in statuses:
        return 130
    return 1 if "failed" in statuses else 0


@contextmanager
def _scheduler(address: str | None) -> Iterator[Scheduler | None]:
    """Yield who runs the suite; None for this machine."""
    if address is None:
        yield None
        return
    from gpubench.integrations.dask.cluster import connect
    from gpubench.integrations.dask.suites import DaskScheduler

    with connect(address) as client:
        yield DaskScheduler(client)


def _name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _line(record: Record) -> str:
    """Return name, median with interval, and codes of notes; or what else became of it."""
    from gpubench.render.content import longest, median_text, visible
    from gpubench.render.units import common_unit, format_value

    words = [visible(record.key)]
    if record.status != "ok":
        reason = "\n    ".join(map(visible, record.reason.splitlines()))
        words.append(f"{colour(record.status, 'red')}: {reason}")
    elif record.result is not None:
        statistics = longest(record.result).statistics
        words.append(median_text(statistics, common_unit(statistics.median)))
        notes = record.result.notes
        words += [f"[{', '.join(note.code for note in notes)}]"] * bool(notes)
    elif record.value is not None:
        words.append(visible(format_value(record.value, record.unit)))
    return "  ".join(words)
