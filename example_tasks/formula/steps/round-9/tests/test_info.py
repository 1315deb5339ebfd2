"""What a saved file is."""

import pytest
from answers import USAGE, complains, prints
from files import CELL, DEF, part, version, version_1


@pytest.mark.requirement("info", kind="core")
def test_info(formula):
    """The numbers are those of the file, and the code that of all parts."""
    content = version(
        3,
        "1 0.5",
        "a f x",
        part(CELL, 0, "PUSH 0; INVOKE 0 1; RET", shape="0"),
        part(DEF, 1, "ARG 0; PUSH 1; DIV; RET", parameters=(2,)),
    )
    checksum = f"checksum {content[-4:].hex()}"
    assert formula("info", "a.f", a_f=content) == prints(
        "version 3", "constants 2", "names 3", "parts 2", "code 15", checksum
    )


@pytest.mark.requirement("info", kind="boundary")
def test_info_of_version_1(formula):
    """A file of version 1 has one part, and nothing of it is run."""
    content = version_1("1 0", "", "PUSH 0; PUSH 1; DIV; RET")
    checksum = f"checksum {content[-4:].hex()}"
    shown = {"info a.f": prints("version 1", "constants 2", "names 0", "parts 1", "code 8", checksum)}
    assert formula.answers(shown, a_f=content) == shown


@pytest.mark.requirement("info", kind="integration")
def test_info_of_what_is_built(formula, built):
    """What is built today is of version 4."""
    content = built("x + x")
    checksum = f"checksum {content[-4:].hex()}"
    shown = {"info made.f": prints("version 4", "constants 0", "names 1", "parts 1", "code 8", checksum)}
    assert formula.answers(shown) == shown


@pytest.mark.requirement("info", kind="error")
def test_info_refuses(formula):
    """What cannot be run has no info either."""
    good = version_1("12", "", "PUSH 0; RET")
    refused = {
        "info a.f": complains(4, "a.f: damaged"),
        "info b.f": complains(4, "b.f: version 99"),
        "info c.f": complains(4, "c.f: not a formula file"),
        "info": USAGE,
        "info a.f b.f": USAGE,
    }
    assert formula.answers(refused, a_f=good[:-1] + b"?", b_f=good[:4] + b"\x63" + good[5:]) == refused
