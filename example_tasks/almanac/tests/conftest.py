"""What the tests of all rounds share: the fixture `almanac`."""

from ast import literal_eval

import pytest

QUERY = """\
import sqlite3, sys
database = sqlite3.connect("file:almanac.db?mode=ro", uri=True)
print(ascii(database.execute(sys.argv[1]).fetchall()))
"""


class Almanac:
    """A directory with a database of its own, and the program run in it."""

    def __init__(self, workspace):
        self.workspace = workspace
        self.path = None

    def complete(self, command, files=None):
        """Run a program in the directory, beside files (contents by name)."""
        self.path = self.path or self.workspace.path
        return self.workspace.run(command, files=files, cwd=self.path, timeout=20)

    def run(self, *arguments, files=None):
        """Run the program: (status, standard output, standard error)."""
        done = self.complete(["/app/almanac", *arguments], files)
        return done.exit_code, done.stdout, done.stderr

    def prints(self, *arguments, files=None):
        """Return what a command prints that has to succeed."""
        return self.prints_bytes(*arguments, files=files).decode()

    def prints_bytes(self, *arguments, files=None):
        done = self.complete(["/app/almanac", *arguments], files)
        assert (done.exit_code, done.stderr) == (0, "")
        return done.stdout_bytes

    def load(self, files):
        """Import files, which have to be in order, in this order."""
        return self.prints("import", *files, files=files)

    def rows(self, select):
        """Return what somebody else reads from the database."""
        done = self.complete(["python3", "-IS", "-c", QUERY, select])
        assert (done.exit_code, done.stderr) == (0, "")
        return literal_eval(done.stdout)

    def exported(self, names, directory="out"):
        """Return the files of these names in a directory, by name."""
        return {name: self.workspace.read(f"{self.path}/{directory}/{name}") for name in names}

    def take_over(self, database="almanac.db"):
        """Begin with a copy of the user's own database, on which the versions of the rounds before have worked."""
        self.path = self.path or self.workspace.path
        copy = self.workspace.run(["cp", f"/app/live/{database}", f"{self.path}/almanac.db"])
        assert (copy.exit_code, copy.stderr) == (0, "")


@pytest.fixture
def almanac(workspace):
    return Almanac(workspace)
