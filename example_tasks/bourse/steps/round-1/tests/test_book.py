"""The book between two days."""

import pytest

BOOK = "bourse 1\nASK z rye 120 5\nBID a rye 100 7\nASK b rye 120 5\nBID c oats 3 1000000\n"


@pytest.mark.requirement("book-written", kind="core")
def test_written(bourse):
    """What rests is written in the order in which it came, and what is gone is not."""
    sent = "ASK z rye 120 5\nBID a rye 100 7\nASK q rye 110 1\nASK b rye 120 5\nBID c oats 3 1000000\nCANCEL q\n"
    book = bourse.day(sent)[1]
    assert (book.split()[0], bourse.orders(book)) == ("bourse", bourse.orders(BOOK))


@pytest.mark.requirement("book-left", kind="core", retired="round-3")
def test_what_is_left_is_written(bourse):
    """An order that has traded is written with what is left of it."""
    book = bourse.day("ASK z rye 120 9\nBID y rye 120 4\n")[1]
    assert bourse.orders(book) == ["ASK z rye 120 5"]


@pytest.mark.requirement("book-first-line", kind="core", retired="round-3")
def test_first_line(bourse):
    """The book that is written begins with a line that says so, also when nothing rests."""
    answers, book = bourse.day("BID a rye 3 1\nASK b rye 3 1\n")
    assert (answers, book) == ("REST a 1\nTRADE rye 3 1 b a\nDONE b\n", "bourse 1\n")


@pytest.mark.requirement("book-read", kind="integration")
def test_next_day(bourse):
    """A day begins with what rested at the end of the day before, in its order."""
    answers, book = bourse.day("BID d rye 120 5\nCANCEL c\n", BOOK)
    assert answers == "TRADE rye 120 5 d z\nDONE d\nGONE c 1000000\n"
    assert bourse.orders(book) == ["BID a rye 100 7", "ASK b rye 120 5"]
    assert bourse.answers("BEST rye", with_book=True) == "BEST rye 100 7 120 5\n"


@pytest.mark.requirement("book-read", kind="boundary")
def test_reading_trades_nothing(bourse):
    """Orders of a book whose prices meet rest beside each other until somebody comes."""
    answers, book = bourse.day("BEST rye\n", "bourse 1\nASK a rye 90 5\nBID b rye 100 5\n")
    assert answers == "BEST rye 100 5 90 5\n"
    assert bourse.orders(book) == ["ASK a rye 90 5", "BID b rye 100 5"]


@pytest.mark.requirement("book-read", kind="boundary")
def test_without_the_option(bourse):
    """Without the option nothing is read."""
    bourse.write(BOOK)
    assert bourse.answers("BID e rye 10 2\nBEST rye\n") == "REST e 2\nBEST rye 10 2 - -\n"


@pytest.mark.requirement("damage", kind="error")
@pytest.mark.parametrize(
    ("book", "line"),
    [
        ("", 1),
        ("bourse\nASK z rye 120 5\n", 1),
        ("bourse 1\nASK z rye 120 5\nCANCEL z\n", 3),
        ("bourse 1\nASK z rye 120 5\nASK y rye 120 5\nBID z rye 1 5\n", 4),
    ],
    ids=["empty", "no-number", "no-order", "twice"],
)
def test_damaged(bourse, book, line):
    """A file that is no book is refused by the line of its fault, and stays as it is."""
    bourse.write(book)
    status, answers, errors = bourse.run("BEST rye\n", with_book=True)
    assert (status, answers, errors.count("\n")) == (3, "", 1)
    assert errors.startswith(f"bourse: {bourse.path}:{line}: ")
    assert bourse.book() == book
