"""Databases of versions of long ago."""

import pytest


@pytest.mark.requirement("backups", kind="integration")
@pytest.mark.parametrize("version", [1, 5, 7])
def test_backup(office, version):
    """A report is enough to bring a backup up to date that an early version made, with months, suspects and bills."""
    office.take_over(f"backups/{version}.db")
    report, forgotten = office.each("report 2024-01", "forget W-1003 2024-01-30")
    assert "W-1003 water ~11577 l" in report[1].splitlines()
    assert forgotten == (0, "W-1003: 1 forgotten", "")
    months, suspects, bills = office.tables(
        "SELECT amount FROM monthly WHERE meter = 'W-1001' AND month IN ('2024-01', '2024-02') ORDER BY month",
        "SELECT value FROM suspects",
        "SELECT number, amount, cents FROM bills WHERE meter = 'N-1'",
    )
    assert [row["amount"] for row in months] == [5750, 6500]
    assert [row["value"] for row in suspects] == ([8470] if version > 1 else [])
    assert bills == ([{"number": 1, "amount": 205500, "cents": 6371}] if version == 7 else [])
