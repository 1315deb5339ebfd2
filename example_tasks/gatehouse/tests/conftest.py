"""What the tests of all rounds share: `house`, in which otto is staff and anna and bert are members, and others.

No fixture asks anything of the program: a house is started by the first test that needs it.
"""

import pytest
from client import PASSWORD, PEOPLE, House, old_password


@pytest.fixture(scope="session")
def shared(workspace_session):
    """Return a house that tests share: the first one, or a new one where it has ended under a test."""
    houses = {}

    def find(prepare, password=PASSWORD):
        if prepare not in houses or houses[prepare].ended:
            houses[prepare] = House(workspace_session, prepare, password)
        return houses[prepare]

    return find


@pytest.fixture
def house(shared):
    """A house in which each test has things and, where it matters, people of its own."""
    return shared(House.populate)


@pytest.fixture
def old_records(shared):
    """A house whose data are of the time before the first round, and stay as they were; it may be started again."""
    return shared(lay_records, OLD_PASSWORD)


@pytest.fixture
def old_house(shared):
    """Another one, with things, bookings and people for each test that changes them; it may be started again."""
    return shared(lay_more_records, OLD_PASSWORD)


@pytest.fixture
def own_house(workspace):
    """A house of the test's own."""
    return House(workspace, House.inherit)


OLD_PASSWORD = "{name} of old"
OTHERS = ["carl", "dora", "emil", "fred", "gina", "hugo", "ines", "jost"]
RECORDS = {
    "users": [(*person, old_password(OLD_PASSWORD.format(name=person[0]))) for person in PEOPLE],
    "sessions": [("0123456789abcdef0123456789abcdef01234567", "anna")],
    "resets": [("123456", "anna", 4102444800)],
    "things": [(1, "room", "Old hall", "Yard"), (2, "key", "Cellar", "Board")],
    "bookings": [
        (1, 1, "anna", "3.4.2025 9:00", "3.4.2025 11:30", "from paper"),
        (2, 1, "gone", "12.10.2024 18:00", "13.10.2024 2:00", "from paper, too"),
        (3, 2, "bert", "2025-03-01T08:00", "2025-03-01T09:00", "typed in"),
        (7, 1, "anna", "21.1.2027 7:05", "21.1.2027 17:00", "from paper as well"),
        (20, 9, "=gone", "3.4.2025 9:00", "3.4.2025 11:30", "of what is gone"),
    ],
}
MORE_RECORDS = {
    "users": [(name, name.title(), "member", old_password(OLD_PASSWORD.format(name=name))) for name in OTHERS],
    "sessions": [("89abcdef0123456789abcdef0123456789abcdef", "emil")],
    "resets": [("654321", "emil", 4102444800)],
    "things": [(3, "room", "Old mill", "Yard"), (4, "room", "Old barn", "Yard")],
    "bookings": [
        (21, 3, "fred", "3.4.2025 9:00", "3.4.2025 11:30", "from paper"),
        (22, 4, "gina", "3.4.2025 9:00", "3.4.2025 11:30", "from paper"),
        (23, 4, "hugo", "12.10.2024 18:00", "13.10.2024 2:00", "from paper"),
        (24, 4, "gina", "21.1.2027 7:05", "21.1.2027 17:00", "from paper"),
        (25, 3, "ines", "1.1.2024 0:00", "1.1.2024 1:00", "from paper"),
        (30, 3, "ines", "21.1.2029 7:05", "21.1.2029 17:00", "to be cancelled"),
    ],
}
FILES = {
    "1/Plan Süd.pdf": b"%PDF- of old",
    "3/notes.txt": b"typed",
    "25/Plan.pdf": b"%PDF- as well",
    "500/letter.txt": b"cancelled long ago",
}


def lay_records(house):
    house.lay(RECORDS, FILES)


def lay_more_records(house):
    house.lay({table: rows + MORE_RECORDS[table] for table, rows in RECORDS.items()}, FILES)
