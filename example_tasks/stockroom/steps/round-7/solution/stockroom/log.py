"""One line of JSON for each command."""

import datetime
import json
import os
import sys
import time

WITH_SKU = ("add", "put", "take", "show", "history", "reserve")


class Entry:
    """A command from its begin to its line in the log."""

    def __init__(self, args):
        self.command = args[0]
        self.sku = args[1] if args[0] in WITH_SKU else None
        self.error = None
        self.begin = time.monotonic()

    def append(self, status):
        """Writes the line, if a log is wanted. A log that fails never fails the command."""
        path = os.environ.get("STOCKROOM_LOG")
        if not path:
            return
        fields = {
            "at": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": self.command,
            "sku": self.sku,
            "exit": status,
            "error": self.error,
            "ms": round((time.monotonic() - self.begin) * 1000),
        }
        # ASCII only: JSON then escapes line ends and lone surrogates. One write, so that lines never mix.
        line = json.dumps(fields).encode("ascii") + b"\n"
        try:
            with open(path, "ab", buffering=0) as file:
                file.write(line)
        except OSError:
            sys.stderr.write("warning: cannot write log\n")
