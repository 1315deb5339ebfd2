"""Searching and sorting."""

import pytest


def rooms(house):
    """Add five things, and return their numbers."""
    rows = [
        ("room", "Küche", "Erdgeschoß"),
        ("key", "Garage", "board"),
        ("room", "Äther", "Dachboden"),
        ("room", "Küche", "Dachboden"),
        ("key", "boxroom", "Board"),
    ]
    return [house.thing(*row) for row in rows]


SEARCHES = [
    ("q=board", [1, 4]),
    ("q=BOX", [4]),
    ("q=K%C3%9CCHE", [0, 3]),
    ("q=%C3%A4THER", [2]),
    ("q=dach", [2, 3]),
    ("q=nowhere", []),
    ("q=board&kind=room", []),
    ("q=&kind=key", [1, 4]),
    ("kind=room", [0, 2, 3]),
    ("", [0, 1, 2, 3, 4]),
]


@pytest.mark.requirement("search-place", kind="core")
def test_search(house):
    """A search looks into names and places, in upper and lower case, and for one kind where it says so."""
    numbers = house.once(rooms)
    for query, found in SEARCHES:
        ids = [each["id"] for each in house.anna.got(f"/things?{query}")["things"]]
        assert [each for each in ids if each in numbers] == [numbers[each] for each in found], query


ORDERS = [
    ("sort=id", [0, 1, 2, 3, 4]),
    ("sort=-id", [4, 3, 2, 1, 0]),
    ("sort=kind", [1, 4, 0, 2, 3]),
    ("sort=-kind", [0, 2, 3, 1, 4]),
    ("sort=-place&kind=room", [0, 2, 3]),
    ("sort=place&kind=room", [2, 3, 0]),
    ("sort=-name&q=K%C3%BCche", [0, 3]),
]


@pytest.mark.requirement("sort", kind="core")
def test_sort_of_things(house):
    """Things are sorted by a column, the other way round with a minus, and by number where they are equal."""
    numbers = house.once(rooms)
    for query, found in ORDERS:
        ids = [each["id"] for each in house.anna.got(f"/things?{query}")["things"]]
        assert [each for each in ids if each in numbers] == [numbers[each] for each in found], query


ORDERS_OF_BOOKINGS = [
    ("from", [2, 3, 1, 20, 7]),
    ("-from", [7, 1, 20, 3, 2]),
    ("to", [2, 3, 1, 20, 7]),
    ("-to", [7, 1, 20, 3, 2]),
    ("-thing", [20, 3, 1, 2, 7]),
    ("thing", [1, 2, 7, 3, 20]),
    ("-id", [20, 7, 3, 2, 1]),
]


@pytest.mark.requirement("sort", kind="integration")
def test_sort_of_bookings(old_records):
    """Bookings are sorted by time as times, also where some are from paper."""
    for sort, found in ORDERS_OF_BOOKINGS:
        assert [each["id"] for each in old_records.otto.got(f"/bookings?sort={sort}")["bookings"]] == found
