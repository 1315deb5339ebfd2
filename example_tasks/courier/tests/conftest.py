"""What the tests of all rounds share: the fixture `courier`."""

import time

import pytest
from client import KEEP_BYTECODE, Daemon


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


@pytest.fixture(scope="session")
def _shared():
    return []


@pytest.fixture
def shared(workspace_session, _shared):
    """The daemon of all cases that keep to queues of their own and never end it; a new one where it has ended."""
    if not _shared or not _shared[-1].process.running:
        _shared.append(Daemon(workspace_session, None, "", f"shared-{len(_shared)}"))
    return _shared[-1]


@pytest.fixture
def refused(workspace):
    """Start a daemon over a journal that is damaged: (status, standard output, standard error, journal)."""

    def start(journal):
        path = f"{workspace.path}/data/journal"
        workspace.write(path, journal)
        command = ["python3", "-m", "courier", "--data", f"{workspace.path}/data"]
        done = workspace.run(command, env=KEEP_BYTECODE, timeout=20)
        return done.exit_code, done.stdout, done.stderr, workspace.read_text(path)

    return start


@pytest.fixture(scope="session", autouse=True)
def _begin(request, workspace_session):
    """Begin, before the first case, what lets a second pass, so that it has passed when a case looks.

    The function `begin_NAME(start)` beside a case `test_NAME` does so, with a daemon of its own.
    """
    begun, daemons = {}, []

    def start(arguments=""):
        daemons.append(Daemon(workspace_session, None, arguments, f"data-{len(daemons)}"))
        return daemons[-1]

    def begin(item):
        if item.nodeid not in begun:
            try:
                begun[item.nodeid] = getattr(item.module, item.originalname.replace("test_", "begin_", 1))(start)
            except Exception as error:  # The case itself tells of it; the others have nothing to do with it.
                begun[item.nodeid] = error
        return begun[item.nodeid]

    deadline = time.monotonic() + 20  # Of daemons that do not answer, one is enough here.
    for item in request.session.items:
        if "begun" in item.fixturenames and time.monotonic() < deadline:
            begin(item)
    yield begin
    for daemon in daemons:
        daemon.close()


@pytest.fixture
def begun(request, _begin):
    """Return what the case's own `begin_` function has returned; what went wrong there fails the case that asks."""

    def get():
        what = _begin(request.node)
        if isinstance(what, Exception):
            raise what
        return what

    return get
