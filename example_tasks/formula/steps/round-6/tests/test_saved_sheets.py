"""Sheets in files of version 2."""

import pytest
from answers import complains, prints
from files import CELL, DEF, FORMULA, part, version

PRICES = """\
total [#,##0.00] = gross(net, 1) * packs
def gross(net, rate) = IF(rate, net * (1 + tax), net)
net = 2.50
# Tax
tax [0%] = 0.2
def twice(x) = gross(x, 0) + gross(x, 0)
more = twice(net)
"""
SAVED = [
    part(CELL, 0, "LOAD 1; PUSH 0; INVOKE 0 2; LOAD 2; MUL; RET", shape="#,##0.00"),
    part(DEF, 3, "ARG 1; JZ 18; ARG 0; PUSH 0; LOAD 5; ADD; MUL; JMP 20; ARG 0; RET", parameters=(1, 4)),
    part(CELL, 1, "PUSH 1; RET"),
    part(CELL, 5, "PUSH 2; RET", shape="0%"),
    part(DEF, 6, "ARG 0; PUSH 3; INVOKE 0 2; ARG 0; PUSH 3; INVOKE 0 2; ADD; RET", parameters=(7,)),
    part(CELL, 8, "LOAD 1; INVOKE 1 1; RET"),
]
CONSTANTS, NAMES = "1 2.5 0.2 0", "total net packs gross rate tax twice x more"
PRINTED = prints("total = 9.00", "net = 2.5", "tax = 20%", "more = 5")


@pytest.mark.requirement("build", kind="core", retired="round-7")
def test_formulas_are_saved_as_version_2(built):
    """A formula is one part, without a name of its own."""
    assert built("x + 1 - x") == version(2, "1", "x", part(FORMULA, 0, "LOAD 0; PUSH 0; ADD; LOAD 0; SUB; RET"))


@pytest.mark.requirement("build-sheet", kind="core", retired="round-7")
def test_sheets_are_saved_as_version_2(built):
    """Parts, names and constants are in the sheet's order, and each once."""
    assert built("--sheet", "prices.sheet", prices_sheet=PRICES) == version(2, CONSTANTS, NAMES, *SAVED)


@pytest.mark.requirement("build-sheet", kind="boundary")
def test_names_of_the_example(built):
    """The name of a part goes before its parameters, and these before what its code loads."""
    content = built("--sheet", "a.sheet", a_sheet="b [0] = f(a)\ndef f(x) = x + a\n")
    assert content[5:17] == b"\0\0\0\4\1b\1a\1f\1x\0"[:12]


@pytest.mark.requirement("run-sheet", kind="core")
def test_saved_sheets_run(inside):
    """A sheet of version 2 runs with the numbers that it is given, also for its cells."""
    content = version(2, CONSTANTS, NAMES, *SAVED)
    assert inside.each("run old.f packs=3", "run old.f packs=3 tax=0 net=1000", "run old.f", old_f=content) == [
        PRINTED,
        prints("total = 3,000.00", "net = 1000", "tax = 0%", "more = 2000"),
        complains(3, "total: unknown name 'packs'"),
    ]


@pytest.mark.requirement("run-sheet", kind="integration")
def test_build_and_run_a_sheet(formula, inside, built):
    """A saved sheet prints what the sheet prints, and lists as it lists."""
    built("--sheet", "prices.sheet", prices_sheet=PRICES)
    assert inside("run", "made.f", "packs=3") == PRINTED
    listed = formula("list", "--sheet", "prices.sheet")
    assert listed[0] == 0
    assert formula.answers({"list --file made.f": listed}) == {"list --file made.f": listed}


@pytest.mark.requirement("build-sheet", kind="error")
def test_what_is_not_saved(formula, workspace):
    """A sheet that is wrong is reported as when it is computed, and no file is written."""
    wrong = {"build --sheet a.sheet a.f": complains(2, "2:6: unexpected end")}
    assert formula.answers(wrong, a_sheet="a = 1\nb = (\n") == wrong
    assert not workspace.exists(f"{workspace.path}/a.f")


@pytest.mark.requirement("damage-sheet", kind="error")
def test_damaged_sheets(inside, said):
    """What is no sheet of version 2 is damaged, with a right checksum too, and no cell is printed."""
    cell = part(CELL, 0, "PUSH 0; RET")
    definition = part(DEF, 0, "ARG 0; RET", parameters=(0,))
    sheets = {
        "a formula beside a cell": [cell, part(FORMULA, 0, "PUSH 0; RET")],
        "another kind": [part(3, 0, "PUSH 0; RET")],
        "parameters of a cell": [part(CELL, 0, "PUSH 0; RET", parameters=(0,))],
        "a format of a definition": [part(DEF, 0, "PUSH 0; RET", shape="0")],
        "no format": [part(CELL, 0, "PUSH 0; RET", shape="0.")],
        "a name that is not there": [part(CELL, 1, "PUSH 0; RET")],
        "a parameter without a name": [part(DEF, 0, "PUSH 0; RET", parameters=(1,))],
        "a parameter that is not there": [part(DEF, 0, "ARG 1; RET", parameters=(0,))],
        "too many arguments": [definition, part(CELL, 0, "PUSH 0; PUSH 0; INVOKE 0 2; RET")],
        "no such definition": [definition, part(CELL, 0, "PUSH 0; INVOKE 1 1; RET")],
        "an empty stack": [cell, part(CELL, 1, "NEG; RET")],
        "a value that is left": [definition, part(CELL, 0, "PUSH 0; PUSH 0; INVOKE 0 1; RET")],
    }
    names = {"an empty stack": "a b"}
    contents = {what: version(2, "1", names.get(what, "a"), *parts) for what, parts in sheets.items()}
    assert said("run", contents) == dict.fromkeys(contents, "error 4: FILE: damaged")
    assert inside("run", "old.f", old_f=contents["an empty stack"]) == complains(4, "old.f: damaged")


@pytest.mark.requirement("damage-sheet", kind="boundary")
def test_a_changed_digit(inside):
    """A digit of a price that has changed is damage."""
    content = version(2, CONSTANTS, NAMES, *SAVED).replace(b"\x032.5", b"\x033.5")
    answers = inside.each("run old.f packs=3", "run new.f", old_f=content, new_f=b"PFML\x09" + content[5:])
    assert answers == [complains(4, "old.f: damaged"), complains(4, "new.f: version 9")]
