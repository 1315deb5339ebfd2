import unittest
from decimal import Decimal

from invoices.invoice import Invoice, Line
from invoices.totals import show_total


class LargeTest(unittest.TestCase):
    def test_large_invoice(self):
        lines = [Line(1, Decimal("1037452.01"), "tug"), Line(3, Decimal("0.01"), "nail")]
        self.assertEqual(show_total(Invoice("Pier", 41, lines)), "Pier 41: 1234567.93")
