"""Invoices as their files have them, and charts as numbers."""

from decimal import Decimal


def invoice(*lines, customer="Pier", number=1):
    """An invoice with these lines."""
    return "\n".join([f"customer: {customer}", f"number: {number}", *lines, ""])


TUG = invoice("1 x 1037452.01 tug", "3 x 0.01 nail")
HARBOUR = invoice("100 x 1.00 hook", customer="Harbour Ltd")
LIGHTHOUSE = invoice("50 x 2.00 wick", customer="Lighthouse & Sons")


def bars(answer):
    """A chart's bars, by their lengths, and labels: zeros behind the point do not matter, but the column does."""
    status, lines, stderr = answer
    assert (status, stderr) == (0, "")
    return [(len(line[:40].rstrip()), Decimal(line[41:])) for line in lines]
