import unittest
from decimal import Decimal

from invoices.chart import bar_lines, label
from invoices.invoice import Invoice, Line


class ChartTest(unittest.TestCase):
    def test_label_has_six_digits(self):
        self.assertEqual(label(Decimal("1234567.89")), "1234570")
        self.assertEqual(label(Decimal("1.5")), "1.5")

    def test_longest_bar_is_the_largest_total(self):
        small, large = (Invoice("Pier", n, [Line(1, Decimal(n), "mop")]) for n in (50, 100))
        self.assertEqual([line.count("#") for line in bar_lines([small, large])], [20, 40])
