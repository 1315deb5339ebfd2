"""Books: the file that has what rests between two days."""

import os

from bourse.market import Market
from bourse.requests import BOOK_OPTIONS, ORDERS, Refused, name, parse

FIRST = "bourse 5"
OLDER = ("bourse 1", "bourse 2", "bourse 3", "bourse 4")
WITHOUT_CLOCK = ("bourse 1", "bourse 2")


class Damaged(Exception):
    """A file that is no book."""


def lines_of(path: str) -> list[str]:
    """Return the lines of a file, without their ends."""
    with open(path, encoding="latin-1", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def clock(line: str) -> int:
    """Return the time of a book's second line."""
    if line == "CLOCK 0":
        return 0
    verb, arguments, _ = parse(line)
    if verb != "CLOCK":
        raise Refused("not a clock")
    return arguments[0]


def load(path: str, market: Market) -> None:
    """Fill a market from a book, where there is one."""
    if not os.path.exists(path):
        return
    first, *lines = lines_of(path)
    if first not in (FIRST, *OLDER):
        raise Damaged(f"{path}:1: not a book")
    has_clock = first not in WITHOUT_CLOCK
    if has_clock and not lines:
        raise Damaged(f"{path}:2: no clock")
    for number, line in enumerate(lines, 2):
        try:
            if number == 2 and has_clock:
                market.clock_stands = clock(line)
                continue
            if line.startswith("USED "):
                market.restore_used(name(line.removeprefix("USED ")))
                continue
            verb, arguments, options = parse(line, BOOK_OPTIONS)
            if verb == "STOP":
                market.restore_stop(*arguments, **options)
            elif verb in ORDERS:
                market.restore(verb, *arguments, **options)
            else:
                raise Refused("not an order")
        except Refused as refused:
            raise Damaged(f"{path}:{number}: {refused}") from None


def save(path: str, market: Market) -> None:
    lines = [FIRST, f"CLOCK {market.clock_stands}"]
    for order in market.resting():
        line = f"{order.side} {order.id} {order.good} {order.price} {order.left}"
        if order.by:
            line += f" BY {order.by}"
        if order.until:
            line += f" UNTIL {order.until}"
        if order.had:
            line += f" HAD {order.had}"
        lines.append(line)
    for stop in market.stops:
        line = f"STOP {stop.side} {stop.id} {stop.good} {stop.trigger} {stop.price} {stop.quantity}"
        lines.append(f"{line} BY {stop.by}" if stop.by else line)
    lines += [f"USED {id}" for id in market.used()]
    with open(f"{path}.new", "w", encoding="latin-1", newline="\n") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(f"{path}.new", path)
