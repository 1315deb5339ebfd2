"""Settings of a stock directory: JSON with comment lines and trailing commas."""

import json
import os
import re

from stockroom.errors import DataError

DEFAULTS = {"currency": "EUR", "low": 5, "location": "main", "wait": 5000}
# A whole string, so that nothing inside of one is taken for a comma; or a comma with nothing but a bracket after it.
STRING_OR_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def read(directory):
    """The settings of this directory; of no other one, several can be open."""
    path = os.path.join(directory, "stockroom.conf")
    if not os.path.exists(path):
        return dict(DEFAULTS)
    try:
        with open(path, encoding="utf-8") as file:
            text = "".join(line for line in file if not line.strip().startswith("//"))
        found = json.loads(STRING_OR_LAST_COMMA.sub(lambda match: match[1] or "", text))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DataError("stockroom.conf: cannot read")
    settings = {**DEFAULTS, **found}
    if any(type(settings[key]) is not type(default) for key, default in DEFAULTS.items()) or settings["wait"] < 0:
        raise DataError("stockroom.conf: cannot read")
    return settings
