"""``gpubench show``."""

from __future__ import annotations

import argparse

from gpubench.cli.output import add_json, print_json

HELP = "show a file of results, of gpubench or of pytest-benchmark, NVBench or asv"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="the results")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=("markdown", "csv", "html"), help="a table to paste or to read on"
    )
    add_json(form)
    parser.add_argument(
        "--histogram", action="store_true", help="add each result's histogram and notes"
    )


def execute(options: argparse.Namespace) -> int:
    """Print the file's records."""
    from gpubench.errors import ArgumentError
    from gpubench.render import saved as render
    from gpubench.storage import load
    from gpubench.storage.schema import file_to_dict

    if options.histogram and (options.json or options.format == "csv"):
        form = "--json" if options.json else "--format csv"
        raise ArgumentError(f"--histogram can't be drawn with {form}: leave one of them out")
    saved = load(options.file)
    if options.json:
        print_json(file_to_dict(saved.records, saved.environment))
    elif options.format == "csv":
        print(render.as_csv(saved), end="")
    elif options.format == "markdown":
        print(render.as_markdown(saved, histograms=options.histogram))
    elif options.format == "html":
        print(render.as_html(saved, histograms=options.histogram))
    else:
        print(render.as_text(saved, histograms=options.histogram))
    return 0
