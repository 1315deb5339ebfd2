"""The order in which files are imported does not matter."""

import pytest
from records import Records, listing, log


@pytest.mark.requirement("order-names", kind="core")
def test_by_name_and_line(almanac):
    """What is of one moment is by the files' names, in plain character order, and then from top to bottom."""
    names = ["b.log", "a.tsv", "Z.log", "a.log", "10.log", "9.log"]
    header = "id\tut\tobject\n"
    files = {}
    for name in names:
        text = log(*(f"{name}/{each};01.05.2006;22:10;x;HA;{name[0]};1" for each in (2, 1)), "left")
        if name.endswith("tsv"):
            text = f"{header}{name}/2\t2006-05-01T22:10\tx\n{name}/1\t2006-05-01T22:10\tx\nleft\n".encode()
        files[name] = text
    almanac.load(files)
    ordered = ["10.log", "9.log", "Z.log", "a.log", "a.tsv", "b.log"]
    expected = [f"{name}/{each}" for name in ordered for each in (2, 1)]
    assert [line.split()[-1] for line in almanac.prints("list").splitlines()] == expected
    assert [line.split()[-1] for line in almanac.prints("object", "x").splitlines()] == expected
    assert [line.split(":")[0] for line in almanac.prints("leftovers").splitlines()] == ordered


@pytest.mark.requirement("order-names", kind="integration")
def test_any_order(almanac):
    """However files are mixed in many imports, the list and the leftovers are the same."""
    records = Records(71, wild=True)
    names = list(records.files)
    records.random.shuffle(names)
    almanac.load({name: records.files[name] for name in names[:3]})
    almanac.load({name: records.files[name] for name in names[2:] + names[:1]})
    assert almanac.prints_bytes("list").decode() == listing(records.seen)
    assert almanac.prints("leftovers") == "".join(records.leftovers)


@pytest.mark.requirement("order-names", kind="boundary")
def test_doubles(almanac):
    """Doubles are in this order as well."""
    almanac.load({"b.log": log("1;01.05.2006;22:10;x;HA;9;1"), "a.log": log("1;01.05.2006;22:10;x;HA;8;1")})
    assert [line.split()[-1] for line in almanac.prints("doubles").splitlines()] == ["a.log:1", "b.log:1"]
