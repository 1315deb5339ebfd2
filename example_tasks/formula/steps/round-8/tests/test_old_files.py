"""What becomes of files of all versions."""

import pytest
from answers import complains, prints
from files import CELL, DEF, FORMULA, part, version, version_1

OLD_IF = "LOAD 0; PUSH 0; DIV; JZ 16; PUSH 1; JMP 19; PUSH 2; RET"


@pytest.mark.requirement("promise", kind="core")
def test_formulas_saved_by_every_version(inside):
    """Up to version 3 a division by zero is an error of status 3, as when the file was written, and IF is as it was."""
    body = part(FORMULA, 0, OLD_IF)
    files = {
        "v1_f": version_1("0 1 2", "x", OLD_IF),
        "v2_f": version(2, "0 1 2", "x", body),
        "v3_f": version(3, "0 1 2", "x", body),
        "whole_f": version_1("5 1 2", "x", OLD_IF),
    }
    lines = ["run v1.f x=1", "run v2.f x=1", "run v3.f x=1", "run whole.f x=0", "run whole.f x=9"]
    assert inside.each(*lines, **files) == [complains(3, "division by zero")] * 3 + [prints("2"), prints("1")]


@pytest.mark.requirement("promise", kind="core")
@pytest.mark.parametrize(("number", "half", "zero"), [(2, "-2", "-0.0"), (3, "-2", "0.0")])
def test_sheets_saved_by_earlier_versions(inside, number, half, zero):
    """A sheet of an earlier version has its own halves, signs and errors, and may define what is a function today."""
    content = version(
        number,
        "2.5 0 0.01",
        "half small bad x IFERROR",
        part(CELL, 0, "PUSH 0; NEG; PUSH 1; CALL ROUND 2; RET"),
        part(CELL, 1, "PUSH 2; NEG; RET", shape="0.0"),
        part(CELL, 2, "LOAD 3; INVOKE 0 1; RET"),
        part(DEF, 4, "PUSH 0; ARG 0; POW; RET", parameters=(3,)),
    )
    assert inside.each("run old.f x=0", "run old.f x=0.5", old_f=content) == [
        prints(f"half = {half}", f"small = {zero}", "bad = 1"),
        complains(3, "bad: bad exponent"),
    ]


@pytest.mark.requirement("build", kind="core")
def test_version_4_of_a_formula(built):
    """Every DIV, POW and CALL of ROUND has a position, in the order of the code, and nothing else has."""
    assert built("ROUND(MAX(x, 1) / 2 ^ 3, 1) - 4") == version(
        4,
        "1 2 3 4",
        "x",
        part(
            FORMULA,
            0,
            "LOAD 0; PUSH 0; CALL MAX 2; PUSH 1; PUSH 2; POW; DIV; PUSH 0; CALL ROUND 2; PUSH 3; SUB; RET",
            positions=[(15, 1, 21), (16, 1, 17), (20, 1, 1)],
        ),
    )


@pytest.mark.requirement("build-sheet", kind="core")
def test_version_4_of_a_sheet(built):
    """Positions have the lines of the sheet, and parts without any have the number 0."""
    text = "# Shares\n\nshare [0%] = IFERROR(of(a), 0)\n def of(x) = x / (x - 1)\na = IF(1, 1, 0)\n"
    assert built("--sheet", "a.sheet", a_sheet=text) == version(
        4,
        "0 1",
        "share a of x",
        part(CELL, 0, "LOAD 1; INVOKE 0 1; JOK 13; PUSH 0; RET", shape="0%", positions=[]),
        part(DEF, 2, "ARG 0; ARG 0; PUSH 1; SUB; DIV; RET", parameters=(3,), positions=[(8, 4, 16)]),
        part(CELL, 1, "PUSH 1; JERR 18; JZ 15; PUSH 1; JMP 18; PUSH 0; RET", positions=[]),
    )


@pytest.mark.requirement("saved-errors", kind="integration")
def test_saved_errors_are_values(formula, inside, built):
    """A file of version 4 gives the error values that its sheet gives."""
    text = "a = 1 / b\nb = 0\nc = IF(a, 1, 2)\nd = IFERROR(ROUND(1, 9) , b)\ne = ROUND(1, 9) - a\n"
    built("--sheet", "a.sheet", a_sheet=text)
    expected = prints("a = #DIV0 1:7", "b = 0", "c = #DIV0 1:7", "d = 0", "e = #NUM 5:5")
    assert inside.each("run made.f", "sheet a.sheet") == [expected] * 2
    listed = formula("list", "--sheet", "a.sheet")
    assert listed[0] == 0
    assert formula.answers({"list --file made.f": listed}) == {"list --file made.f": listed}


@pytest.mark.requirement("saved-errors", kind="boundary")
def test_positions_come_from_the_file(inside):
    """The place of an error is the one that the file has."""
    body = part(CELL, 0, "PUSH 0; PUSH 1; DIV; RET", positions=[(6, 700, 300)])
    assert inside("run", "new.f", new_f=version(4, "1 0", "a", body)) == prints("a = #DIV0 700:300")


@pytest.mark.requirement("damage-positions", kind="error")
def test_damaged_positions(inside, said):
    """A file in which a position is missing, too many or elsewhere is damaged."""
    contents = {
        str(positions): version(4, "1", "", part(FORMULA, 0, "PUSH 0; PUSH 0; DIV; RET", positions=positions))
        for positions in ([], [(6, 1, 1), (7, 1, 1)], [(5, 1, 1)], [(7, 1, 1)])
    }
    contents["none at all"] = version(4, "1", "", part(FORMULA, 0, "PUSH 0; RET"))
    assert said("run", contents) == dict.fromkeys(contents, "error 4: FILE: damaged")
    assert inside("run", "new.f", new_f=contents["[]"]) == complains(4, "new.f: damaged")
