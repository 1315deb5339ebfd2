"""Large days of members."""

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("members-pace", kind="core")
def test_one_of_many_members(bourse):
    """OPEN and CLEAR of members with an order or two, beside others with thousands."""
    sent = [f"BID a{n} rye 500 5 BY large" for n in range(7000)]
    answers = [f"REST a{n} 5" for n in range(7000)]
    for n in range(2000):
        sent += [f"ASK b{n} rye 600 1 BY m{n}", f"OPEN m{n}", f"CLEAR m{n}"]
        answers += [f"REST b{n} 1", f"ORDER ASK b{n} rye 600 1", "END", f"GONE b{n} 1", "END"]
    bourse.keeps_pace(text(sent), text(answers))


@pytest.mark.requirement("members-pace", kind="core")
def test_what_a_member_had(bourse):
    """OPEN of a member of whose thousands of orders one is left."""
    ids = [f"a{n}" for n in range(8000)]
    sent = [f"ASK {id} rye 500 5 BY mill" for id in ids] + [f"CANCEL {id}" for id in ids[:-1]] + ["OPEN mill"] * 2500
    answers = [f"REST {id} 5" for id in ids] + [f"GONE {id} 5" for id in ids[:-1]]
    answers += [f"ORDER ASK {ids[-1]} rye 500 5", "END"] * 2500
    bourse.keeps_pace(text(sent), text(answers))
