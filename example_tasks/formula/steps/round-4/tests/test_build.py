"""Sheets do not change what is saved."""

import pytest
from answers import USAGE, complains
from files import code, sealed, texts, version_1, wide


@pytest.mark.requirement("build", kind="boundary", retired="round-6")
def test_version_1_is_still_written(built):
    """`build` writes what it wrote."""
    assert built("ABS(x - 3)") == version_1("3", "x", "LOAD 0; PUSH 0; SUB; CALL ABS 1; RET")


@pytest.mark.requirement("build", kind="error", retired="round-6")
def test_sheets_cannot_be_saved(formula):
    """There is no command that saves a sheet."""
    wrong = {"build --sheet a.sheet a.f": USAGE}
    assert formula.answers(wrong, a_sheet="a = 1\n") == wrong


@pytest.mark.requirement("damage", kind="boundary")
def test_version_1_has_no_parameters(inside):
    """Instructions of sheets lead nowhere in a file of version 1."""
    codes = [code(instructions) for instructions in ("ARG 0; RET", "INVOKE 0 0; RET")]
    files = [sealed(b"PFML\x01" + texts("1") + texts("x") + wide(len(done)) + done) for done in codes]
    answers = inside.each("run a.f x=1", "run b.f x=1", a_f=files[0], b_f=files[1])
    assert answers == [complains(4, "a.f: damaged"), complains(4, "b.f: damaged")]
