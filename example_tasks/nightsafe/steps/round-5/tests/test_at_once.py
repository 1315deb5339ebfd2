"""Commands at once, and commands that end in the middle."""

import random

import pytest
from bench import DAY, FIRST, below, complaint, file, link, stored

SOURCE = below({"x": "1"}, "src")
TAKE = """
mkdir large; head -c 4000000 /dev/urandom > large/noise
# Start a take of what is large, and wait until it writes.
begin() {
    setsid take acme large > began 2> /dev/null < /dev/null & pid=$!
    while kill -0 $pid 2> /dev/null && [ -z "$(find store -type f -size +${1:-40}k 2> /dev/null)" ]; do :; done
}
finish() { kill -$1 -- -$pid 2> /dev/null; wait $pid 2> /dev/null; }
# What is not called `.part-` is complete (5.5).
unpackable() {
    call find store -name '.part-*' -prune -o -type f -size +1k ! -name catalogue -exec gzip -t {} +
}
"""


@pytest.mark.requirement("ids", kind="core")
def test_ids_within_a_second(bench):
    """No ID is given twice: the second of a second has -2, and archives that no line names count, too, and links."""
    expected = ["20260401-023000", *(f"20260401-023000-{number}" for number in range(2, 12))]
    files = {**SOURCE, **stored(expected[:-2]), "store/b/20260401-023000-2.tar.gz": "not of the catalogue"}
    files["store/b/20260401-023000-3.tar.gz"] = link("nowhere")
    calls = "call take acme src\n" * 2 + "call verify acme\ncall take b src\ncall take b src\n"
    *taken, verified, first, second = bench.run(calls, files)
    assert [answer.out for answer in taken] == [f"{id}\n" for id in expected[-2:]]
    assert verified.rows == [[id, "ok"] for id in expected]
    assert (first.out, second.out) == ("20260401-023000\n", "20260401-023000-4\n")
    assert bench.read("store/b/20260401-023000-2.tar.gz") == b"not of the catalogue"


@pytest.mark.requirement("ids", kind="core")
def test_order(bench):
    """Backups are in the order of their times and then of their numbers, whatever the order of the lines."""
    order = ["20200501", "20200501-000001", "20260331-235959", "20260401-023000"]
    order += [f"20260401-023000-{number}" for number in (2, 9, 10, 11, 100)] + ["20260401-023001"]
    mixed = random.Random(3).sample(order, len(order))
    calls = "call list acme\ncall verify acme\ncall rotate -n acme\n" + "".join(
        f"call restore acme {id} out{id}\ncall cat out{id}/x\n" for id in order[-2:]
    )
    listed, verified, rotated, *out = bench.run(calls, stored(mixed, settings="keep=1\n"))
    assert (listed.ids, verified.ids) == (order, order)
    assert rotated.ids == sorted(rotated.ids, key=order.index)
    assert [answer.out for answer in out[1::2]] == order[-2:]


@pytest.mark.requirement("ids", kind="error")
def test_numbers_that_are_none(bench):
    """Only numbers from 2 on come behind a time; lines with others are none."""
    files = stored(["20260401-023000"])
    line = files["store/acme/catalogue"]
    for number in ("1", "0", "02", "x", ""):
        files["store/acme/catalogue"] += line.replace("20260401-023000", f"20260401-023000-{number}")
    files["store/acme/catalogue"] += line.replace("20260401-023000", "20260401-2")
    [listed] = bench.run("call list acme", files)
    assert (listed.status, listed.ids) == (3, ["20260401-023000"])
    assert listed.err == "".join(f"nightsafe: catalogue: line {number}\n" for number in range(2, 8))


@pytest.mark.requirement("at-once", kind="core")
def test_takes_at_once(bench):
    """However many takes are started at once, all are made: no line is lost, and all are whole."""
    script = """
        for number in 1 2 3 4 5; do take acme src > taken$number 2>&1 & done
        wait
        call cat taken1 taken2 taken3 taken4 taken5
        call verify acme
    """
    old = ["20240110-000000", "20240111-000000"]
    taken, verified = bench.run(script, {**SOURCE, **stored(old)})
    expected = ["20260401-023000", *(f"20260401-023000-{number}" for number in range(2, 6))]
    assert sorted(taken.out.split()) == expected
    assert verified.rows == [[id, "ok"] for id in [*old, *expected]]


@pytest.mark.requirement("at-once", kind="core")
def test_takes_and_rotations_at_once(bench):
    """What is taken while it is rotated is there afterwards, and what was removed is not."""
    script = "".join(
        f"NIGHTSAFE_NOW={FIRST + day * DAY} take acme src > /dev/null & rotate acme > /dev/null &\n" for day in range(4)
    )
    script += "wait\ncall rotate acme\ncall list acme\ncall verify acme\ncall ls store/acme"
    old = [f"202401{day}-000000" for day in range(10, 15)]
    _, listed, verified, left = bench.run(script, {**SOURCE, **stored(old, settings="keep=4")})[-4:]
    expected = [f"202604{day:02}-023000" for day in range(1, 5)]
    assert (listed.ids, verified.rows) == (expected, [[id, "ok"] for id in expected])
    assert left.out.split() == [*(f"{id}.tar.gz" for id in expected), "catalogue", "settings"]


@pytest.mark.requirement("at-once", kind="boundary")
def test_first_takes_at_once(bench):
    """The first takes of a customer may come at once, those of others and failing ones beside them."""
    script = """
        for number in 1 2 3; do
            take acme src > taken$number 2>&1 &
            take other$number src > other$number 2>&1 &
            (trap '' XFSZ; ulimit -f 32; take acme big > failed$number 2>&1) &
        done
        wait
        call cat taken1 taken2 taken3
        call cat other1 other2 other3
        call grep -ch '^nightsafe: not taken: big$' failed1 failed2 failed3
        call verify acme
    """
    taken, others, failed, verified = bench.run(
        script, {**SOURCE, **below({"noise": random.Random(5).randbytes(60_000)}, "big")}
    )
    expected = ["20260401-023000", *(f"20260401-023000-{number}" for number in (2, 3))]
    assert sorted(taken.out.split()) == expected
    assert (others.out, failed.out) == ("20260401-023000\n" * 3, "1\n" * 3)
    assert (verified.status, verified.ids) == (0, expected)


@pytest.mark.requirement("at-once", kind="core")
def test_nobody_waits_to_read(bench):
    """While a take of the customer stands still and keeps others waiting, all is read, and nobody else waits."""
    old = ["20240101-000000", "20240102-000000"]
    script = f"""{TAKE}
        begin; kill -STOP -- -$pid
        call timeout 20 list acme
        call timeout 20 verify acme
        call timeout 20 restore acme 20240102-000000 out
        call timeout 20 rotate -n acme
        call timeout 20 report
        call timeout 20 take other src
        call timeout 20 rotate other
        call take -w 0 acme src
        kill -CONT -- -$pid; wait $pid
        call verify acme
    """
    *answers, refused, after = bench.run(script, {**SOURCE, **stored(old, settings="keep=1\n")})
    assert [answer.status for answer in answers] == [0] * 7
    assert (answers[0].ids[:2], answers[5].out) == (old, "20260401-023000\n")
    # It may have come to its end before it was stopped.
    assert refused.told == complaint(4, "busy: acme") or "20260401-023000" in answers[0].ids
    assert after.rows[:3] == [[id, "ok"] for id in [*old, "20260401-023000"]]
    assert len(after.rows) == 3 + len(refused.ids)


@pytest.mark.requirement("ended", kind="core")
def test_killed_takes(bench):
    """After a take was killed all that is listed is whole, what is half is called so, and it goes with the next one."""
    script = TAKE
    for number, size in enumerate((1, 40, 1500)):
        script += f"""
            NIGHTSAFE_NOW={FIRST + number}; begin {size}; finish KILL
            call list acme; call verify acme; unpackable
        """
    script += f"NIGHTSAFE_NOW={FIRST + 9}; call take acme src\ncall rotate acme\ncall verify acme\n"
    script += "call find store/acme -type f -name '.*'"
    old = ["20240101-000000", "20240102-000000"]
    answers = bench.run(script, {**SOURCE, **stored(old)})
    for listed, verified, unpacked in zip(answers[0:9:3], answers[1:9:3], answers[2:9:3], strict=True):
        assert (listed.status, verified.status, listed.ids[:2]) == (0, 0, old)
        assert verified.rows == [[id, "ok"] for id in listed.ids]
        assert (unpacked.status, unpacked.err) == (0, "")
    taken, _, verified, hidden = answers[9:]
    assert (taken.out, verified.status) == ("20260401-023009\n", 0)
    assert "20260401-023009" in verified.ids
    assert [name for name in hidden.out.split() if "/.part-" in name] == []


@pytest.mark.requirement("ended", kind="core")
def test_killed_at_any_moment(bench):
    """Wherever takes and rotations are killed, no line is lost, and what is listed is whole."""
    script = ""
    for number in range(9):
        command = "rotate acme" if number % 3 == 2 else "take acme src"
        script += f"NIGHTSAFE_NOW={FIRST + number * DAY}; setsid {command} > /dev/null 2>&1 & pid=$!\n"
        script += f"sleep 0.0{number * 6:02}; kill -KILL -- -$pid 2> /dev/null; wait $pid 2> /dev/null\n"
    old = [f"202401{day}-000000" for day in (10, 11, 12, 13)]
    script += f"NIGHTSAFE_NOW={FIRST + 19 * DAY}; call take acme src\ncall verify acme\n"
    # A rotation that has begun to remove archives.
    script += """
        setsid rotate other > /dev/null 2>&1 & pid=$!
        while kill -0 $pid 2> /dev/null; do
            archives=(store/other/*.tar.gz); [ ${#archives[@]} = 28 ] || break
        done
        kill -KILL -- -$pid 2> /dev/null; wait $pid 2> /dev/null
        call verify other
        call rotate other
        call verify other
    """
    days = [f"202402{day:02}-000000" for day in range(1, 29)]
    files = {**SOURCE, **stored(old, settings="keep=9999\n"), **stored(days, "other", settings="keep=1\n")}
    taken, verified, halfway, rotated, later = bench.run(script, files)
    assert (taken.out, verified.status, verified.err) == ("20260420-023000\n", 0, "")
    assert verified.ids[:4] == old
    assert (verified.ids[-1], {row[1] for row in verified.rows}) == ("20260420-023000", {"ok"})
    assert (halfway.status, halfway.err, {row[1] for row in halfway.rows}) == (0, "", {"ok"})
    assert (rotated.status, later.rows) == (0, [[days[-1], "ok"]])


@pytest.mark.requirement("ended", kind="core")
@pytest.mark.parametrize("command", ["take acme src", "rotate acme"], ids=["take", "rotate"])
def test_what_is_left_over(bench, command):
    """Files of a command that ended in the middle are removed by the next one, and no other file of a dot."""
    left = [".part-1", ".part-20260401-023000.tar.gz", ".part- x\ny", ".parts", ".notes"]
    files = {**SOURCE, **stored(["20240101-000000"]), **{f"store/acme/{name}": "half" for name in left}}
    files["store/other/.part-1"] = "half"
    done, found = bench.run(f"call {command}\ncall find store -name '.*' -printf '%P\\n'", files)
    # A lock may stay beside them.
    names = found.out.split()
    assert (done.status, {name for name in names if ".part-" in name}) == (0, {"other/.part-1"})
    assert {"acme/.notes", "acme/.parts"} <= set(names)


@pytest.mark.requirement("lines-first", kind="core")
def test_full_disk_while_rotating(bench):
    """Where the catalogue cannot be written, no archive is removed."""
    files = stored([f"20240101-{number:06}" for number in range(30)], settings="keep=1\n")
    for name in [name for name in files if name.endswith(".gz") and name[-11:-7] not in ("0001", "0002", "0029")]:
        del files[name]
    script = "(trap '' XFSZ; ulimit -f 2; call rotate acme)\ncall ls store/acme\ncall cat store/acme/catalogue\n"
    script += "call rotate acme"
    rotated, left, catalogue, later = bench.run(script, files)
    assert (rotated.status, rotated.out, "nightsafe: " in rotated.err) == (1, "", True)
    assert (later.status, later.ids) == (0, ["20240101-000001", "20240101-000002"])
    assert (left.out.count(".tar.gz\n"), catalogue.out) == (3, files["store/acme/catalogue"])


@pytest.mark.requirement("lines-first", kind="core")
def test_archives_that_cannot_be_removed(bench):
    """When a rotation fails to remove archives it tells, and no line is there without its archive."""
    script = """
        (PATH="$BASE/fakes:$PATH"; call rotate acme)
        call list acme
        call ls store/acme
    """
    files = {
        **stored(["20240101-000000", "20240102-000000"], settings="keep=1\n"),
        "fakes/rm": file("#!/bin/sh\nexit 1\n", 0o755),
    }
    rotated, listed, left = bench.run(script, files)
    assert (listed.status, listed.ids[-1]) == (0, "20240102-000000")
    if "20240101-000000" in left.out:
        assert (rotated.status != 0, rotated.out, "nightsafe: " in rotated.err) == (True, "", True)
    else:
        assert (rotated.status, rotated.out) == (0, "20240101-000000\tremoved\n")
        assert listed.ids == ["20240102-000000"]


@pytest.mark.requirement("wait", kind="core")
def test_busy(bench):
    """Who does not want to wait is told that it is busy, and nothing changes; who waits gets it later."""
    script = f"""{TAKE}
        # It stands still while it is tried, and goes on where it was not busy yet; where it ends, another begins.
        for attempt in 1 2 3 4 5 6 7 8 9; do
            NIGHTSAFE_NOW={FIRST} setsid take acme large > began 2> /dev/null < /dev/null & pid=$!
            while sleep 0.01; kill -STOP -- -$pid 2> /dev/null; do
                NIGHTSAFE_NOW={FIRST + 1} take -w 0 acme src > tried 2>&1
                [ $? != 4 ] || break 2
                kill -CONT -- -$pid
            done
            wait $pid
        done
        NIGHTSAFE_NOW={FIRST + 1}
        call cat tried
        call take -w 00 acme src
        call take -w 1 other src
        (sleep 0.3; kill -CONT -- -$pid 2> /dev/null) &
        call timeout 30 take -w 86400 acme src
        wait
        call verify acme
    """
    tried, again, other, waited, verified = bench.run(script, SOURCE)
    assert (tried.out, again.told) == ("nightsafe: busy: acme\n", complaint(4, "busy: acme"))
    assert (other.out, waited.status) == ("20260401-023001\n", 0)
    assert (verified.status, waited.out.strip()) == (0, verified.ids[-1])


USAGES = ["-w -1 acme src", "-w 86401 acme src", "-w 1.5 acme src", "-w 0x1 acme src", "-w '' acme src", "-w 5 acme"]
USAGES += ["acme", "a b c", "", "-w", "-w 5", "-w acme src", "acme src -w 5"]


@pytest.mark.requirement("wait", kind="error", retired="round-6")
def test_usage_of_w(bench):
    """What is no number of seconds, and what lacks something, is answered by how it is used."""
    answers = bench.run("".join(f"call take {arguments}\n" for arguments in USAGES), SOURCE)
    assert answers == [complaint(2, "usage: take [-w SECONDS] CUSTOMER DIRECTORY")] * len(USAGES)


@pytest.mark.requirement("wait", kind="boundary")
def test_directory_like_an_option(bench):
    """What comes behind CUSTOMER is no option, and zeros before a number mean nothing."""
    script = "call take acme -w\ncall list acme\ncall take -w 08 acme -w\ncall take -w 86400 acme -w\ncall ls store"
    taken, listed, second, third, left = bench.run(script, below({"x": "1"}, "-w"))
    assert (taken.status, second.status, third.status, left.out) == (0, 0, 0, "acme\n")
    assert listed.rows[0][2] == f"{bench.base}/-w"
