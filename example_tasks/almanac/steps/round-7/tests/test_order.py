"""The order in which files are imported does not matter."""

import pytest
from records import Records, listing, load, log


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
    steps = ["list", "object x", "leftovers"]
    _, listed, printed, leftovers = almanac.prints(load(files), *steps, files=files)
    ordered = ["10.log", "9.log", "Z.log", "a.log", "a.tsv", "b.log"]
    expected = [f"{name}/{each}" for name in ordered for each in (2, 1)]
    assert [line.split()[-1] for line in listed.splitlines()] == expected
    assert [line.split()[-1] for line in printed.splitlines()] == expected
    assert [line.split(":")[0] for line in leftovers.splitlines()] == ordered


@pytest.mark.requirement("order-names", kind="integration")
def test_any_order(almanac):
    """However files are mixed in many imports, the list and the leftovers are the same."""
    records = Records(71, wild=True)
    names = list(records.files)
    records.random.shuffle(names)
    steps = [load(names[:3]), load(names[2:] + names[:1]), "list", "leftovers"]
    *_, listed, leftovers = almanac.prints(*steps, files=records.files)
    assert listed == listing(records.seen)
    assert leftovers == "".join(records.leftovers)


@pytest.mark.requirement("order-names", kind="boundary")
def test_doubles(almanac):
    """Doubles are in this order as well."""
    files = {"b.log": log("1;01.05.2006;22:10;x;HA;9;1"), "a.log": log("1;01.05.2006;22:10;x;HA;8;1")}
    _, doubles = almanac.prints(load(files), "doubles", files=files)
    assert [line.split()[-1] for line in doubles.splitlines()] == ["a.log:1", "b.log:1"]
