"""What the tests of all rounds share: the fixture `office`."""

import json

import pytest


class Office:
    """A directory with a database of its own, and the program run in it."""

    def __init__(self, workspace):
        self._workspace = workspace

    def run(self, *arguments, **files):
        """Run the program beside files (`a` is a.csv): (status, standard output, standard error)."""
        contents = {f"{name}.csv": text.encode() if isinstance(text, str) else text for name, text in files.items()}
        path = self._workspace.path
        done = self._workspace.run(["/app/meters", *arguments], files=contents, cwd=path, timeout=20)
        return done.exit_code, done.stdout, done.stderr

    def load(self, *texts):
        """Import files that are in order, in this order."""
        files = {f"f{number}": text for number, text in enumerate(texts)}
        status, _, errors = self.run("import", *(f"{name}.csv" for name in files), **files)
        assert (status, errors) == (0, "")

    def rows(self, select):
        """Return what a query by the sqlite3 program answers: a table for each row."""
        command = ["sqlite3", "-readonly", "-json", "meters.db", select]
        done = self._workspace.run(command, cwd=self._workspace.path, timeout=20)
        assert (done.exit_code, done.stderr) == (0, "")
        return json.loads(done.stdout or "[]")

    def values(self, select):
        """Return the rows of a query as tuples."""
        return [tuple(row.values()) for row in self.rows(select)]

    def report(self, month):
        """Return the lines of a report."""
        status, output, errors = self.run("report", month)
        assert (status, errors) == (0, "")
        return output.splitlines()

    def bill(self, month):
        """Return the lines of the bills that are issued."""
        status, output, errors = self.run("bill", month)
        assert (status, errors) == (0, "")
        return output.splitlines()

    def take_over(self, database="meters.db"):
        """Begin with a copy of the user's own database, on which versions of rounds before have worked."""
        copy = ["cp", f"/app/live/{database}", f"{self._workspace.path}/meters.db"]
        done = self._workspace.run(copy, cwd="/app")
        assert (done.exit_code, done.stderr) == (0, "")


@pytest.fixture
def office(workspace):
    return Office(workspace)
