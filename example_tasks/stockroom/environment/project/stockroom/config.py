"""Settings of a stock directory."""
import os

DEFAULTS = {"currency": "EUR", "low": 5, "location": "main"}
settings = dict(DEFAULTS)


def read(directory):
    settings.update(DEFAULTS)
    path = os.path.join(directory, "stockroom.conf")
    if os.path.exists(path):
        text = ""
        for line in open(path):
            if not line.strip().startswith("//"):
                text = text + line
        # almost JSON, so Python can read it
        settings.update(eval(text, {"true": True, "false": False, "null": None}))
