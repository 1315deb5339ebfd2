"""Prices in both directions, and over other currencies."""

import itertools
import random
from fractions import Fraction

import pytest
from answers import complains, prints
from journals import holding


@pytest.mark.requirement("prices", kind="core")
def test_turned_around(ledger):
    """A price counts from the second currency to the first too, and exactly: halves remain halves."""
    journal = """\
P 2024-01-01 EUR 6 USD
2024-01-01 Halves
  Assets:A  0.09 USD
  Assets:B  0.15 USD
  Assets:C  -0.03 USD
  Assets:D  0.04 USD
  Equity
"""
    assert ledger("balance books.journal Assets --in EUR", books=journal) == prints("""\
      0.02 EUR  Assets:A
      0.02 EUR  Assets:B
      0.01 EUR  Assets:D
--------------
      0.04 EUR
""")


@pytest.mark.requirement("prices", kind="boundary")
def test_latest_in_either_direction(ledger):
    """Whichever way round they stand, the latest line counts, and of one day the lower."""
    journal = holding("Assets:Cash", "100 USD").replace("2024-06-01", "2024-01-01")
    journal += """\
P 2024-03-09 EUR 8 USD
P 2024-01-01 USD 0.5 EUR
P 2024-03-01 EUR 1.25 USD
P 2024-03-02 EUR 2 USD
P 2024-03-02 USD 0.25 EUR
"""
    for end, worth in (
        ("2024-02-29", "50.00 EUR"),
        ("2024-03-01", "80.00 EUR"),
        ("2024-03-02", "25.00 EUR"),
        ("2024-03-09", "12.50 EUR"),
    ):
        assert ledger(f"balance books.journal Assets --in EUR --end {end}", books=journal) == prints(
            f"{worth:>14}  Assets:Cash\n--------------\n{worth:>14}\n"
        )


WAYS = """\
2024-01-01 Held
  Assets:Cash  100 CHF
  Equity
P 2024-01-01 CHF 2 USD
P 2024-01-01 EUR 4 USD
P 2024-01-01 GBP 3 CHF
P 2024-01-01 GBP 30 EUR
P 2024-01-02 CHF 1 AUD
P 2024-01-02 AUD 1 BRL
P 2024-01-02 BRL 1 EUR
P 2024-01-03 EUR 0.5 CHF
"""


@pytest.mark.requirement("prices", kind="core")
@pytest.mark.parametrize(
    ("end", "worth"),
    [
        pytest.param("2024-01-01", "1000.00", id="first-in-alphabetical-order"),
        pytest.param("2024-01-02", "1000.00", id="shorter-before-alphabetical-order"),
        pytest.param("2024-01-03", "200.00", id="direct-before-all"),
    ],
)
def test_way(ledger, end, worth):
    """The shortest way is taken, and of equally short ones the first in alphabetical order."""
    answer = f"{worth + ' EUR':>14}"
    assert ledger(f"balance books.journal Assets --in EUR --end {end}", books=WAYS) == prints(
        f"{answer}  Assets:Cash\n--------------\n{answer}\n"
    )


@pytest.mark.requirement("prices", kind="error")
def test_all_that_are_missing(ledger):
    """Every currency for which there is no way is named, once and in alphabetical order; later prices make no way."""
    journal = """\
2024-01-01 Start
  A  1 USD
  A  1 NOK
  A  1 SEK
  A  1 CHF
  A  0 JPY
  B  1 USD
  C
P 2024-01-01 CHF 2 EUR
P 2024-01-01 NOK 2 SEK
P 2024-01-01 USD 2 GBP
P 2024-01-02 GBP 2 EUR
"""
    assert ledger("balance books.journal --in EUR --end 2024-01-01", books=journal) == complains("""\
error: books.journal: no price for NOK in EUR
error: books.journal: no price for SEK in EUR
error: books.journal: no price for USD in EUR
""")
    assert ledger("balance books.journal --in EUR", books=journal) == complains("""\
error: books.journal: no price for NOK in EUR
error: books.journal: no price for SEK in EUR
""")


CURRENCIES = ["AUD", "BRL", "CHF", "DKK", "EUR", "GBP"]


def price_over(way, latest):
    """What one of the first currency is worth in the last one, or None where a price on the way is missing."""
    worth = Fraction(1)
    for held, wanted in itertools.pairwise(way):
        if (held, wanted) not in latest:
            return None
        worth *= latest[held, wanted]
    return worth


def price_of(held, wanted, latest):
    """Try all ways, the shorter ones first and equally short ones in alphabetical order."""
    others = [each for each in CURRENCIES if each not in (held, wanted)]
    for number in range(len(others) + 1):
        for between in itertools.permutations(others, number):
            worth = price_over([held, *between, wanted], latest)
            if worth is not None:
                return worth
    return None


@pytest.mark.requirement("prices", kind="integration")
def test_any_prices(ledger):
    """Whatever the prices are, what is held is worth what the first of all ways says, and no way is an error."""
    chance = random.Random(3)
    held = {currency: chance.randrange(1, 10_000_000) for currency in CURRENCIES}
    lines = [
        (f"2024-01-{chance.randrange(1, 29):02d}", *chance.sample(CURRENCIES, 2), f"{chance.randrange(1, 400) / 100}")
        for _ in range(9)
    ]
    journal = "2024-01-01 Held\n"
    journal += "".join(f"  Held:{each}  {cents / 100:.2f} {each}\n" for each, cents in held.items()) + "  Equity\n"
    journal += "".join(f"P {day} {first} {rate} {second}\n" for day, first, second, rate in lines)
    for wanted in CURRENCIES:
        end = f"2024-01-{chance.randrange(10, 29)}"
        latest = {}
        for day, first, second, rate in sorted(lines, key=lambda line: line[0]):
            if day <= end:
                latest[first, second] = Fraction(rate)
                latest[second, first] = 1 / Fraction(rate)
        rates = {each: Fraction(1) if each == wanted else price_of(each, wanted, latest) for each in CURRENCIES}
        missing = [each for each in CURRENCIES if rates[each] is None]
        if missing:
            answer = complains("".join(f"error: books.journal: no price for {each} in {wanted}\n" for each in missing))
        else:
            exact = [held[each] * rates[each] for each in CURRENCIES]
            *shown, total = (f"{f'{round(cents) / 100:.2f} {wanted}':>14}" for cents in [*exact, sum(exact)])
            accounts = (f"{amount}  Held:{each}\n" for amount, each in zip(shown, CURRENCIES, strict=True))
            answer = prints("".join(accounts) + f"--------------\n{total}\n")
        assert ledger(f"balance books.journal Held --in {wanted} --end {end}", books=journal) == answer
