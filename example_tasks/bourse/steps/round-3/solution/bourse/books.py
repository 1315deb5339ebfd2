"""Books: the file that has what rests between two days."""

import os

from bourse.market import Market
from bourse.requests import BOOK_OPTIONS, ORDERS, Refused, parse

FIRST = "bourse 2"
OLDER = ("bourse 1",)


class Damaged(Exception):
    """A file that is no book."""


def lines_of(path: str) -> list[str]:
    """Return the lines of a file, without their ends."""
    with open(path, encoding="latin-1", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def load(path: str, market: Market) -> None:
    """Fill a market from a book, where there is one."""
    if not os.path.exists(path):
        return
    first, *lines = lines_of(path)
    if first not in (FIRST, *OLDER):
        raise Damaged(f"{path}:1: not a book")
    for number, line in enumerate(lines, 2):
        try:
            verb, arguments, options = parse(line, BOOK_OPTIONS)
            if verb not in ORDERS:
                raise Refused("not an order")
            market.restore(verb, *arguments, **options)
        except Refused as refused:
            raise Damaged(f"{path}:{number}: {refused}") from None


def save(path: str, market: Market) -> None:
    lines = [FIRST]
    for order in market.resting():
        line = f"{order.side} {order.id} {order.good} {order.price} {order.left}"
        if order.by:
            line += f" BY {order.by}"
        if order.had:
            line += f" HAD {order.had}"
        lines.append(line)
    with open(f"{path}.new", "w", encoding="latin-1", newline="\n") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(f"{path}.new", path)
