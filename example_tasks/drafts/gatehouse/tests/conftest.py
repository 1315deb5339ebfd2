"""What the tests of all rounds share: `house`, in which otto is staff and anna and bert are members, and empty ones."""

import pytest
from client import PEOPLE, House, old_password


@pytest.fixture(scope="session")
def _house():
    return []


@pytest.fixture
def house(workspace_session, _house):
    """A house that tests share: each has things and, where it matters, people of its own."""
    if not _house or not _house[-1].process.running:  # The first one, or one that has ended under a test.
        _house.append(House(workspace_session).populate())
    return _house[-1]


@pytest.fixture(scope="module")
def module_house(workspace_module):
    """A house for the tests of a module that look at all things there are."""
    return House(workspace_module).inherit()


@pytest.fixture
def own_house(workspace):
    """A house of the test's own, which may be started again."""
    return House(workspace).inherit()


@pytest.fixture
def empty_house(workspace):
    """Make a house in which nothing is, and which was not started: `empty_house(arguments, env)`."""
    return lambda arguments="", env=None: House(workspace, arguments, env)


@pytest.fixture
def old_house(workspace):
    """A house whose data are of the time before the first round."""
    return of_old(workspace)


@pytest.fixture(scope="session")
def old_records(workspace_session):
    """The same for tests that change nothing."""
    return of_old(workspace_session)


def of_old(workspace):
    rows = {
        "users": [(*person, old_password(f"{person[0]} of old")) for person in PEOPLE],
        "sessions": [("0123456789abcdef0123456789abcdef01234567", "anna")],
        "resets": [("123456", "anna", 4102444800)],
        "things": [(1, "room", "Old hall", "Yard"), (2, "key", "Cellar", "Board")],
        "bookings": [
            (1, 1, "anna", "3.4.2025 9:00", "3.4.2025 11:30", "from paper"),
            (2, 1, "gone", "12.10.2024 18:00", "13.10.2024 2:00", "from paper, too"),
            (3, 2, "bert", "2025-03-01T08:00", "2025-03-01T09:00", "typed in"),
            (7, 1, "anna", "21.1.2027 7:05", "21.1.2027 17:00", "from paper as well"),
        ],
    }
    files = {"1/Plan Süd.pdf": b"%PDF- of old", "3/notes.txt": b"typed", "8/letter.txt": b"cancelled long ago"}
    return House(workspace).lay(rows, files).start()
