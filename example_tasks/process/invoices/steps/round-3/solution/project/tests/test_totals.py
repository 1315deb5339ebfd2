import unittest
from decimal import Decimal

from invoices.invoice import Invoice, Line
from invoices.totals import show_total


class TotalsTest(unittest.TestCase):
    def test_lines_and_tax(self):
        lines = [Line(2, Decimal("10"), "mop"), Line(1, Decimal("5.50"), "pail")]
        self.assertEqual(show_total(Invoice("Pier", 31, lines)), "Pier 31: 30.35")

    def test_discount(self):
        self.assertEqual(
            show_total(Invoice("Harbour Ltd", 32, [Line(10, Decimal("1"), "hook")])), "Harbour Ltd 32: 11.31"
        )

    def test_half_a_cent_is_rounded_away_from_zero(self):
        for pieces, shown in ((1, "1.79"), (-1, "-1.79")):
            self.assertEqual(
                show_total(Invoice("Pier", 33, [Line(pieces, Decimal("1.50"), "mop")])), f"Pier 33: {shown}"
            )

    def test_what_comes_back_has_no_discount_and_does_not_count(self):
        lines = [Line(10, Decimal(1), "hook"), Line(-5, Decimal(1), "hook")]
        self.assertEqual(show_total(Invoice("Harbour Ltd", 34, lines)), "Harbour Ltd 34: 5.36")
