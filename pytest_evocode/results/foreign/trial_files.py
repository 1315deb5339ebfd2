"""The files of a trial that another harness wrote: none is read that a link leads out to, no pipe and no device."""

from __future__ import annotations

from pathlib import Path

from pytest_evocode.results.plain_files import open_plain


class TrialFiles:
    """Reads files of a trial, and keeps what it refused for the reader of the results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """The trial's directory."""
        self.problems: list[str] = []
        """A line for each file that is there and was not read, with the reason."""

    def read(self, path: Path, most: int = -1) -> bytes | None:
        """Return a file's first bytes, all of them by default; None where there is none, or where it is refused."""
        try:
            return self.read_or_refuse(path, most)
        except OSError as error:
            self.refuse(path, error)
            return None

    def refuse(self, path: Path, error: OSError) -> None:
        """Note that a file is not read."""
        self.problems.append(f"{path}: {error.strerror}; not read, and the trial counts without it")

    def read_or_refuse(self, path: Path, most: int = -1) -> bytes | None:
        """Return a file's first bytes, or None where there is none; raises OSError where it is not to be read."""
        try:
            with open_plain(path, within=self.path) as file:
                return file.read(most)
        except (FileNotFoundError, NotADirectoryError):
            return None
