"""``gpubench cache``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from gpubench.cli.output import print_json

if TYPE_CHECKING:
    from gpubench.cache import KernelCache, Removal, Verification

HELP = "show or clean CuPy's cache of compiled kernels"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions, and what they have in common, before and behind their names."""
    parser.set_defaults(path=None, json=False, act=_list)
    _add_common(parser)
    actions = parser.add_subparsers(metavar="{list,verify,prune,clear}")
    _add(actions, "list", _list, "list the folder and its largest entries (the default)")
    _add(actions, "verify", _verify, "check every entry against its checksum")
    prune = _add(actions, "prune", _prune, "remove old entries")
    prune.add_argument("--older-than", metavar="AGE", help="for example 30d or 12h")
    prune.add_argument("--max-bytes", metavar="SIZE", help="for example 1G or 500M")
    clear = _add(actions, "clear", _clear, "remove all entries")
    for action in (prune, clear):
        action.add_argument("--yes", action="store_true", help="really remove; else only say what")


def execute(options: argparse.Namespace) -> int:
    """List the cache, or do with it what the action says.

    Returns
    -------
    int
        1 if `verify` finds a bad entry or a file can't be removed.
    """
    act: Callable[[argparse.Namespace], int] = options.act
    return act(options)


def _add(
    parent: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    act: Callable[[argparse.Namespace], int],
    text: str,
) -> argparse.ArgumentParser:
    parser = parent.add_parser(name, help=text, description=text)
    parser.set_defaults(act=act)
    _add_common(parser)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    # No default of an action may override what stands before it, as in `cache --json list`.
    parser.add_argument(
        "--path", default=argparse.SUPPRESS, help="the folder; by default the one that CuPy uses"
    )
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def _list(options: argparse.Namespace) -> int:
    from gpubench.cache import kernel_cache

    cache = kernel_cache(options.path)
    _print(cache, options)
    if cache.entries and not options.json:
        print(cache.table())
    return 0


def _verify(options: argparse.Namespace) -> int:
    from gpubench.cache import kernel_cache

    verification = kernel_cache(options.path).verify()
    _print(verification, options)
    return 0 if verification.ok else 1


def _prune(options: argparse.Namespace) -> int:
    from gpubench.cache import kernel_cache

    limits = {"older_than": options.older_than, "max_bytes": options.max_bytes}
    return _report(kernel_cache(options.path).prune(**limits, dry_run=not options.yes), options)


def _clear(options: argparse.Namespace) -> int:
    from gpubench.cache import kernel_cache

    return _report(kernel_cache(options.path).clear(dry_run=not options.yes), options)


def _report(removal: Removal, options: argparse.Namespace) -> int:
    _print(removal, options)
    if removal.dry_run and not options.json:
        print("Nothing was removed: that takes --yes.")
    return 1 if removal.failures else 0


def _print(value: KernelCache | Verification | Removal, options: argparse.Namespace) -> None:
    if options.json:
        print_json(asdict(value))
    else:
        print(value)
