"""Invoices and the files they come in."""

from decimal import Decimal
from typing import NamedTuple


class Line(NamedTuple):
    """So many pieces of an article at a price; fewer than none come back."""

    pieces: int
    price: Decimal
    article: str


class Invoice:
    """What a customer is to pay for."""

    def __init__(self, customer, number, lines=()):
        self.customer = customer
        self.number = number
        self.lines = list(lines)  # Its own: lines are added to it.

    @property
    def pieces(self):
        """How many pieces are sold; what comes back does not count."""
        return sum(max(line.pieces, 0) for line in self.lines)


def read_invoice(path):
    """The invoice in a file."""
    with open(path, encoding="utf-8") as file:
        customer, number, *rest = file.read().splitlines()
    invoice = Invoice(value_of(customer), int(value_of(number)))
    for text in rest:
        pieces, _, price, article = text.split(maxsplit=3)
        invoice.lines.append(Line(int(pieces), Decimal(price), article))
    return invoice


def value_of(text):
    """What stands behind the colon."""
    return text.partition(":")[2].strip()
