"""Totals as bars."""

from decimal import getcontext

from invoices.totals import total

COLUMNS = 40

getcontext().prec = 6  # so many digits has a label


def bar_lines(invoices):
    """A line for each invoice: a bar and its label."""
    totals = [total(invoice) for invoice in invoices]
    largest = max(totals)
    return [f"{'#' * int(COLUMNS * each / largest):<{COLUMNS}} {label(each)}" for each in totals]


def label(amount):
    """The first six digits of an amount."""
    return f"{+amount:f}"
