"""Databases of versions of long ago."""

import pytest


@pytest.mark.requirement("backups", kind="integration")
@pytest.mark.parametrize("version", [1, 5, 7])
def test_backup(office, version):
    """A report is enough to bring a backup up to date that an early version made, with months, suspects and bills."""
    office.take_over(f"backups/{version}.db")
    assert "W-1003 water ~11577 l" in office.report("2024-01")
    months = "SELECT amount FROM monthly WHERE meter = 'W-1001' AND month IN ('2024-01', '2024-02') ORDER BY month"
    assert office.values(months) == [(5750,), (6500,)]
    assert office.values("SELECT value FROM suspects") == ([(8470,)] if version > 1 else [])
    bills = office.values("SELECT number, amount, cents FROM bills WHERE meter = 'N-1'")
    assert bills == ([(1, 205500, 6371)] if version == 7 else [])
    assert office.run("forget", "W-1002", "2024-06-01")[:2] == (0, f"W-1002: {5 if version > 1 else 3} forgotten\n")
