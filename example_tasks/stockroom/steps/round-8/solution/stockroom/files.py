"""Files that are written as a whole or not at all."""

import os
from contextlib import suppress

from stockroom.errors import WriteError


def replace(path, data, name):
    """Puts a file in the place of what is there; in errors it has this name."""
    beside = path + ".new"
    try:
        try:
            with open(beside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError:
            with suppress(OSError):
                os.remove(beside)
            raise
    except (OSError, ValueError):
        raise WriteError(f"cannot write: {name}") from None
