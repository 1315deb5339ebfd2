"""Figures in one currency remain what they were: rounded lines do not add up to a rounded total."""

import pytest
from answers import prints


def crumbs(rate):
    return f"""\
P 2024-01-01 USD {rate} EUR
2024-01-01 Crumbs
  Assets:A  0.10 USD
  Assets:B  0.10 USD
  Assets:C  0.10 USD
  Equity
"""


@pytest.mark.requirement("conversion", kind="boundary")
def test_lines_are_not_bent(ledger):
    """Each line is what the account holds, also where the lines are more than the total."""
    assert ledger("balance travel.journal Assets --in EUR", travel=crumbs("0.06")) == prints("""\
      0.01 EUR  Assets:A
      0.01 EUR  Assets:B
      0.01 EUR  Assets:C
--------------
      0.02 EUR
""")


@pytest.mark.requirement("conversion", kind="boundary")
def test_the_total_is_not_bent(ledger):
    """The total is the exact sum, also where no line is left that adds up to it."""
    assert ledger("balance travel.journal Assets --in EUR", travel=crumbs("0.04")) == prints("""\
--------------
      0.01 EUR
""")
