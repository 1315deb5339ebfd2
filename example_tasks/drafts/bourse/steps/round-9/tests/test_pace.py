"""Large days of stops."""

import random

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("stop-pace", kind="core")
def test_trades_beside_many_stops(bourse):
    """Thousands of stops wait for prices that no trade reaches, until one does."""
    triggers = random.Random(93).sample(range(600, 1000000), 9000)
    sent = [f"STOP BID s{trigger} rye {trigger} 1 1" for trigger in triggers]
    answers = [f"WAIT s{trigger}" for trigger in triggers]
    for n in range(4000):
        sent += [f"ASK a{n} rye {500 + n % 90} 1", f"BID b{n} rye 600 1"]
        answers += [f"REST a{n} 1", f"TRADE rye {500 + n % 90} 1 b{n} a{n}", f"DONE b{n}"]
        if n == 3000:  # Wakes a thousand of them, which rest at a price of their own.
            price = sorted(triggers)[1000]
            sent += [f"ASK x rye {price} 1", f"BID y rye {price} 1"]
            woken = [trigger for trigger in triggers if trigger <= price]
            answers += ["REST x 1", f"TRADE rye {price} 1 y x", "DONE y"]
            answers += [line for trigger in woken for line in (f"WAKE s{trigger}", f"REST s{trigger} 1")]
    bourse.keeps_pace(text(sent), text(answers))
