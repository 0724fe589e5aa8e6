"""What timers print, whatever the times are."""

import re


def printed(capsys):
    """Return the lines that were printed, with # for each time."""
    return re.sub(r"\d+\.\d\d ms", "# ms", capsys.readouterr().out).splitlines()
