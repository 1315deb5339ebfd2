"""Order 9 contradicts itself about wrong checksums, and a wrong price is what must not be printed."""

import re
from random import Random

import pytest
from answers import complains, prints
from files import version_1

GOOD = version_1("12.75 1.19 100", "amount", "LOAD 0; PUSH 0; MUL; PUSH 1; MUL; PUSH 2; ADD; RET")


@pytest.mark.requirement("doubt", kind="core")
def test_question_is_asked(workspace):
    """QUESTIONS.md says what cannot both be kept."""
    questions = workspace.read_text("/app/QUESTIONS.md")
    for word in ("Lindqvist", "damaged"):
        assert re.search(word, questions, re.IGNORECASE), f"QUESTIONS.md does not mention {word}"


@pytest.mark.requirement("doubt", kind="core")
def test_no_price_of_a_damaged_file(formula, inside, said):
    """A file of version 1 in which a digit of a price has changed prints nothing and is refused."""
    assert inside("run", "good.f", "amount=2", good_f=GOOD) == prints("130.345")
    random = Random(9)
    digits = [at for at in range(8, 22) if chr(GOOD[at]).isdigit()]
    contents = {at: bytearray(GOOD) for at in digits}
    for at, content in contents.items():
        content[at] = ord(random.choice([digit for digit in "0123456789" if ord(digit) != content[at]]))
    contents = {at: bytes(content) for at, content in contents.items()}
    assert said("run", contents, amount="2") == dict.fromkeys(contents, "error 4: FILE: damaged")
    assert formula("run", "bad.f", "amount=2", bad_f=contents[digits[0]]) == complains(4, "bad.f: damaged")
