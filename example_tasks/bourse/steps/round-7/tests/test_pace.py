"""Large days of trades and busts."""

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("bust-pace", kind="core")
def test_range_of_many_trades(bourse):
    """RANGE is asked while the lowest of thousands of trades are busted, one after the other."""
    before = text(["bourse 1", *(f"ASK a{price} rye {price} 1" for price in range(1, 8001))])
    sent = ["BID b rye 8000 8000"]
    answers = [*(f"TRADE rye {price} 1 b a{price}" for price in range(1, 8001)), "DONE b"]
    for n in range(2500):
        sent += [f"BUST {n + 1}", "RANGE rye", "RANGE rye"]
        answers += [f"BUSTED {n + 1}", *[f"RANGE rye {n + 2} 8000 {7999 - n}"] * 2]
    bourse.keeps_pace(text(sent), text(answers), book=before)
