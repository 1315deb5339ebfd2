"""Settings of a stock directory."""

import os

DEFAULTS = {"currency": "EUR", "low": 5, "location": "main"}


def read(directory):
    """The settings of this directory; of no other one, several can be open."""
    settings = dict(DEFAULTS)
    path = os.path.join(directory, "stockroom.conf")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = "".join(line for line in file if not line.strip().startswith("//"))
        # almost JSON, so Python can read it
        settings.update(eval(text, {"true": True, "false": False, "null": None}))
    return settings
