"""What comes back is what was taken, all of it and there."""

import gzip
import hashlib
import tarfile

import pytest
from bench import Answer, Entry, below, complaint, directory, file, link, quoted, stored, tape

SOURCE = below({"x": "1", "sub": directory(), "sub/y": "2"}, "src")
ID = "20260401-023000"


@pytest.mark.requirement("empty-target", kind="core")
def test_targets_that_are_not_empty(bench):
    """Only what is not there or an empty directory is a TARGET; all else stays as it is."""
    targets = ["full", "hidden", "file", "to-empty", "to-nothing", "fifo", "/", "full/.."]
    files = {"full/old": "1", "hidden/.old": "2", "file": "3", "to-empty": link("empty"), "empty": directory()}
    script = "mkfifo fifo\ncall take acme src\nfind . -path ./answers -prune -o -print > $BASE/answers/before\n"
    script += "".join(f"call restore acme {ID} {target}\n" for target in targets)
    script += "find . -path ./answers -prune -o -print | diff $BASE/answers/before - > $BASE/answers/changes\n"
    script += "call cat $BASE/answers/changes"
    files |= {"to-nothing": link("nowhere"), **SOURCE}
    _, *answers, changes = bench.run(script, files)
    assert [answer.told for answer in answers] == [complaint(1, f"not empty: {target}") for target in targets]
    assert changes.out == ""


@pytest.mark.requirement("empty-target", kind="core")
def test_targets_that_are_empty(bench):
    """An empty directory is a TARGET, however it is called, and so is what is not there."""
    script = f"call take acme src\ncall restore acme {ID} empty\ncall restore acme {ID} $BASE/other//\n"
    script += f"(cd here; call restore acme {ID} .)\ncall restore acme {ID} new/er/\n"
    script += "call bash -c 'for name in empty other here new/er; do (cd $name; find . -type f | sort); done'"
    empties = {"empty": directory(), "other": directory(), "here": directory(), **SOURCE}
    *answers, found = bench.run(script, empties)
    assert [(answer.status, answer.err) for answer in answers] == [(0, "")] * 5
    assert found.out == "./sub/y\n./x\n" * 4


@pytest.mark.requirement("empty-target", kind="boundary")
def test_order_of_refusals(bench):
    """That TARGET is not empty comes behind the ID and before the archive."""
    files = {**stored(["20240101-000000", "20240102-000000"]), "full/old": "1"}
    del files["store/acme/20240102-000000.tar.gz"]
    calls = "call restore acme 2024 full\ncall restore acme 20240102-000000 full\ncall restore acme 20240102-000000 out"
    unknown, full, missing = bench.run(calls, files)
    assert unknown == complaint(1, "no such backup: 2024")
    assert full.told == complaint(1, "not empty: full")
    assert missing.told == complaint(3, "missing: 20240102-000000")


@pytest.mark.requirement("all-or-nothing", kind="core")
@pytest.mark.parametrize("target", ["out", "empty"])
def test_restore_on_a_full_disk(bench, target):
    """A restore that does not get to its end leaves TARGET as it was, and nothing beside it."""
    script = f"""
        head -c 60000 /dev/urandom > src/big
        call take acme src
        (trap '' XFSZ; ulimit -f 32; call restore acme {ID} new/{target})
        call find new
        call restore acme {ID} new/{target}
        call ls -A new new/{target}
    """
    files = {**SOURCE, "new": directory(), "new/empty": directory()}
    _, failed, left, done, after = bench.run(script, files)
    assert (failed.status, failed.out, f"nightsafe: not restored: {ID}\n" in failed.err) == (1, "", True)
    assert (left.out, done.status) == ("new\nnew/empty\n", 0)
    beside = "".join(f"{name}\n" for name in sorted({"empty", target}))
    assert after.out == f"new:\n{beside}\nnew/{target}:\nbig\nsub\nx\n"


@pytest.mark.requirement("all-or-nothing", kind="core")
def test_restore_with_a_program_that_fails(bench):
    """A program that fails is either not needed, or nothing is restored."""
    fake = '#!/bin/sh\ncase "$*" in *t*f*) exec /usr/bin/tar "$@";; esac\n/usr/bin/tar "$@" ./x\nexit 2\n'
    script = f"""
        call take acme src
        (PATH="$BASE/fakes:$PATH"; call restore acme {ID} out)
        call ls -A . out
    """
    taken, restored, left = bench.run(script, {**SOURCE, "fakes/tar": file(fake, 0o755)})
    assert (taken.status, taken.out) == (0, f"{ID}\n")
    if restored.status == 0:
        assert left.out.endswith("out:\nsub\nx\n")
    else:
        assert (restored.status, f"nightsafe: not restored: {ID}\n" in restored.err) == (1, True)
        assert left.out.split() == [".:", "answers", "fakes", "src", "store"]


@pytest.mark.requirement("all-or-nothing", kind="core")
def test_killed_restore(bench):
    """A restore that is killed in the middle has not touched TARGET, which is for nobody else until it is whole."""
    script = f"""
        umask 000
        for number in 1 2 3 4; do head -c 3000000 /dev/zero > src/big$number; done
        call take acme src
        mkdir new new/empty
        setsid restore acme {ID} new/empty > /dev/null 2>&1 < /dev/null & pid=$!
        while kill -0 $pid 2> /dev/null && [ -z "$(find new -name 'big*')" ]; do :; done
        kill -STOP -- -$pid 2> /dev/null
        call find new -maxdepth 1 -mindepth 1 -printf '%m %P\\n'
        kill -KILL -- -$pid 2> /dev/null; wait $pid 2> /dev/null
        call ls -A new/empty
        rm -rf new/empty
        call restore acme {ID} new/empty
        call ls -A new/empty
        call restore acme {ID} new/empty
    """
    _, staged, left, done, after, again = bench.run(script, SOURCE)
    everything = "".join(f"big{number}\n" for number in range(1, 5)) + "sub\nx\n"
    modes = dict(reversed(line.split(" ")) for line in staged.out.split("\n")[:-1])
    parts = [mode for name, mode in modes.items() if name.startswith(".part-")]
    # It may have come to its end before it was stopped.
    assert (left.out, parts) in [("", ["700"]), (everything, ["700"]), (everything, [])]
    assert (done.status, after.out) == (0, everything)
    assert again.told == complaint(1, "not empty: new/empty")


def entry(kind, target="", owner=""):
    info = tarfile.TarInfo()
    info.type, info.linkname, info.mode, info.mtime = kind, target, 0o644, 1_600_000_000
    info.devmajor, info.devminor, info.uname = 1, 3, owner
    return info


def packed(entries):
    """An archive with just these names."""
    return gzip.compress(tape(entries), mtime=0)


def evil(bench):
    hard, up = entry(tarfile.LNKTYPE, "../victim"), "../" * 12
    return {
        "above": {"./x": "1", "../hit": "bad"},
        "far-above": {"./x": "1", f"./a/{up}tmp/hit": "bad"},
        "absolute": {f"{bench.base}/hit": "bad", "./x": "1"},
        "through": {"./to": link(".."), "./to/hit": "bad"},
        "through-inner": {"./dir": directory(), "./to": link("dir"), "./to/x": "1"},
        "through-absolute": {"./to": link(bench.base), "./to/new": directory(), "./to/new/hit": "bad"},
        "through-two": {"./a": link("b"), "./b": link(".."), "a/hit": "bad"},
        "through-deep": {"./to": link(".."), "./to/a/b/hit": "bad"},
        "through-odd": {'./q" -> "x\n': link(".."), './q" -> "x\n/hit': "bad"},
        "odd-owner": {"./x": "1", "../hit": entry(tarfile.REGTYPE, owner='"./y"')},
        "hard-above": {"./x": "1", "./y": hard},
        "hard-absolute": {"./y": entry(tarfile.LNKTYPE, f"{bench.base}/victim")},
        "hard-through": {"./to": link(".."), "./y": entry(tarfile.LNKTYPE, "./to/victim")},
        "device": {"./x": "1", "./null": entry(tarfile.CHRTYPE)},
        "dots-last": {"./x": "1", "./a/..": directory()},
    }


@pytest.mark.requirement("unsafe", kind="core")
def test_unsafe_archives(bench):
    """What would lead out of TARGET is not restored at all, and for verify it is whole."""
    files = {"victim": "untouched"}
    lines = ""
    script = ""
    for number, entries in enumerate(evil(bench).values()):
        id, data = f"202301{number + 10}-000000", packed(entries)
        files[f"store/acme/{id}.tar.gz"] = data
        lines += f"2\t{id}\t{len(data)}\t{hashlib.sha256(data).hexdigest()}\t/srv\n"
        script += f"call restore acme {id} into/out{number}\n"
    script += "call verify acme\ncall ls -A . into /tmp/hit\ncall cat victim"
    *answers, verified, left, victim = bench.run(script, {**files, "store/acme/catalogue": lines, "into": directory()})
    wanted = [complaint(3, f"unsafe: 202301{number + 10}-000000") for number in range(len(answers))]
    told = [answer.told for answer in answers]
    names = list(evil(bench))
    assert dict(zip(names, told, strict=True)) == dict(zip(names, wanted, strict=True))
    assert (verified.status, {row[1] for row in verified.rows}) == (0, {"ok"})
    assert (left.out, victim.out) == (".:\nanswers\ninto\nstore\nvictim\n\ninto:\n", "untouched")


@pytest.mark.requirement("unsafe", kind="boundary")
def test_archives_that_look_unsafe(bench):
    """Dots in names, links that lead out, hard links within, and names without `./` are fine."""
    entries = {
        ".": directory(0o750),
        "..a": file("1"),
        "b..": directory(),
        "b../...": file("2"),
        "plain": file("3"),
        "out": link("../../etc"),
        "outer": file("4"),
        "in": link("b.."),
        'say "hi\\': file("5"),
        "to -> x": link("/"),
        "to": file("6"),
        "deep/er": directory(),
        "deep/er/hard link to": entry(tarfile.LNKTYPE, "plain"),
    }
    data = packed(entries)
    line = f"2\t20230101-000000\t{len(data)}\t{hashlib.sha256(data).hexdigest()}\t/srv\n"
    files = {"store/acme/catalogue": line, "store/acme/20230101-000000.tar.gz": data}
    restored, out, same = bench.run(
        'call restore acme 20230101-000000 out\ntree out\ncall test out/plain -ef "out/deep/er/hard link to"', files
    )
    assert (restored, same.status) == (Answer(0, "", ""), 0)
    # What TARGET itself is like is left open.
    left_out = {".", "plain", "deep", "deep/er/hard link to"}
    found = {name: each for name, each in out.tree.items() if name not in left_out}
    expected = {name: each for name, each in entries.items() if isinstance(each, Entry) and name not in left_out}
    assert found == expected


NOTES = ["before the move", "", " tab\there, back\\slash\\n, line\nfeed\n", "-n", "$(touch hit)%s\\t grün  "]


@pytest.mark.requirement("notes", kind="core")
def test_third_form(bench):
    """A new line has the third form, with the note at its end, written as directories are."""
    script = "".join(f"call take -n {quoted(note)} acme src\n" for note in NOTES)
    script += "call take acme 's\nr\tc'\ncall list acme\ncall verify acme\ncall cat store/acme/catalogue\ncall ls"
    files = {**SOURCE, **below({"x": "1"}, "s\nr\tc"), **stored(["20200501", "20240101-000000"])}
    *_, listed, verified, catalogue, left = bench.run(script, files)
    written = [note.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for note in NOTES]
    assert [row[2:] for row in listed.rows] == [
        *[["/srv/www", ""]] * 2,
        *([f"{bench.base}/src", note] for note in written),
        [f"{bench.base}/s\\nr\\tc", ""],
    ]
    assert (listed.status, verified.status, "hit" in left.out) == (0, 0, False)
    old, lines = catalogue.out.split("\n")[:2], catalogue.out.split("\n")[2:-1]
    assert "\n".join([*old, ""]) == files["store/acme/catalogue"]
    archive = bench.read(f"store/acme/{ID}.tar.gz")
    digest = hashlib.sha256(archive).hexdigest()
    assert lines[0] == f"3\t{ID}\t{len(archive)}\t{digest}\t{bench.base}/src\tbefore the move"
    assert {len(line.split("\t")) for line in lines} == {6}


@pytest.mark.requirement("notes", kind="core")
def test_lines_of_all_forms(bench):
    """Lines of all three forms are listed, restored and rotated; such as none has are broken ones."""
    files = stored(["20200501", "20240101-000000", "20240102-000000"], settings="keep=2\n")
    first, second, third = files["store/acme/catalogue"].splitlines()
    third = "3" + third[1:] + "\tmy note"
    with_md5 = "\t".join(["3", "20250101-000000", "5", "0" * 32, "/srv", "note"])
    lines = [third, with_md5, second + "\tnote", first, second, third[:-8], third + "\tmore"]
    files["store/acme/catalogue"] = "\n".join(lines) + "\n"
    script = "call list acme\ncall restore acme 20240102-000000 out\ncall cat out/x\ncall rotate acme\n"
    listed, _, out, rotated, catalogue = bench.run(f"{script}call cat store/acme/catalogue", files)
    assert [[row[0], row[-1]] for row in listed.rows] == [
        ["20200501", ""],
        ["20240101-000000", ""],
        ["20240102-000000", "my note"],
    ]
    assert (listed.status, listed.err) == (
        3,
        "".join(f"nightsafe: catalogue: line {number}\n" for number in (2, 3, 6, 7)),
    )
    assert (out.out, rotated.out) == ("20240102-000000", "20200501\tremoved\n")
    assert catalogue.out == "\n".join(line for line in lines if line != first) + "\n"


@pytest.mark.requirement("notes", kind="error")
def test_usage_of_n(bench):
    """Options come before CUSTOMER, in either order; what lacks something is answered by how it is used."""
    wrong = [
        "-w -1 acme src",
        "-w 86401 acme src",
        "-n x -w '' acme src",
        "-w 5 acme",
        "acme",
        "",
        "a b c",
        "-n",
        "-n x",
    ]
    wrong += ["-n x acme", "-n acme src", "-w 1 -n", "acme src -n", "acme -n x src", "-w acme src"]
    right = ["-n one -w 0 acme src", "-w 0 -n two acme src", "acme -n"]
    script = "".join(f"call take {arguments}\n" for arguments in wrong + right)
    *answers, listed = bench.run(f"{script}call list acme", {**SOURCE, **below({"x": "1"}, "-n")})
    usage = complaint(2, "usage: take [-w SECONDS] [-n NOTE] CUSTOMER DIRECTORY")
    assert answers[: len(wrong)] == [usage] * len(wrong)
    assert [row[2:] for row in listed.rows] == [
        [f"{bench.base}/src", "one"],
        [f"{bench.base}/src", "two"],
        [f"{bench.base}/-n", ""],
    ]
