"""Large days of stops."""

import random

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("stop-pace", kind="core")
def test_trades_beside_many_stops(bourse):
    """Thousands of stops wait for prices that no trade reaches, until one does."""
    triggers = random.Random(93).sample(range(600, 1000000), 8000)
    before = text(["bourse 4", "CLOCK 0", *(f"ASK a{n} rye {n % 500 + 1} 1" for n in range(6000))])
    sent = [f"STOP BID s{trigger} rye {trigger} 1 1" for trigger in triggers] + ["BID b rye 500 6000"]
    answers = [f"WAIT s{trigger}" for trigger in triggers]
    # By price, and then as they came: all are of one size.
    answers += [f"TRADE rye {n % 500 + 1} 1 b a{n}" for n in sorted(range(6000), key=lambda n: n % 500)] + ["DONE b"]
    price = sorted(triggers)[500]
    sent += [f"ASK x rye {price} 1", f"BID y rye {price} 1"]
    answers += ["REST x 1", f"TRADE rye {price} 1 y x", "DONE y"]
    woken = [trigger for trigger in triggers if trigger <= price]
    answers += [line for trigger in woken for line in (f"WAKE s{trigger}", f"REST s{trigger} 1")]
    bourse.keeps_pace(text(sent), text(answers), book=before)
