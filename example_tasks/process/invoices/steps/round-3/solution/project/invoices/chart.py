"""Totals as bars."""

from decimal import localcontext

from invoices.totals import total

COLUMNS = 40
DIGITS = 6


def bar_lines(invoices):
    """A line for each invoice: a bar and its label."""
    totals = [total(invoice) for invoice in invoices]
    largest = max(totals)
    return [f"{'#' * columns(each, largest):<{COLUMNS}} {label(each)}" for each in totals]


def columns(amount, largest):
    """How long an amount's bar is; there is none for zero and less."""
    return int(COLUMNS * amount / largest) if amount > 0 else 0


def label(amount):
    """The first six digits of an amount."""
    with localcontext() as context:  # The precision that all of the program calculates with stays what it is.
        context.prec = DIGITS
        return f"{+amount:f}"
