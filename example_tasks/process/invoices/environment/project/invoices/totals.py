"""What an invoice comes to."""

from decimal import Decimal

from invoices.discounts import discount

TAX = Decimal("0.19")


def total(invoice):
    """What is to be paid: all lines, less the discount, with tax."""
    amount = sum(line.pieces * line.price for line in invoice.lines)
    amount -= amount * discount(invoice)
    return amount + amount * TAX


def show_total(invoice):
    """A total as people read it."""
    return f"{invoice.customer} {invoice.number}: {total(invoice):.2f}"
