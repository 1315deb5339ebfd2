"""Machines that are retired, as the answer says, and weeks as they really are."""

import pytest
from names import backups

LIST = "machine,retired\nboreas,2024-04-20\n"


@pytest.mark.requirement("retired", kind="core")
def test_all_go_after_30_days(prune):
    """From the 31st day on all backups of a retired machine are printed, young ones and the newest included."""
    made = backups("boreas", "01-05", "04-20", "05-19") + backups("atlas", "01-05")
    assert prune("--retired retired.csv --today 2024-05-21", made, LIST) == (0, made[:3], "")


@pytest.mark.requirement("retired", kind="boundary")
def test_usual_rules_on_the_30th_day(prune):
    """On the 30th day the usual rules hold, however old the backups are."""
    made = backups("boreas", "01-04", "01-05", "01-06", "04-19")
    options = "--retired retired.csv --today 2024-05-20 --daily 3 --weekly 0"
    assert prune(options, made, LIST) == (0, made[:1], "")


@pytest.mark.requirement("retired", kind="boundary")
def test_later_day_counts(prune):
    """Of two days the later counts, wherever it stands; a day to come is fine."""
    made = backups("boreas", "01-05", "04-19")
    listed = "machine,retired\nboreas,2024-06-01\nboreas,2024-01-01\n"
    assert prune("--retired retired.csv --today 2024-05-21 --daily 1 --weekly 0", made, listed) == (0, made[:1], "")


@pytest.mark.requirement("unreadable", kind="error")
@pytest.mark.parametrize(
    "listed",
    [None, "boreas,2024-04-20\n", f"{LIST}atlas,2024-02-30\n", f"{LIST}atlas\n"],
    ids=["missing", "headless", "no-day", "one-part"],
)
def test_unreadable_list(prune, listed):
    """A list that cannot be relied on deletes nothing, not even by the usual rules."""
    made = backups("boreas", "01-05", "01-06") + backups("atlas", "01-05", "01-06")
    status, printed, error = prune("--retired retired.csv --today 2024-05-21 --daily 0 --weekly 0", made, listed)
    assert (status, printed) == (1, [])
    assert error.startswith("error: retired.csv: ")


@pytest.mark.requirement("weekly", kind="boundary")
def test_weeks_begin_on_sunday(prune):
    """Saturday is the last day of a week, and Sunday the first, also across the turn of the year."""
    made = backups("atlas", "04-20", "04-21", "04-27", "04-28", "12-28", "12-29", "2025-01-01T0200")
    assert prune("--daily 0 --weekly 9", made) == (0, [made[1], made[5]], "")
