"""No minus sign before zeros, but in what was saved before."""

import pytest
from answers import complains, prints
from files import CELL, FORMULA, part, version, version_1


def two_cells(number):
    """A sheet whose cell rounds to zero from below, with a half beside it."""
    return version(
        number,
        "0 0.001 2.5",
        "loss half",
        part(CELL, 0, "PUSH 0; PUSH 1; SUB; RET", shape="0.00"),
        part(CELL, 1, "PUSH 2; RET", shape="0"),
    )


@pytest.mark.requirement("format-minus", kind="core")
def test_no_minus_before_zeros(inside):
    """What is printed as zero has no minus sign, and any other negative value has it."""
    text = "loss [0.00] = 0 - 0.001\nb [0%] = -0.001\nc [0.00] = -0.006\nd [#,##0] = -0.4\ne [0.0%] = -0.0006\n"
    assert inside("sheet", "a.sheet", a_sheet=text) == prints(
        "loss = 0.00", "b = 0%", "c = -0.01", "d = 0", "e = -0.1%"
    )


@pytest.mark.requirement("promise", kind="boundary")
def test_saved_minus(inside):
    """A sheet of version 2 has its minus sign for ever, and one of version 3 has none."""
    assert inside.each("run two.f", "run three.f", two_f=two_cells(2), three_f=two_cells(3)) == [
        prints("loss = -0.00", "half = 2"),
        prints("loss = 0.00", "half = 2"),
    ]


@pytest.mark.requirement("promise", kind="boundary")
def test_version_1_is_still_that(inside):
    """Files of version 1 round as they did then."""
    content = version_1("2.5 0", "", "PUSH 0; NEG; PUSH 1; CALL ROUND 2; RET")
    assert inside("run", "one.f", one_f=content) == prints("-3")


@pytest.mark.requirement("build", kind="core", retired="round-8")
def test_version_3_is_written(built):
    """Version 3 is version 2 but for its number."""
    content = part(FORMULA, 0, "LOAD 0; PUSH 0; DIV; RET")
    assert built("x / 2") == version(3, "2", "x", content)
    assert built("--sheet", "a.sheet", a_sheet="loss[0.00] = 0 - 0.001\nhalf [0] = 2.5\n") == two_cells(3)


@pytest.mark.requirement("other-version", kind="error")
def test_unknown_versions(inside):
    """A later version is not known yet."""
    assert inside("run", "new.f", new_f=two_cells(77)) == complains(4, "new.f: version 77")
