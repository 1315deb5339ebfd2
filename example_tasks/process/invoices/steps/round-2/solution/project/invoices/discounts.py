"""Who pays less."""

import csv
from decimal import Decimal
from functools import cache


def discount(invoice, path="discounts.csv"):
    """The part of an invoice that its customer does not pay, from 0 to 1: the best in the list."""
    found = [
        percent / 100
        for customer, pieces, percent in read_discounts(path)
        if customer == invoice.customer and invoice.pieces >= pieces
    ]
    return max(found, default=Decimal(0))


@cache  # The list is long, and asked for again and again.
def read_discounts(path):
    """The lines of the list: customer, pieces, and per cent."""
    with open(path, encoding="utf-8", newline="") as file:
        return [(row["customer"], int(row["pieces"]), Decimal(row["percent"])) for row in csv.DictReader(file)]
