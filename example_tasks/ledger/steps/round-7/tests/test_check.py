"""`check`: is the journal in order?"""

import pytest
from answers import prints
from journals import BOOKS


@pytest.mark.requirement("check", kind="core")
def test_journal_in_order(ledger):
    """A journal in order is confirmed with the number of its transactions."""
    assert ledger("check books.journal", books=BOOKS) == prints("ok: 4 transactions\n")


@pytest.mark.requirement("check", kind="boundary", retired="round-8")
def test_one_transaction(ledger):
    """The wording is the same for a single transaction, read from standard input."""
    assert ledger("check -", stdin="2024-01-01 One\n  A  1\n  B\n") == prints("ok: 1 transactions\n")


@pytest.mark.requirement("usage", kind="error")
def test_wrong_call(ledger):
    """An option with check is a wrong call."""
    exit_code, stdout, stderr = ledger("check books.journal --begin 2024-01-01", books=BOOKS)
    assert (exit_code, stdout) == (2, "")
    assert "usage:" in stderr
