"""Only what is old is removed, and nothing is run."""

import hashlib

import pytest
from bench import DAY, FIRST, Answer, below, complaint, file, old_line, packed, quoted, stored, tape

SOURCE = below({"x": "1"}, "src")


def ids(first, last):
    return [f"202604{day:02}-023000" for day in range(first, last + 1)]


def removed(*gone):
    return Answer(0, "".join(f"{id}\tremoved\n" for id in gone), "")


@pytest.mark.requirement("store", kind="error")
@pytest.mark.parametrize("value", ["", "store", "$BASE/gone", "$BASE/src/x"], ids=range(4))
def test_bad_store(bench, value):
    """Without a store nothing is done, by any command, and nothing is made."""
    calls = ["take acme src", "rotate acme", "list A/"]
    if not value:
        calls += ["list acme", "verify acme", "restore acme 20260401-023000 o", "report"]
    script = f'NIGHTSAFE_STORE="{value}"\n' + "".join(f"call {call}\n" for call in calls)
    script += "call list\nunset NIGHTSAFE_STORE\ncall rotate acme\ncall ls . store"
    *answers, usage, unset, left = bench.run(script, SOURCE)
    assert answers == [complaint(2, f"bad store: {value.replace('$BASE', bench.base)}")] * len(calls)
    assert (usage, unset) == (complaint(2, "usage: list CUSTOMER"), complaint(2, "bad store: "))
    assert left.out == ".:\nanswers\nsrc\nstore\n\nstore:\n"


@pytest.mark.requirement("keep", kind="core")
def test_keep(bench):
    """The newest stay, as many as `keep` says; archives and lines of all others go, the oldest first."""
    script = "call rotate acme\ncall list acme\ncall ls store/acme"
    rotated, listed, left = bench.run(script, stored(ids(1, 5), settings="# ours\n\nkeep=003"))
    assert rotated == removed(*ids(1, 2))
    assert listed.ids == ids(3, 5)
    assert left.out.split() == [*(f"{id}.tar.gz" for id in ids(3, 5)), "catalogue", "settings"]


@pytest.mark.requirement("keep", kind="boundary")
@pytest.mark.parametrize("settings", [None, "#keep=1\n"], ids=range(2))
def test_seven(bench, settings):
    """Without settings seven are kept; where there are no more nothing is removed."""
    script = f"call rotate acme\nNIGHTSAFE_NOW={FIRST + 7 * DAY}\ncall take acme src\ncall rotate acme"
    first, _, second = bench.run(script, {**SOURCE, **stored(ids(1, 7), settings=settings)})
    assert (first, second) == (removed(), removed(*ids(1, 1)))


@pytest.mark.requirement("keep", kind="core", retired="round-7")
def test_several_a_day(bench):
    """Backups are counted, also several of a day."""
    [rotated] = bench.run("call rotate acme", stored([f"20260401-0{hour}3000" for hour in range(4)], settings="keep=2"))
    assert rotated == removed("20260401-003000", "20260401-013000")


NONE = [
    ("keep=0\n", 1),
    ("keep=3\nkeep=3\n", 2),
    ("\n#\nkeep=\n", 3),
    ("keep=10000\n", 1),
    ("keep= 1\n", 1),
    ("keep=1 \n", 1),
    (" #\nkeep=1\n", 1),
    ("keep=1\r\n", 1),
    ("keep=0x1\n", 1),
    ("keep=1+1\n", 1),
    ("keep=a[$(touch hit)]\n", 1),
    ("keep=1; touch hit\n", 1),
    ("keep=1\nKEEP=1", 2),
    ("STORE=/\n", 1),
]


@pytest.mark.requirement("settings", kind="error")
def test_settings_that_are_none(bench):
    """A line that is none is told by number, and nothing is removed or run."""
    script = ""
    for settings, _ in NONE:
        script += f"printf %s {quoted(settings)} > store/acme/settings; call rotate acme\n"
    *answers, listed, left = bench.run(f"{script}call list acme\ncall ls", stored(ids(1, 3)))
    assert answers == [complaint(1, f"settings: line {number}") for _, number in NONE]
    assert (listed.ids, "hit" in left.out) == (ids(1, 3), False)


@pytest.mark.requirement("settings", kind="boundary")
def test_numbers(bench):
    """Numbers are decimal, whatever zeros come before them."""
    script = "call rotate acme\nprintf keep=0008 > store/acme/settings\ncall rotate acme"
    first, second = bench.run(script, stored(ids(1, 12), settings="keep=010\n"))
    assert (first, second) == (removed(*ids(1, 2)), removed(*ids(3, 4)))


@pytest.mark.requirement("only-that", kind="core")
def test_ids_that_begin_alike(bench):
    """An old backup goes without those whose ID begins with its own, and without files that no line names."""
    old = {"20200501": tape({"./x": file("0")}), "20200501-033000": tape({"./x": file("1")})}
    other = {"20200501.notes": "mine", "20200501/x": "mine", "20200502.tar": "x", "20200503-000000.tar.gz": "y"}
    lines = "".join(old_line(id, archive, "/srv", "-") for id, archive in old.items())
    files = {f"store/acme/{id}.tar": archive for id, archive in old.items()}
    files |= {f"store/acme/{name}": text for name, text in other.items()}
    files |= {"store/acme/catalogue": lines, "store/acme/settings": "keep=2\n", "store/20200501.tar": "z"}
    taken, rotated, listed, left, beside = bench.run(
        "call take acme src\ncall rotate acme\ncall list acme\ncall ls store/acme\ncall ls store", {**files, **SOURCE}
    )
    assert (taken.status, rotated) == (0, removed("20200501"))
    assert listed.ids == ["20200501-033000", "20260401-023000"]
    archives = ["20200501-033000.tar", "20260401-023000.tar.gz"]
    others = {name.split("/")[0] for name in other}
    assert sorted(left.out.split()) == sorted([*others, *archives, "catalogue", "settings"])
    assert beside.out.split() == ["20200501.tar", "acme"]


@pytest.mark.requirement("only-that", kind="core")
def test_other_lines(bench):
    """Lines that stay are as they were and where they were, those that are none as well."""
    archives = [packed({"x": file(str(number))}) for number in range(3)]
    digest = hashlib.sha256(archives[0]).hexdigest()
    names = ["20230103-000000", "20230101-000000", "20230102-000000"]
    lines = [
        f"2\t{names[0]}\t{len(archives[0])}\t{digest}\t/srv/a\\\\b\n",
        "../../../src 1 - /x\n",
        old_line(names[1], archives[1], "/srv/gone"),
        "  # a note\t\n",
        old_line(names[2], archives[2], "/srv/c:\\ d "),
        "2\t../../src\t1\t" + "0" * 64 + "\t/x",
    ]
    files = {f"store/acme/{name}.tar.gz": archive for name, archive in zip(names, archives, strict=True)}
    script = "call rotate acme\ncall cat store/acme/catalogue\ncall ls src"
    rotated, catalogue, source = bench.run(
        script, {**files, "store/acme/catalogue": "".join(lines), "store/acme/settings": "keep=2\n", **SOURCE}
    )
    assert (rotated, source.out) == (removed(names[1]), "x\n")
    assert catalogue.out == "".join(lines[:2] + lines[3:])


@pytest.mark.requirement("whole-ones", kind="core")
def test_what_is_not_whole(bench):
    """What is damaged or missing is not counted, and stays."""
    script = """
        echo >> store/acme/20260406-023000.tar.gz
        rm store/acme/20260405-023000.tar.gz
        echo >> store/acme/20260401-023000.tar.gz
        call rotate acme
        call list acme
        call ls store/acme
    """
    rotated, listed, left = bench.run(script, stored(ids(1, 6), settings="keep=2\n"))
    assert rotated.told == removed("20260402-023000")
    assert listed.ids == [*ids(1, 1), *ids(3, 6)]
    assert left.out.split()[:4] == [f"202604{day}-023000.tar.gz" for day in ("01", "03", "04", "06")]


@pytest.mark.requirement("dry", kind="core")
def test_dry(bench):
    """With -n the same is printed, and nothing is changed."""
    script = "call ls -lR --full-time store\ncall rotate -n acme\ncall ls -lR --full-time store\n"
    before, dry, after, rotated = bench.run(f"{script}call rotate acme", stored(ids(1, 4), settings="keep=2\n"))
    assert dry == Answer(0, "".join(f"{id}\twould be removed\n" for id in ids(1, 2)), "")
    assert (before, rotated) == (after, removed(*ids(1, 2)))


@pytest.mark.requirement("dry", kind="error")
def test_usage_of_rotate_with_n(bench):
    """What is not used so is answered by how it is used."""
    answers = bench.run("call rotate\ncall rotate -n\ncall rotate acme acme\ncall rotate acme -n\ncall rotate -n a b")
    assert answers == [complaint(2, "usage: rotate [-n] CUSTOMER")] * 5
