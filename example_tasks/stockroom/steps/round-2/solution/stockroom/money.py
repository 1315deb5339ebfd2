"""Prices as whole numbers, and as people write them."""

import re

DIGITS = 2
UNIT = 10**DIGITS


def parse(text):
    """The price in units; ValueError if it is not one."""
    if not re.fullmatch(rf"[0-9]+(\.[0-9]{{1,{DIGITS}}})?", text):
        raise ValueError(text)
    whole, _, part = text.partition(".")
    return int(whole) * UNIT + int(part.ljust(DIGITS, "0"))


def render(units):
    return f"{units // UNIT}.{units % UNIT:0{DIGITS}d}"
