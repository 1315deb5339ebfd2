"""What the tests of all rounds share: the fixture `courier`."""

import pytest
from client import Daemon


@pytest.fixture
def courier(workspace):
    """Start a daemon: `courier()` over nothing, `courier(journal=TEXT)` over a journal that is there already."""
    daemons = []

    def start(journal=None, arguments=""):
        daemons.append(Daemon(workspace, journal, arguments))
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.close()


@pytest.fixture
def client(courier):
    """A connection to a daemon that has no messages."""
    return courier().client()


@pytest.fixture
def refused(workspace):
    """Start a daemon over a journal that is damaged: (status, standard output, standard error, journal)."""

    def start(journal):
        path = f"{workspace.path}/data/journal"
        workspace.write(path, journal)
        done = workspace.run(["python3", "-m", "courier", "--data", f"{workspace.path}/data"], timeout=20)
        return done.exit_code, done.stdout, done.stderr, workspace.read_text(path)

    return start
