"""Run lessons without Jupyter: all, or those whose numbers are given.

    cd docs/pitfalls && python -m course [NUMBER ...] [--pictures FOLDER]

Prints what they print and display; pictures are written to the folder, if there is one.
"""

import argparse
from pathlib import Path

from course.pictures import Picture
from course.running import run


def main():
    """Run the lessons that the command line names."""
    parser = argparse.ArgumentParser(prog="course", description=__doc__.splitlines()[0])
    parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    for path in sorted(Path(__file__).parents[1].glob("[0-9]*.md")):
        number = int(path.stem[:2])
        if options.numbers and number not in options.numbers:
            continue
        print(f"\n=== {path.stem}")
        for place, shown in enumerate(run(path, {})):
            print(shown)
            if options.pictures and isinstance(shown, Picture):
                options.pictures.mkdir(parents=True, exist_ok=True)
                shown.figure.savefig(options.pictures / f"{path.stem}-{place}.png")


if __name__ == "__main__":
    main()
