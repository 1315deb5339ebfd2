import unittest
from decimal import Decimal

from invoices.invoice import Invoice, Line
from invoices.totals import show_total


class TotalsTest(unittest.TestCase):
    def test_lines_and_tax(self):
        lines = [Line(2, Decimal("10"), "mop"), Line(1, Decimal("5.50"), "pail")]
        self.assertEqual(show_total(Invoice("Pier", 31, lines)), "Pier 31: 30.34")

    def test_discount(self):
        self.assertEqual(show_total(Invoice("Harbour Ltd", 32, [Line(10, Decimal("1"), "hook")])), "Harbour Ltd 32: 11.30")
