"""The journal: one record a line, appended before a request is answered."""

import io
import os


class Damage(Exception):
    """A line that is no record."""


class Journal:
    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self._path = os.path.join(directory, "journal")
        self._file = io.BufferedWriter(io.FileIO(self._path, "ab"))

    def replay(self, apply):
        """Call `apply` with the words of each record; raises Damage where that raises ValueError."""
        with open(self._path, "rb") as file:
            *lines, torn = file.read().split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                apply(line.decode("ascii").split(" "))
            except ValueError:
                raise Damage(f"journal:{number}: this is no record") from None
        if torn:  # It was never answered. Without it, what comes next begins a line.
            self._file.truncate(sum(len(line) + 1 for line in lines))

    def append(self, *words):
        self._file.write(" ".join(map(str, words)).encode("ascii") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
