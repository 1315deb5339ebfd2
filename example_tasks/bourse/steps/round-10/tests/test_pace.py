"""The thousandth day."""

import pytest


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("once-pace", kind="core")
def test_many_used(bourse):
    """A book of thousands of used IDs is read, asked and written."""
    used = [f"u{n:05}" for n in range(10000)]
    before = text(["bourse 5", "CLOCK 7", *(f"USED {id}" for id in used)])
    sent = [f"SHOW {id}" for id in used[:3000]] + [f"BID {id} rye 1 1" for id in used[:3000]]
    answers = [f"SHOW {id} GONE" for id in used[:3000]] + [f"ERR {n} duplicate" for n in range(3001, 6001)]
    bourse.keeps_pace(text(sent), text(answers), book=before, after=before)
