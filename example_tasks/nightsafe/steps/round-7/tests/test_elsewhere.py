"""The same everywhere: in any environment, at any time."""

import random
from datetime import date, timedelta

import pytest
from bench import Answer, below, complaint, directory, link, quoted, stored

ENVIRONMENTS = {
    "locale": "LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8 LANGUAGE=de TZ=UTC-14",
    "tools": "'TAR_OPTIONS=--exclude=x --totals' GZIP=-1 QUOTING_STYLE=shell HOME=/no id=1 keep=1 target=/ STORE=/",
    "shell": "POSIXLY_CORRECT=1 'IFS=a/' CDPATH=/tmp:/ 'GLOBIGNORE=*' SHELLOPTS=noglob BASH_ENV=$BASE/hit.sh",
    "functions": "'BASH_FUNC_tar%%=() { :; }' 'BASH_FUNC_printf%%=() { :; }' 'BASH_FUNC_rm%%=() { :; }'",
}


@pytest.mark.requirement("environment", kind="core")
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments(bench, name):
    """What commands do and print depends on no variable that is not theirs."""
    variables = ENVIRONMENTS[name]
    files = {**below({"x": "1", "y": "2"}, "src"), "hit.sh": "touch $BASE/hit; exit 0\n"}
    for customer in ("a-c", "ab", "a0"):
        files |= stored(["20260329-233000", "20260330-003000", "20260331-000000-2"], customer, settings="keep=2\n")
    calls = [
        "take ab src",
        "list ab",
        "verify ab",
        "restore ab 20260401-023000 out",
        "report",
        "rotate -n a0",
        "rotate ab",
    ]
    script = "".join(f"call env {variables} {call}\n" for call in calls) + "call ls out .\n"
    *answers, left = bench.run(script, files)
    assert [(answer.status, answer.err) for answer in answers] == [(0, "")] * 7
    taken, listed, verified, _, reported, dry, rotated = answers
    assert (taken.out, left.out) == ("20260401-023000\n", ".:\nanswers\nhit.sh\nout\nsrc\nstore\n\nout:\nx\ny\n")
    ids = ["20260329-233000", "20260330-003000", "20260331-000000-2", "20260401-023000"]
    assert ([row[::2] for row in listed.rows][:3], listed.rows[3][2]) == (
        [[id, "/srv/www"] for id in ids[:3]],
        f"{bench.base}/src",
    )
    assert verified.rows == [[id, "ok"] for id in ids]
    assert [[row[0], *row[3:]] for row in reported.rows] == [
        ["a-c", "0.0", "2026-03-29T23:30:00Z", "2026-03-31T00:00:00Z"],
        ["a0", "0.0", "2026-03-29T23:30:00Z", "2026-03-31T00:00:00Z"],
        ["ab", "0.0", "2026-03-29T23:30:00Z", "2026-04-01T02:30:00Z"],
    ]
    assert dry.out == "20260329-233000\twould be removed\n"
    assert rotated.ids == ids[:2]


@pytest.mark.requirement("time", kind="error")
def test_bad_times(bench):
    """A time that is none is refused by every command, behind the store and before all else."""
    times = [
        "",
        "-1",
        "1e9",
        " 1",
        "1 ",
        "0x10",
        "253402300800",
        "1775010600.5",
        "now",
        "9" * 30,
        "a[$(touch hit)]",
        "1\n",
    ]
    calls = ["list A", "verify acme", "restore acme 1 out", "rotate acme", "report"]
    script = "".join(f"NIGHTSAFE_NOW={quoted(time)}; call take acme src\n" for time in times)
    script += "NIGHTSAFE_NOW=never\n" + "".join(f"call {call}\n" for call in calls)
    script += "call take\nNIGHTSAFE_STORE=x; call report\ncall ls . store"
    *answers, usage, store, left = bench.run(script, below({"x": "1"}, "src"))
    written = [time.replace("\n", "\\n") for time in times] + ["never"] * 5
    assert answers == [complaint(2, f"bad time: {time}") for time in written]
    assert (usage.err[:18], store) == ("nightsafe: usage: ", complaint(2, "bad store: x"))
    assert left.out == ".:\nanswers\nsrc\nstore\n\nstore:\n"


@pytest.mark.requirement("time", kind="boundary")
def test_good_times(bench):
    """Times are decimal, from 1970 to 9999, whatever zeros come before them; without one the clock is asked."""
    times = {
        "0": "19700101-000000",
        "0001775010600": "20260401-023000",
        "253402300799": "99991231-235959",
        "08": "19700101-000008",
    }
    script = "".join(f"NIGHTSAFE_NOW={time}; call take acme src\n" for time in times)
    script += (
        "unset NIGHTSAFE_NOW; date -u +%Y%m%d-%H%M%S > before; call take acme src; date -u +%Y%m%d-%H%M%S > after\n"
    )
    *answers, now, before, after = bench.run(f"{script}call cat before\ncall cat after", below({"x": "1"}, "src"))
    assert [answer.out for answer in answers] == [f"{id}\n" for id in times.values()]
    assert before.out <= now.out <= after.out


def rotated(bench, ids, settings, files=None):
    """The IDs that stay."""
    script = "call rotate acme\ncall list acme\ncall ls store/acme"
    done, listed, left = bench.run(script, {**stored(ids, settings=settings), **(files or {})})
    gone = [id for id in ids if id not in listed.ids]
    assert done == Answer(0, "".join(f"{id}\tremoved\n" for id in sorted(gone, key=place)), "")
    assert sorted(name.split(".")[0] for name in left.out.split() if ".tar" in name) == sorted(listed.ids)
    return listed.ids


def place(id):
    """Where an ID comes in the order."""
    day, _, rest = id.partition("-")
    time, _, number = rest.partition("-")
    return day, time, int(number or 1)


@pytest.mark.requirement("days", kind="core")
@pytest.mark.parametrize("keep", [2, 4])
def test_days(bench, keep):
    """Of each of the newest days its newest backup stays, and days without one do not count."""
    ids = ["20200501", "20200501-000000-2", "20251130-120000", "20260301-000000", "20260301-235959", "20260401-000000"]
    ids += [f"20260401-023000{number}" for number in ("", "-2", "-9", "-10")]
    mixed = random.Random(8).sample(ids, len(ids))
    stay = ["20200501-000000-2", "20251130-120000", "20260301-235959", "20260401-023000-10"]
    assert rotated(bench, mixed, f"keep={keep}\n") == stay[-keep:]


@pytest.mark.requirement("days", kind="boundary")
def test_days_of_damaged_ones(bench):
    """The newest whole one of a day stays; a day with damaged ones alone does not count, and these stay."""
    ids = ["20260330-000000", "20260331-010000", "20260331-020000", "20260331-030000", "20260401-000000"]
    script = """
        for id in 20260331-030000 20260401-000000; do echo >> store/acme/$id.tar.gz; done
        call rotate acme
        call list acme
    """
    done, listed = bench.run(script, stored(ids, settings="keep=1\n"))
    assert done.told == Answer(0, "20260330-000000\tremoved\n20260331-010000\tremoved\n", "")
    assert listed.ids == ids[2:]


@pytest.mark.requirement("weeks", kind="core")
def test_weeks(bench):
    """A week is from Monday to Sunday, also over the end of a year; its newest stays beside those of the days."""
    ids = [
        "20241222-120000",
        "20241229-235959",
        "20241230-000000",
        "20250101-080000",
        "20250105-235959",
        "20250106-000000",
    ]
    ids += ["20250107-000000", "20250112-000000"]
    assert rotated(bench, ids, "keep=1\nweeks=3\n") == ["20241229-235959", "20250105-235959", "20250112-000000"]


@pytest.mark.requirement("weeks", kind="boundary")
def test_settings_of_weeks(bench):
    """Lines of weeks are as those of keep; one that is none removes nothing."""
    wrong = [
        ("weeks=0\n", 1),
        ("keep=1\nweeks=1\n\nweeks=1\n", 4),
        ("weeks=\n", 1),
        ("week=1\n", 1),
        ("weeks=10000", 1),
    ]
    script = "".join(f"printf %s {quoted(text)} > store/acme/settings; call rotate acme\n" for text, _ in wrong)
    script += "printf 'weeks=02\\n#\\nkeep=01' > store/acme/settings; call rotate acme"
    *answers, last = bench.run(script, stored(["20260301-000000", "20260310-000000", "20260401-000000"]))
    assert answers == [complaint(1, f"settings: line {number}") for _, number in wrong]
    assert last.out == "20260301-000000\tremoved\n"


@pytest.mark.requirement("weeks", kind="integration")
@pytest.mark.parametrize("seed", [1, 2])
def test_random_rotations(bench, seed):
    """Whatever was taken when, what stays is what the rule says."""
    chance = random.Random(seed)
    days = [date(2023, 12, 20) + timedelta(chance.randrange(90)) for _ in range(14)]
    ids = sorted({f"{day:%Y%m%d}-{chance.randrange(3):02}0000" for day in days} | {"20240229", "20231231"})
    keep, weeks = chance.randrange(1, 5), chance.randrange(1, 9)
    stay = set()
    for count, period in ((keep, lambda day: day), (weeks, lambda day: day - timedelta(day.weekday()))):
        newest = {period(date(int(id[:4]), int(id[4:6]), int(id[6:8]))): id for id in sorted(ids)}
        stay |= {newest[each] for each in sorted(newest)[-count:]}
    assert rotated(bench, ids, f"weeks={weeks}\nkeep={keep}\n") == sorted(stay)


@pytest.mark.requirement("report", kind="core")
def test_report(bench):
    """A line for each customer by the bytes of the names: number, bytes, MiB, oldest and newest."""
    sizes = {
        "b": [52428],
        "a-1": [52429],
        "a1": [1048576, 524288],
        "a": [10737418240, 1],
        "9": [0],
        "z": [262143, 1],
        "y": [1100000],
    }
    files = {"store/none": directory(), "store/Upper/catalogue": "", "store/.hidden/catalogue": "", "store/file": "x"}
    files |= {"store/link": link("a"), "store/a b/catalogue": ""}
    for customer, numbers in sizes.items():
        lines = [f"2\t2026040{day + 1}-023000\t{size}\t{'0' * 64}\t/srv\n" for day, size in enumerate(numbers)]
        files[f"store/{customer}/catalogue"] = "".join(lines[::-1]) + "2\t20270101-000000\t9\n"
    files["store/y/catalogue"] += "20200501 8 - /srv\n20191231-235959 40 - /srv/x y\n"
    [reported] = bench.run("call report", files)
    first, second = "2026-04-01T02:30:00Z", "2026-04-02T02:30:00Z"
    assert reported.status == 0
    assert reported.rows == [
        ["9", "1", "0", "0.0", first, first],
        ["a", "2", "10737418241", "10240.0", first, second],
        ["a-1", "1", "52429", "0.1", first, first],
        ["a1", "2", "1572864", "1.5", first, second],
        ["b", "1", "52428", "0.0", first, first],
        ["none", "0", "0", "0.0", "-", "-"],
        ["y", "3", "1100048", "1.0", "2019-12-31T23:59:59Z", first],
        ["z", "2", "262144", "0.3", first, second],
    ]


@pytest.mark.requirement("report", kind="boundary")
def test_report_of_nothing(bench):
    """A store without customers has an empty report; a backup of a day alone is of midnight."""
    script = "call report\nmkdir store/acme; printf '20200501 8 - /srv\\n' > store/acme/catalogue\ncall report"
    nothing, old = bench.run(script)
    assert nothing == Answer(0, "", "")
    assert old.out == "acme\t1\t8\t0.0\t2020-05-01T00:00:00Z\t2020-05-01T00:00:00Z\n"
