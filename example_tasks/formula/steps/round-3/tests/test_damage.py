"""What is no saved formula."""

from random import Random

import pytest
from answers import complains
from files import sealed, version_1

GOOD = version_1("1 2", "x", "LOAD 0; JZ 12; PUSH 0; JMP 15; PUSH 1; RET")
DAMAGED = complains(4, "old.f: damaged")
SEALED = {
    "trailing byte": sealed(GOOD[:-4] + b"\0"),
    "missing byte": sealed(GOOD[:-5]),
    "no number": version_1("1.2.3", "", "PUSH 0; RET"),
    "minus": version_1("-1", "", "PUSH 0; RET"),
    "no name": version_1("1", "2x", "PUSH 0; RET"),
    "no such constant": version_1("1", "", "PUSH 1; RET"),
    "no such name": version_1("1", "x", "LOAD 1; RET"),
    "no such function": version_1("1", "", "PUSH 0; CALL SUM 1; RET"),
    "count of arguments": version_1("1", "", "PUSH 0; PUSH 0; CALL ABS 2; RET"),
    "no arguments": version_1("1", "", "CALL MAX 0; RET"),
    "an argument that is missing": version_1("1", "", "PUSH 0; CALL ROUND 1; RET"),
    "no ret": version_1("1", "", "PUSH 0"),
    "jump out": version_1("1", "", "PUSH 0; JZ 20; PUSH 0; RET"),
    "jump between": version_1("1", "", "PUSH 0; JZ 7; PUSH 0; RET"),
    "jump back": version_1("1", "", "PUSH 0; JMP 0; RET"),
    "no such code": sealed(b"PFML\x01\0\x01\x011\0\0\0\x05\x01\0\0\x7f\x12"),
    "no code": sealed(b"PFML\x01\0\x01\x011\0\0\0\0"),
}
"""Files with a right checksum that no version has written."""


@pytest.mark.requirement("not-a-file", kind="error")
def test_other_files(inside, said):
    """What is too short or begins with anything else is no formula file."""
    contents = {each: each for each in (b"", b"PFML", b"PFMX\x01\x00\x00", b"price = 2\n")}
    assert set(said("run", contents).values()) == {"error 4: FILE: not a formula file"}
    assert inside("run", "old.f", old_f=b"PFMX" + GOOD[4:]) == complains(4, "old.f: not a formula file")


@pytest.mark.requirement("not-a-file", kind="error")
def test_no_file(inside):
    """A file that is not there is no formula file, and is named as it was on the command line."""
    assert inside("run", "./gone/old.f") == complains(4, "./gone/old.f: not a formula file")


@pytest.mark.requirement("other-version", kind="error")
def test_other_versions(formula, inside):
    """A version that is not known is named, and the rest not looked at."""
    zero, later = (b"PFML" + bytes([number]) + GOOD[5:] for number in (0, 200))
    assert inside("run", "a.f", a_f=zero) == complains(4, "a.f: version 0")
    refused = {"list --file b.f": complains(4, "b.f: version 200")}
    assert formula.answers(refused, b_f=later) == refused


@pytest.mark.requirement("damage", kind="error")
def test_a_changed_byte(inside, said):
    """A file that has another byte anywhere behind its version is damaged, and nothing of it is printed."""
    random = Random(5)
    contents = {at: bytearray(GOOD) for at in range(5, len(GOOD))}
    for at, content in contents.items():
        content[at] ^= random.randint(1, 255)
    contents = {at: bytes(content) for at, content in contents.items()}
    assert inside("run", "old.f", "x=1", old_f=contents[len(GOOD) - 1]) == DAMAGED
    assert set(said("run", contents, x="1").values()) == {"error 4: FILE: damaged"}


@pytest.mark.requirement("damage", kind="boundary")
def test_a_file_that_is_cut_off(said):
    """A file of which the end is missing, or that goes on, is damaged."""
    contents = {f"{length} bytes": GOOD[:length] for length in range(5, len(GOOD))} | {"goes on": GOOD + b"\n"}
    assert said("run", contents, x="1") == dict.fromkeys(contents, "error 4: FILE: damaged")


@pytest.mark.requirement("damage", kind="boundary")
def test_a_right_checksum_does_not_help(formula, said):
    """What no version has written is refused before it runs, with a right checksum too, and is not listed."""
    assert said("run", SEALED, x="1") == dict.fromkeys(SEALED, "error 4: FILE: damaged")
    refused = {"list --file old.f": DAMAGED}
    assert formula.answers(refused, old_f=SEALED["no ret"]) == refused


@pytest.mark.requirement("damage", kind="boundary")
def test_a_stack_that_does_not_fit(inside, said):
    """Code that takes more from the stack than is there, or leaves something, is damaged and prints nothing."""
    contents = {
        instructions: version_1("1", "", instructions)
        for instructions in ("ADD; RET", "PUSH 0; PUSH 0; RET", "PUSH 0; MUL; RET", "RET", "PUSH 0; CALL MAX 2; RET")
    }
    assert said("run", contents) == dict.fromkeys(contents, "error 4: FILE: damaged")
    assert inside("run", "old.f", old_f=contents["ADD; RET"]) == DAMAGED
