"""The ``gpubench cache`` command."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict

from gpubench.cache.inventory import KernelCache, Verification, kernel_cache
from gpubench.cache.removal import Removal


def add_cache_command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``cache [list|verify|prune|clear]`` with the parser of the command line.

    The parsed arguments get a `handler`, which takes them and returns the exit status: 0, or 1
    if `verify` finds a bad entry or a file can't be removed.
    """
    cache = _add(subparsers, "cache", _list, "show or clean CuPy's cache of compiled kernels")
    cache.set_defaults(path=None, json=False)
    actions = cache.add_subparsers(metavar="{list,verify,prune,clear}")
    _add(actions, "list", _list, "list the folder and its largest entries (the default)")
    _add(actions, "verify", _verify, "check every entry against its checksum")
    prune = _add(actions, "prune", _prune, "remove old entries")
    prune.add_argument("--older-than", metavar="AGE", help="for example 30d or 12h")
    prune.add_argument("--max-bytes", metavar="SIZE", help="for example 1G or 500M")
    clear = _add(actions, "clear", _clear, "remove all entries")
    for action in (prune, clear):
        action.add_argument("--yes", action="store_true", help="really remove; else only say what")


def _add(
    parent: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    handler: Callable[[argparse.Namespace], int],
    text: str,
) -> argparse.ArgumentParser:
    parser = parent.add_parser(name, help=text, description=text)
    # No default of an action may override what stands before it, as in `cache --json list`.
    parser.add_argument(
        "--path", default=argparse.SUPPRESS, help="the folder; by default the one that CuPy uses"
    )
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    parser.set_defaults(handler=handler)
    return parser


def _list(args: argparse.Namespace) -> int:
    cache = kernel_cache(args.path)
    _print(cache, args)
    if cache.entries and not args.json:
        print(cache.table())
    return 0


def _verify(args: argparse.Namespace) -> int:
    verification = kernel_cache(args.path).verify()
    _print(verification, args)
    return 0 if verification.ok else 1


def _prune(args: argparse.Namespace) -> int:
    cache = kernel_cache(args.path)
    limits = {"older_than": args.older_than, "max_bytes": args.max_bytes}
    return _report(cache.prune(**limits, dry_run=not args.yes), args)


def _clear(args: argparse.Namespace) -> int:
    return _report(kernel_cache(args.path).clear(dry_run=not args.yes), args)


def _report(removal: Removal, args: argparse.Namespace) -> int:
    _print(removal, args)
    if removal.dry_run and not args.json:
        print("Nothing was removed: that takes --yes.")
    return 1 if removal.failures else 0


def _print(value: KernelCache | Verification | Removal, args: argparse.Namespace) -> None:
    print(json.dumps(asdict(value), default=str, indent=2) if args.json else value)
