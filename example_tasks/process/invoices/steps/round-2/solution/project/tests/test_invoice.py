import unittest
from decimal import Decimal

from invoices.discounts import discount
from invoices.invoice import Invoice, Line


class InvoiceTest(unittest.TestCase):
    def test_invoices_share_no_lines(self):
        one, other = Invoice("Pier", 1), Invoice("Pier", 2)
        one.lines.append(Line(1, Decimal(1), "mop"))
        self.assertEqual(other.lines, [])

    def test_customers_with_the_same_number_share_no_discount(self):
        lines = [Line(50, Decimal(1), "hook")]
        found = [discount(Invoice(customer, 1, lines)) for customer in ("Harbour Ltd", "Lighthouse & Sons", "Pier")]
        self.assertEqual(found, [Decimal("0.05"), Decimal("0.08"), 0])
