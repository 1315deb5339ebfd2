"""Large days of members."""

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("members-pace", kind="core")
def test_one_of_many_members(bourse):
    """OPEN and CLEAR of members with few orders or none, beside others with thousands."""
    sent = [f"BID a{n} rye 500 5 BY large" for n in range(32000)]
    answers = [f"REST a{n} 5" for n in range(32000)]
    for n in range(13500):
        sent += [f"OPEN m{n}", f"CLEAR m{n}"]
        answers += ["END", "END"]
        if n % 10 == 0:
            sent += [f"ASK b{n} rye 600 1 BY m{n}", f"OPEN m{n}", f"CLEAR m{n}"]
            answers += [f"REST b{n} 1", f"ORDER ASK b{n} rye 600 1", "END", f"GONE b{n} 1", "END"]
    bourse.keeps_pace(text(sent), text(answers))
