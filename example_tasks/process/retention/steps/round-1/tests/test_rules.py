"""Which backups may go."""

import pytest
from names import backups


@pytest.mark.requirement("newest", kind="core")
def test_newest_is_kept(prune):
    """Of each machine the newest is kept when no days and no weeks are; the order is that of the input."""
    atlas, mail = backups("atlas", "03-02", "03-01", "02-28"), backups("mail-2", "01-02")
    assert prune("--daily 0 --weekly 0", [atlas[1], *mail, atlas[0], atlas[2]]) == (0, [atlas[1], atlas[2]], "")


@pytest.mark.requirement("daily", kind="core")
def test_latest_days(prune):
    """Days without a backup do not count, and of a day with several the newest is kept."""
    made = backups("atlas", "03-01", "2024-03-05T0200", "2024-03-05T1430", "03-20", "03-21")
    assert prune("--daily 3 --weekly 0", made) == (0, made[:2], "")


@pytest.mark.requirement("weekly", kind="core")
def test_latest_weeks(prune):
    """Weeks without a backup do not count, and of a week with several the newest is kept."""
    made = backups("atlas", "03-05", "03-06", "03-26", "03-27", "04-16")
    assert prune("--daily 0 --weekly 2", made) == (0, made[:3], "")


@pytest.mark.requirement("weekly", kind="boundary", retired="round-3")
def test_weeks_begin_on_monday(prune):
    """Sunday is the last day of a week, and Monday the first, also when it is the 30th of December."""
    made = backups("atlas", "04-21", "04-22", "04-28", "04-29", "12-29", "12-30", "2025-01-01T0200")
    assert prune("--daily 0 --weekly 9", made) == (0, [made[1], made[5]], "")


@pytest.mark.requirement("defaults", kind="boundary")
def test_seven_days_and_four_weeks(prune):
    """Without options seven days and four weeks are kept."""
    days = "03-05 03-06 03-07 03-12 03-13 03-14 03-19 03-20 03-21 03-26 03-27 03-28 04-02"
    made = backups("atlas", *days.split())
    assert prune("", made) == (0, made[:5], "")


@pytest.mark.requirement("unknown", kind="error")
def test_unknown_names_are_skipped(prune):
    """What is no backup is never printed but told; it is nobody's newest either."""
    strange = ["lost+found", "atlas-2024-02-30T0200.tar.gz", "atlas-2024-03-01T2500.tar.gz", "-rf"]
    made = backups("atlas", "02-27", "02-28")
    skipped = "".join(f"skipped: {line}\n" for line in strange)
    assert prune("--daily 0 --weekly 0", [*strange, *made, ""]) == (0, made[:1], skipped)


@pytest.mark.requirement("usage", kind="error")
@pytest.mark.parametrize("options", ["--daily -1", "--weekly some"])
def test_wrong_call(prune, options):
    """A number that is none deletes nothing."""
    status, printed, error = prune(options, backups("atlas", "01-01", "02-01", "03-01"))
    assert (status, printed) == (2, [])
    assert "usage:" in error


@pytest.mark.requirement("own-tests", kind="integration")
def test_own_tests_pass(workspace):
    """There are unit tests, and they pass; where the program does nothing they do not."""
    own_tests = "python3 -m unittest discover -s tests -t ."
    workspace.run(f"cp -r . {workspace.path}/copy && : > {workspace.path}/copy/prune.py")
    assert workspace.run(own_tests, cwd=f"{workspace.path}/copy").exit_code != 0
    done = workspace.run(own_tests)
    assert done.exit_code == 0, done.stderr
    assert "Ran 0 tests" not in done.stderr
