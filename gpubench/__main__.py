# PYTHON_ARGCOMPLETE_OK
"""``python -m gpubench`` is the command ``gpubench``."""

from gpubench.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
