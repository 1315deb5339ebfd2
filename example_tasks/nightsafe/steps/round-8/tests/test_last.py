"""What is removed for good, and what never is."""

import re

import pytest
from bench import FIRST, Answer, below, complaint, link, stored

DAY = 86_400
AGED = ["20250101", "20251231-235959", "20260101-000000", "20260301-023058"]
YOUNG = ["20260301-023059", "20260301-023059-2", "20260315-000000"]


def removed(*gone):
    return Answer(0, "".join(f"{id}\tremoved\n" for id in gone), "")


def is_well_or_told(answer):
    """Whether a rotation that keeps the last whole one for the conditions' sake ends well, or tells of it (2.1)."""
    return answer.status == 0 or "nightsafe: " in answer.err


@pytest.mark.requirement("max-age", kind="core")
def test_max_age(bench):
    """What is older than that goes, whatever keep and weeks say, to the second, the oldest first."""
    script = f"NIGHTSAFE_NOW={FIRST + 59}\ncall rotate -n acme\ncall rotate acme\ncall list acme\ncall ls store/acme"
    files = stored(AGED[::-1] + YOUNG, settings="keep=9999\nmax-age=0031\nweeks=9999\n")
    dry, done, listed, left = bench.run(script, files)
    assert dry.out == "".join(f"{id}\twould be removed\n" for id in [*AGED, YOUNG[0]])
    assert done == removed(*AGED, YOUNG[0])
    assert listed.ids == YOUNG[1:]
    assert [name for name in left.out.split() if ".tar" in name] == [f"{id}.tar.gz" for id in YOUNG[1:]]


@pytest.mark.requirement("max-age", kind="core")
def test_max_age_of_what_is_not_whole(bench):
    """Damaged and missing ones go by their age, too, and by nothing else; links and what is none of ours stay."""
    script = f"""
        NIGHTSAFE_NOW={FIRST + DAY + 59}
        echo >> store/acme/{AGED[1]}.tar.gz
        rm store/acme/{AGED[2]}.tar.gz
        echo >> store/acme/{YOUNG[0]}.tar.gz
        mv store/acme/{AGED[3]}.tar.gz elsewhere; ln -s ../../elsewhere store/acme/{AGED[3]}.tar.gz
        call rotate acme
        call list acme
        call ls store/acme elsewhere
    """
    files = stored([*AGED, *YOUNG], settings="keep=1\nmax-age=32\n") | {f"store/acme/{AGED[0]}.tar.gz": "not of a line"}
    done, listed, left = bench.run(script, files)
    assert done.told == removed(*AGED, YOUNG[1])
    assert listed.ids == [YOUNG[0], YOUNG[2]]
    names = [f"{id}.tar.gz" for id in (AGED[0], AGED[3], YOUNG[0], YOUNG[2])]
    assert [name for name in left.out.split() if ".tar" in name] == names
    assert left.out.startswith("elsewhere\n")


@pytest.mark.requirement("max-age", kind="error")
def test_settings_of_max_age(bench):
    """Lines of max-age are as those of keep; one that is none removes nothing."""
    wrong = [
        ("max-age=0", 1),
        ("max-age=1\nmax-age=1\n", 2),
        ("max_age=1\n", 1),
        ("maxage=5\n", 1),
        ("max-age=10000", 1),
    ]
    script = "".join(f"printf '{text}' > store/acme/settings; call rotate acme\n" for text, _ in wrong)
    *answers, listed = bench.run(f"{script}call list acme", stored([*AGED, *YOUNG]))
    assert answers == [complaint(1, f"settings: line {number}") for _, number in wrong]
    assert len(listed.ids) == 7


@pytest.mark.requirement("last-whole", kind="core")
@pytest.mark.parametrize("dry", ["rotate -n acme\ncall rotate", "rotate"], ids=["behind a dry run", "alone"])
def test_last_whole_one(bench, dry):
    """However old they are, one whole backup stays, and another rotation changes nothing of that."""
    script = f"""
        echo >> store/acme/{AGED[3]}.tar.gz
        echo >> store/acme/{YOUNG[2]}.tar.gz
        call {dry} acme
        call rotate acme
        call verify acme
    """
    files = stored([*AGED, YOUNG[2]], settings="max-age=1\n")
    *before, done, again, verified = bench.run(script, files)
    assert [row[1] for row in verified.rows] == ["ok"]
    assert (again.out, len(done.ids)) == ("", 4)
    assert all(answer.ids == done.ids for answer in before)
    assert all(is_well_or_told(answer) for answer in (*before, done, again))


@pytest.mark.requirement("last-whole", kind="core")
def test_only_one(bench):
    """A customer's only backup stays, however old it is."""
    script = "call rotate -n acme\ncall rotate acme\ncall verify acme"
    dry, done, verified = bench.run(script, stored(["20200501"], settings="max-age=1\n"))
    assert (dry.out, done.out, verified.out) == ("", "", "20200501\tok\n")
    assert is_well_or_told(dry)
    assert is_well_or_told(done)


@pytest.mark.requirement("forget", kind="core")
def test_forget(bench):
    """One backup is removed, archive and line, whole or not, and all others stay; the last whole one, too."""
    ids = ["20200501", "20200501-033000", "20260401-000000", "20260401-000000-2", "20260401-000001"]
    script = f"""
        echo >> store/acme/{ids[2]}.tar.gz
        rm store/acme/{ids[3]}.tar.gz
        for id in {" ".join([*ids[:1], *ids[2:]])}; do call forget acme $id; done
        call forget acme {ids[1]}
        call forget acme {ids[0]}
        call verify acme
        call ls store/acme
    """
    files = stored(ids[::-1]) | {"store/acme/20200501.tar.gz": "not of a line"}
    files["store/acme/catalogue"] += "# of ours"
    *answers, last, gone, verified, left = bench.run(script, files)
    assert [answer.told for answer in answers] == [removed(id) for id in [*ids[:1], *ids[2:]]]
    assert (last.told, gone) == (complaint(1, f"last whole one: {ids[1]}"), complaint(1, f"no such backup: {ids[0]}"))
    assert verified.rows == [[ids[1], "ok"]]
    assert sorted(left.out.split()) == ["20200501-033000.tar.gz", "20200501.tar.gz", "catalogue"]
    line = next(line for line in files["store/acme/catalogue"].splitlines() if ids[1] in line)
    assert bench.read("store/acme/catalogue").decode() == f"{line}\n# of ours"


@pytest.mark.requirement("forget", kind="error")
def test_forget_is_refused(bench):
    """What holds for all commands holds for this one: usage, store, time, customers, IDs, links."""
    files = stored(["20260401-000000", "20260401-000001"]) | {"store/link": link("acme")}
    calls = {
        "forget acme": complaint(2, "usage: forget CUSTOMER ID"),
        "forget acme 20260401-000000 x": complaint(2, "usage: forget CUSTOMER ID"),
        "env NIGHTSAFE_STORE=store forget acme 20260401-000000": complaint(2, "bad store: store"),
        "env NIGHTSAFE_NOW=x forget acme 20260401-000000": complaint(2, "bad time: x"),
        "forget Acme 20260401-000000": complaint(2, "bad customer: Acme"),
        "forget nobody 20260401-000000": complaint(1, "no such customer: nobody"),
        "forget link 20260401-000000": complaint(1, "no such customer: link"),
        "forget acme '2026*'": complaint(1, "no such backup: 2026*"),
        "forget acme ''": complaint(1, "no such backup: "),
    }
    *answers, verified = bench.run("".join(f"call {call}\n" for call in calls) + "call verify acme", files)
    assert dict(zip(calls, answers, strict=True)) == calls
    assert (verified.status, len(verified.ids)) == (0, 2)


@pytest.mark.requirement("forget", kind="boundary")
def test_forget_on_a_full_disk(bench):
    """Where the catalogue cannot be written, forget removes nothing, and leaves no file that is for others."""
    files = stored([f"20240101-{number:06}" for number in range(30)])
    for name in [name for name in files if name.endswith(".gz") and name[-11:-7] not in ("0001", "0002")]:
        del files[name]
    script = (
        "umask 000\n(trap '' XFSZ; ulimit -f 2; call forget acme 20240101-000001)\ncall verify acme 20240101-000001\n"
    )
    script += "call forget acme 20240101-000001\ncall verify acme 20240101-000001\ncall stat -c %a store/acme/catalogue"
    failed, still, done, gone, mode = bench.run(script, files)
    assert (failed.status != 0, failed.out, "nightsafe: " in failed.err) == (True, "", True)
    assert (still.out, done, mode.out) == ("20240101-000001\tok\n", removed("20240101-000001"), "600\n")
    assert gone == complaint(1, "no such backup: 20240101-000001")


@pytest.mark.requirement("removed-once", kind="core")
def test_removed_at_once(bench):
    """What several commands remove at the same time is printed by one of them, and one whole one stays."""
    ids = [f"2026030{day}-000000" for day in range(1, 5)]
    script = "echo keep=2 > store/acme/settings\n"
    for number, id in enumerate(ids):
        script += f"for copy in 1 2; do forget acme {id} > out{number}$copy 2>> errors & done\n"
    script += (
        "rotate acme > outr1 & rotate acme > outr2 & wait\ncall bash -c 'cat out*'\ncall cat errors\ncall verify acme"
    )
    printed, errors, verified = bench.run(script, stored(ids))
    assert (verified.status, len(verified.ids)) == (0, 1)
    assert sorted(printed.ids) == [id for id in ids if id not in verified.ids]
    allowed = {f"nightsafe: no such backup: {id}" for id in ids} | {f"nightsafe: last whole one: {verified.ids[0]}"}
    assert {line for line in errors.out.splitlines() if line.startswith("nightsafe: ")} <= allowed


@pytest.mark.requirement("open", kind="core")
def test_open_questions(bench):
    """What was not carried out stands in OPEN.md, by the numbers of its clauses, with questions; the rest is done."""
    files = stored(["20200501", "20260301-000000"], settings="max-age=9999\nkeep=1\n")
    dry, done = bench.run("call rotate -n acme\ncall forget acme 20200501", files)
    assert (dry.ids, done) == (["20200501"], removed("20200501"))
    text = bench.workspace.read_text("OPEN.md")
    assert re.search(r"8\.2", text)
    assert re.search(r"8\.4", text)
    assert "?" in text


@pytest.mark.requirement("open", kind="core")
def test_report_does_not_guess(bench):
    """The report has the form that it had, and says of no damaged backup that it is well."""
    files = {
        **stored(["20260301-000000", "20260302-000000"]),
        **stored(["20260301-000000"], "other"),
        **below({"x": "1"}, "s"),
    }
    script = """
        call verify acme
        printf '\\377\\377\\377' | dd of=store/acme/20260302-000000.tar.gz bs=1 seek=30 conv=notrunc 2> dd
        call verify acme
        call report
    """
    _, verified, reported = bench.run(script, files)
    assert (verified.status, reported.status) == (3, 0)
    assert [row[:2] for row in reported.rows] == [["acme", "2"], ["other", "1"]]
    assert "ok" not in reported.rows[0]
