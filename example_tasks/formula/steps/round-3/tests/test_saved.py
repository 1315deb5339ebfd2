"""Formulas in files."""

import pytest
from answers import complains, prints
from files import version_1

DISCOUNT = version_1(
    "10 0.9",
    "amount limit price",
    "LOAD 0; LOAD 1; GE; JZ 20; LOAD 2; PUSH 0; SUB; JMP 30; LOAD 2; PUSH 1; CALL MAX 2; NEG; RET",
)
EVERYTHING = version_1(
    "1 2 3 4 5 6 7 8",
    "x",
    "PUSH 0; NEG; PUSH 1; ADD; PUSH 2; SUB; PUSH 3; MUL; PUSH 4; DIV; PUSH 1; POW; "
    "PUSH 5; EQ; LOAD 0; NE; PUSH 6; LT; PUSH 0; LE; PUSH 1; GT; PUSH 7; GE; CALL ABS 1; PUSH 0; CALL ROUND 2; "
    "PUSH 2; CALL MIN 2; RET",
)


@pytest.mark.requirement("build", kind="core", retired="round-6")
def test_the_example(built):
    """The file of the order's example has its very bytes, and that of another formula others."""
    assert built("y * 10") == version_1("10", "y", "LOAD 0; PUSH 0; MUL; RET")
    assert built("x + 1").hex(" ").upper() == (
        "50 46 4D 4C 01 00 01 01 31 00 01 01 78 00 08 02 00 00 01 00 00 03 12 E1 F2 B4 91"
    )


@pytest.mark.requirement("build", kind="core", retired="round-6")
def test_the_whole_format(built):
    """Constants and names stand once each, in the listing's order, and all instructions have their codes."""
    assert built("IF(a >= b, c - 2.50, MAX(b, 2.5 / 10 * a) ^ 2) <> -10") == version_1(
        "2.5 10 2",
        "a b c",
        "LOAD 0; LOAD 1; GE; JZ 20; LOAD 2; PUSH 0; SUB; JMP 41; LOAD 1; PUSH 0; PUSH 1; DIV; LOAD 0; MUL; "
        "CALL MAX 2; PUSH 2; POW; PUSH 1; NEG; NE; RET",
    )


@pytest.mark.requirement("build", kind="integration")
def test_build_and_run(formula, inside):
    """What was built runs with the values that it is given, and lists as its formula does."""
    text = "IF(x > 2, ROUND(x * 1.19, 2), MIN(x, y) + 0.5)"
    assert formula("build", text, "made.f") == prints()
    assert inside.each("run made.f x=12.345", "run made.f x=2 y=-1") == [prints("14.69"), prints("-0.5")]
    assert formula("list", "--file", "made.f") == inside("list", text)


@pytest.mark.requirement("build", kind="error")
def test_build_of_what_is_wrong(formula, workspace):
    """A formula that is wrong is reported as by eval, and no file is written."""
    wrong = {"build '1 + ' never.f": complains(2, "5: unexpected end")}
    assert formula.answers(wrong) == wrong
    assert not workspace.exists(f"{workspace.path}/never.f")


@pytest.mark.requirement("saved-run", kind="core")
def test_files_of_version_1_run(formula, inside):
    """A file of version 1 runs, with the values of the command line, and is listed."""
    runs = inside.each(
        "run old.f amount=12 limit=12 price=99",
        "run old.f amount=1 limit=12 price=99",
        "run old.f amount=1 limit=12 price=0.5",
        old_f=DISCOUNT,
    )
    assert runs == [prints("89"), prints("-99"), prints("-0.9")]
    listed = {
        "list --file old.f": prints(
            "0000 LOAD amount",
            "0003 LOAD limit",
            "0006 GE",
            "0007 JZ 0020",
            "0010 LOAD price",
            "0013 PUSH 10",
            "0016 SUB",
            "0017 JMP 0030",
            "0020 LOAD price",
            "0023 PUSH 0.9",
            "0026 CALL MAX 2",
            "0029 NEG",
            "0030 RET",
        )
    }
    assert formula.answers(listed, old_f=DISCOUNT) == listed


@pytest.mark.requirement("saved-run", kind="integration")
def test_every_instruction_of_version_1_runs(formula):
    """All codes of version 1 are known for ever."""
    assert formula("run", "old.f", "x=1", old_f=EVERYTHING) == prints("0")


@pytest.mark.requirement("saved-run", kind="error")
def test_saved_names_without_values(inside):
    """A name of a file that has no value is unknown, and only if it is needed."""
    assert inside("run", "old.f", "amount=1", "limit=0", old_f=DISCOUNT) == complains(3, "unknown name 'price'")


@pytest.mark.requirement("promise", kind="core")
def test_saved_halves(said):
    """What version 1 wrote is rounded for ever as it was rounded then: a half goes away from zero."""
    expected = {
        ("2.5 0", "PUSH 0; PUSH 1; CALL ROUND 2; RET"): "3",
        ("2.5 0", "PUSH 0; NEG; PUSH 1; CALL ROUND 2; RET"): "-3",
        ("0.000001 0.5", "PUSH 0; PUSH 1; MUL; RET"): "0.000001",
        ("0.000005 2", "PUSH 0; PUSH 1; DIV; NEG; RET"): "-0.000003",
        ("0.5 7", "PUSH 0; PUSH 1; POW; RET"): "0.007813",
    }
    contents = {(constants, code): version_1(constants, "", code) for constants, code in expected}
    assert said("run", contents) == expected


@pytest.mark.requirement("promise", kind="core")
def test_saved_powers(inside):
    """The order in which version 1 computed powers is in the file."""
    left = version_1("2", "", "PUSH 0; NEG; PUSH 0; POW; RET")
    right = version_1("2 3", "", "PUSH 0; PUSH 1; POW; PUSH 0; POW; RET")
    answers = inside.each("run sign.f", "run right.f", sign_f=left, right_f=right)
    assert answers == [prints("4"), prints("64")]


@pytest.mark.requirement("promise", kind="error")
def test_saved_errors(inside, said):
    """What version 1 could not compute ends for ever as it did then."""
    expected = {
        ("1 0", "PUSH 0; PUSH 1; DIV; RET"): "error 3: division by zero",
        ("1 0.5", "PUSH 0; PUSH 1; POW; RET"): "error 3: bad exponent",
        ("1 0.5", "PUSH 0; PUSH 1; CALL ROUND 2; RET"): "error 3: bad digits",
    }
    contents = {(constants, code): version_1(constants, "", code) for constants, code in expected}
    assert said("run", contents) == expected
    division = contents["1 0", "PUSH 0; PUSH 1; DIV; RET"]
    assert inside("run", "old.f", old_f=division) == complains(3, "division by zero")
