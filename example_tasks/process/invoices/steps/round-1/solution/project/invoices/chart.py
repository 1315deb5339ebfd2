"""Totals as bars."""

from decimal import localcontext

from invoices.totals import total

COLUMNS = 40
DIGITS = 6


def bar_lines(invoices):
    """A line for each invoice: a bar and its label."""
    totals = [total(invoice) for invoice in invoices]
    largest = max(totals)
    return [f"{'#' * int(COLUMNS * each / largest):<{COLUMNS}} {label(each)}" for each in totals]


def label(amount):
    """The first six digits of an amount."""
    with localcontext() as context:  # The precision that all of the program calculates with stays what it is.
        context.prec = DIGITS
        return f"{+amount:f}"
