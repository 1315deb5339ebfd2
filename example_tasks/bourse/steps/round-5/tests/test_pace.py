"""Large days of the clock."""

import random

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("clock-pace", kind="core")
def test_the_clock_ticks(bourse):
    """The clock goes on by one, over and over, while thousands of orders rest of which few end."""
    dice = random.Random(52)
    ends = [dice.randint(6500, 1000000) for _ in range(7000)]
    sent = [f"BID a{n} rye {n + 1} 5 UNTIL {end}" for n, end in enumerate(ends)]
    sent += [f"CLOCK {time}" for time in range(1, 6500)] + ["CLOCK 90000"]
    answers = [f"REST a{n} 5" for n in range(7000)] + [f"CLOCK {time}" for time in range(1, 6500)]
    ended = sorted((end, n) for n, end in enumerate(ends) if end < 90000)
    assert 90000 not in ends
    answers += [f"EXPIRED a{n} 5" for _end, n in ended] + ["CLOCK 90000"]
    bourse.keeps_pace(text(sent), text(answers))
