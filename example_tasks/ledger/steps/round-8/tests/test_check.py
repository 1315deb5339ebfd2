"""`check` counts as people do."""

import pytest
from answers import prints


@pytest.mark.requirement("check", kind="boundary")
@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 transactions"), (1, "1 transaction"), (2, "2 transactions"), (21, "21 transactions")]
)
def test_number(ledger, number, said):
    """One transaction is one, and any other number is several."""
    journal = "; Books\n" + "2024-01-01 One more\n  A  1\n  B\n" * number
    assert ledger("check -", stdin=journal) == prints(f"ok: {said}\n")
