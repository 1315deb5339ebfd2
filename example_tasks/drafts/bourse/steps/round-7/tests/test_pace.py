"""Large days of trades and busts."""

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("bust-pace", kind="core")
def test_range_of_many_trades(bourse):
    """RANGE is asked while the lowest of thousands of trades are busted, one after the other."""
    sent, answers = [], []
    for n in range(5000):
        sent += [f"ASK a{n} rye {n + 1} 1", f"BID b{n} rye {n + 1} 1"]
        answers += [f"REST a{n} 1", f"TRADE rye {n + 1} 1 b{n} a{n}", f"DONE b{n}"]
    for n in range(4000):
        sent += [f"BUST {n + 1}", "RANGE rye"]
        answers += [f"BUSTED {n + 1}", f"RANGE rye {n + 2} 5000 {4999 - n}"]
    bourse.keeps_pace(text(sent), text(answers))
