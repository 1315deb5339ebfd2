"""Edition 1: errors of patterns, their kinds and their places. `@` marks a place."""

import pytest
from tool import asks, marks, patterns, told

ERRORS = {
    "byte": [
        "set r1, 5@\x01",
        "@\xc3\xa4: halt",
        "halt\n halt @\r;\nhalt",
        "row@\r\r\nhalt",
        "h@\xffalt",
        "x @\x7f y",
        "@\x0b",
    ],
    "twice": [
        "a: halt\n@a: halt",
        ".const a, 1\n.const @a, 1",
        "a:\n .const @a, 2",
        ".const a, 2\nhalt\n  @a:",
        ".width 4\n@.width 4",
    ],
    "word": [
        "@Halt",
        "@hlt",
        "  @set, r1",
        "a: @b: halt",
        "@r1: halt",
        "@5a: halt",
        "@.data1 5",
        "@a : halt",
        "@.WIDTH 5",
    ],
    "number": [
        ".width @0",
        ".width @201",
        ".width @-1",
        ".const a, @32768",
        ".data 1, 2, @-32769",
        ".data 1, @5x",
        "add r1, @0x",
        "knit @1 2",
        "yarn @65535",
    ],
    "name": [
        "jmp @nowhere",
        ".const a, 5\njmp @a",
        "a: set r1, @a",
        "knit @colour",
        "set r1, @r8",
        "jmp @r8",
        "call @a1\n.const a2, 1",
    ],
    "operand": [
        "set @5, 5",
        "set @R1, 5",
        "set r1@",
        "set r1,@  ; nothing",
        "set r1,@,5",
        "set @,5",
        "set r1, 5, @6",
        "halt @now",
        "ret @,",
        "jmp @5",
        "jmp @r1",
        "jmp@  ",
        "pop @r8",
        "knit @Two",
        ".width@",
        ".width @r1",
        ".width 5, @6",
        ".const @5, 5",
        ".const @r1, 5",
        ".const a, @b",
        ".const a@",
        ".const " + "@" + "a" * 33 + ", 1",
        ".data@",
        ".data 1, @r1",
        ".data 1,@",
        ".include@",
        "add @r1 5",
        "set @r1 r2, 5",
    ],
}


@pytest.mark.requirement("errors", kind="error")
@pytest.mark.parametrize("kind", ERRORS)
@asks(lambda kind: marks({kind: ERRORS[kind]}))
def test_errors(loom, kind):
    """Each error has its kind, and its place in lines and columns from 1 on."""
    told(*loom.answers(), {kind: ERRORS[kind]})


TABS = {"word": ["\t@hlt", "\ta:\t @x"], "number": ["set\tr1,\t@5x"]}


@pytest.mark.requirement("errors", kind="error", retired="round-4")
@asks(marks(TABS))
def test_tab_is_one_column(loom):
    """A tab is one column, as each byte is."""
    told(*loom.answers(), TABS)


LINES = {"word": ["\n\n; a\n\n  @hlt", "; \x0b \x0c \x85 \r \x1c\r\n\r\n@hlt\r\n", "halt ; \u00ff\n@hlt"]}


@pytest.mark.requirement("errors", kind="boundary")
@asks(marks(LINES))
def test_lines_are_counted(loom):
    """Every line counts, also empty ones and comments; nothing but a line feed ends one."""
    told(*loom.answers(), LINES)


TOO_MUCH = {"limit": ["row\n" * 4096 + " @row", ".data 1\n" * 1023 + ".data 1, @5x", "row\n" * 4096 + "a: @row 5\nhlt"]}
FITS = "jmp a\n" * 4095 + "halt\na:\n" + ".data " + ",".join("5" * 1024)


@pytest.mark.requirement("errors", kind="error")
@asks(marks(TOO_MUCH), patterns([FITS]))
def test_too_much(loom):
    """There are at most 4096 instructions and 1024 numbers of data."""
    refused, fits = loom.answers()
    told(refused, TOO_MUCH)
    assert fits == [(0, "", "")]


SEVERAL = {
    "name": ["jmp @a\nhlt\nset", "b: jmp @a\nb:", "halt\n  set r1, @x\n set 5"],
    "operand": ["set @X1, y\nset r1, 5x", "knit @K, x, 5"],
    "word": ["a: @hlt \n jmp b", "@hlt\n\x01"],
    "byte": ["jmp a @\x01\nhlt", "a: hlt @\xff\xfe"],
    "twice": [".width 4\n@.width 999"],
    "number": [".data @5x, 7x", ".data @99999, a"],
}


@pytest.mark.requirement("first-error", kind="error")
@asks(marks(SEVERAL))
def test_first_error(loom):
    """Of several errors the first is told, whatever kind they have."""
    told(*loom.answers(), SEVERAL)


@pytest.mark.requirement("first-error", kind="error")
def test_nothing_is_written(loom):
    """A pattern with an error prints no row, and leaves no deck; FILE is as in the command."""
    files = {"hall/p.knit": "knit 1\nrow\nset r1\n"}
    answers = loom.all(
        [["run", "hall/p.knit"], ["build", "./hall/p.knit", "p.deck"], ["run", "hall/../hall/p.knit"]], files
    )
    names = ["hall/p.knit", "./hall/p.knit", "hall/../hall/p.knit"]
    assert answers == [(3, "", f"{name}:3:7: operand\n") for name in names]
    assert loom.names() == ["hall"]
