"""What the tests of all rounds share: the fixtures `office` and `seen`."""

import json
import shlex
from functools import cache

import pytest
from together import SEPARATOR, Case, Seen, answering, answers, play


class Office:
    """A directory with a database of its own, and the program run in it.

    What `load` and `take_over` ask for is done together with the command after it.
    """

    def __init__(self, workspace):
        self._workspace = workspace
        self._first = []
        self._files = {}

    def run(self, *arguments, **files):
        """Run the program beside files (`a` is a.csv): (status, standard output, standard error)."""
        done = self._run(shlex.join(["/app/meters", *arguments]), files)
        return done.exit_code, done.stdout, done.stderr

    def each(self, *calls, **files):
        """Run the program once for each call, a text: [(status, output, errors)], without line ends."""
        return answers(self._run(answering(f"/app/meters {call}" for call in calls), files).stdout)

    def load(self, *texts):
        """Import files that are in order, in this order."""
        names = []
        for text in texts:
            names.append(f"f{len(self._files)}.csv")
            self._files[names[-1]] = text
        self._first.append(f"/app/meters import {' '.join(names)} > /dev/null || exit 70")

    def exists(self):
        """Whether there is a database."""
        return self._run("test -e meters.db", {}).exit_code == 0

    def rows(self, select):
        """Return what a query by the sqlite3 program answers: a table for each row."""
        return self.tables(select)[0]

    def tables(self, *selects):
        """Return what several queries by the sqlite3 program answer."""
        separated = [part for select in selects for part in (select, f".print {SEPARATOR}")]
        done = self._run(shlex.join(["sqlite3", "-readonly", "-json", "meters.db", *separated]), {})
        assert (done.exit_code, done.stderr) == (0, "")
        return [json.loads(part.strip() or "[]") for part in done.stdout.split(SEPARATOR)[:-1]]

    def values(self, select):
        """Return the rows of a query as tuples."""
        return [tuple(row.values()) for row in self.rows(select)]

    def contents(self, *views):
        """Return the rows of views as sorted tuples."""
        tables = self.tables(*(f"SELECT * FROM {view} ORDER BY 1, 2, 3" for view in views))
        return [sorted(tuple(row.values()) for row in rows) for rows in tables]

    def report(self, month):
        """Return the lines of a report."""
        return self._lines("report", month)

    def bill(self, month):
        """Return the lines of the bills that are issued."""
        return self._lines("bill", month)

    def take_over(self, database="meters.db"):
        """Begin with a copy of the user's own database, on which versions of rounds before have worked."""
        self._first.append(f"cp /app/live/{database} meters.db || exit 70")

    def _lines(self, *arguments):
        status, output, errors = self.run(*arguments)
        assert (status, errors) == (0, "")
        return output.splitlines()

    def _run(self, command, files):
        contents = self._files | {f"{name}.csv": text for name, text in files.items()}
        contents = {name: text.encode() if isinstance(text, str) else text for name, text in contents.items()}
        script = "\n".join([*self._first, command])
        self._first, self._files = [], {}
        return self._workspace.run(script, files=contents, cwd=self._workspace.path, timeout=30)


@pytest.fixture
def office(workspace):
    return Office(workspace)


@pytest.fixture(scope="module")
def shared_office(workspace_module):
    """One for the tests of a module, which look at what was done in it once."""
    return Office(workspace_module)


def pytest_configure(config):
    config.addinivalue_line("markers", "imports(*calls, asks, group): what the fixture `seen` shows")


@pytest.fixture(scope="session")
def _together(request, workspace_session):
    """The cases that share a database, by their ids, and what `play` returns of all those of a group."""
    items = [item for item in request.session.items if item.get_closest_marker("imports")]
    cases = {item.nodeid: Case(number, item.get_closest_marker("imports")) for number, item in enumerate(items)}

    @cache
    def played(group):
        return play(workspace_session, [case for case in cases.values() if case.group == group])

    return cases, played


@pytest.fixture
def seen(request, workspace, _together):
    """What there is of a case after what its marker `imports` asks for.

    Where the program does not manage the files of all cases, each case is played alone, and only the one fails that is
    about what is wrong.
    """
    cases, played = _together
    case = cases[request.node.nodeid]

    @cache
    def calls():
        return played(case.group) or play(workspace, [case])

    return Seen(case, calls)
