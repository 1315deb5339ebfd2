"""What an invoice comes to."""

from decimal import ROUND_HALF_UP, Decimal

from invoices.discounts import discount

TAX = Decimal("0.19")


def total(invoice):
    """What is to be paid: all lines, less the discount, with tax."""
    paid = 1 - discount(invoice)
    amount = sum((line.pieces * line.price * (paid if line.pieces > 0 else 1) for line in invoice.lines), Decimal(0))
    return amount + amount * TAX


def show_total(invoice):
    """A total as people read it."""
    return f"{invoice.customer} {invoice.number}: {round_cents(total(invoice))}"


def round_cents(amount):
    """Two decimals, half a cent away from zero."""
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
