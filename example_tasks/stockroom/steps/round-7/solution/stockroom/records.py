"""What the stock consists of."""

from typing import NamedTuple


class Item(NamedTuple):
    """One article; `price` in the smallest unit of money."""

    sku: str
    name: str
    qty: int
    price: int
    location: str


class Move(NamedTuple):
    """One booking; `at` is UTC."""

    at: str
    sku: str
    delta: int
    note: str


class Reservation(NamedTuple):
    """What an order has set aside of an article."""

    ref: str
    sku: str
    qty: int
