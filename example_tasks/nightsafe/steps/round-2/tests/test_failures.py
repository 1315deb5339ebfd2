"""What fails is told, and leaves nothing behind."""

import gzip
import hashlib
import random

import pytest
from bench import FIRST, below, complaint, file, old_line, packed

BIG = below({"noise": random.Random(1).randbytes(60_000), "x": "1"}, "src")
FAKES = {
    "tar": '#!/bin/sh\n/usr/bin/tar "$@" | head -c 300\nexit 2\n',
    "gzip": "#!/bin/sh\nhead -c 20\nexit 1\n",
    "sha256sum": "#!/bin/sh\nexit 1\n",
    "mv": "#!/bin/sh\nexit 1\n",
}
# What is in the store, but for what begins with a dot and is no leftover: locks may stay (5.3).
LEFT = (
    "call find store -name '.*' ! -name '.part-*' -prune -o -type f -printf '%p %s\\n' -o ! -type f -printf '%p\\n'\n"
)


@pytest.mark.requirement("not-taken", kind="core")
@pytest.mark.parametrize("there", [False, True], ids=["new", "known"])
def test_full_disk(bench, there):
    """What does not fit is not taken: status 1, no line, no archive, no customer that was not there."""
    script = f"""
        mkdir small; echo 1 > small/x
        {"call take acme small" if there else "call true"}
        {LEFT}
        NIGHTSAFE_NOW={FIRST + 60}
        (trap '' XFSZ; ulimit -f 32; call take acme src)
        {LEFT}
        call take acme src
    """
    _, before, taken, after, later = bench.run(script, BIG)
    assert (later.status, later.out) == (0, "20260401-023100\n")
    assert (taken.status, taken.out, "nightsafe: not taken: src\n" in taken.err) == (1, "", True)
    assert sorted(after.out.split("\n")) == sorted(before.out.split("\n"))


@pytest.mark.requirement("not-taken", kind="boundary")
def test_catalogue_that_cannot_grow(bench):
    """Where the line does not fit into the catalogue there is no archive, and the lines are as they were."""
    lines = "".join(old_line(f"20240101-{number:06}", b"", "/srv/" + "x" * 400) for number in range(40))
    script = (
        f"(trap '' XFSZ; ulimit -f 16; call take acme small)\n{LEFT}call cat store/acme/catalogue\ncall take acme small"
    )
    taken, left, catalogue, later = bench.run(script, {"store/acme/catalogue": lines, **below({"x": "1"}, "small")})
    assert (taken.status, taken.out, "nightsafe: not taken: small\n" in taken.err) == (1, "", True)
    assert (catalogue.out, left.out.count("\n")) == (lines, 3)
    assert (later.status, later.out) == (0, "20260401-023000\n")


@pytest.mark.requirement("not-taken", kind="core")
@pytest.mark.parametrize("tool", sorted(FAKES))
def test_programs_that_fail(bench, tool):
    """A program that fails is either not needed, or nothing is taken."""
    script = f"""
        (PATH="$BASE/fakes:$PATH"; call take acme src)
        {LEFT}
        call verify acme
        call restore acme 20260401-023000 out
        call ls out
        call take other src
    """
    fakes = {f"fakes/{name}": file(text, 0o755) for name, text in FAKES.items() if name == tool}
    taken, left, verified, _, found, other = bench.run(script, {**fakes, **BIG})
    assert (other.status, other.out) == (0, "20260401-023000\n")
    if taken.status == 0:
        assert (taken.out, verified.out, found.out) == ("20260401-023000\n", "20260401-023000\tok\n", "noise\nx\n")
    else:
        assert (taken.status, taken.out, "nightsafe: not taken: src\n" in taken.err) == (1, "", True)
        assert left.out.count("\n") == 1


@pytest.mark.requirement("checksums", kind="core", retired="round-6")
def test_line_with_sha256(bench):
    """A new line has SHA-256."""
    bench.run("call take acme src", BIG)
    archive = bench.read("store/acme/20260401-023000.tar.gz")
    fields = ["2", "20260401-023000", str(len(archive)), hashlib.sha256(archive).hexdigest(), f"{bench.base}/src"]
    assert bench.read("store/acme/catalogue").decode() == "\t".join(fields) + "\n"


def store():
    """One backup of each kind: whole, damaged, missing; with MD5, SHA-256 and without."""
    files = {}
    lines = []
    for number, (id, kind, state) in enumerate(
        (
            ("20200501", "-", "ok"),
            ("20200502", "-", "cut"),
            ("20200503", "-", "overwritten"),
            ("20200504", "-", "missing"),
            ("20230101-000000", "md5", "ok"),
            ("20230102-000000", "md5", "overwritten"),
            ("20230103-000000", "md5", "missing"),
            ("20250101-000000", "sha256", "ok"),
            ("20250102-000000", "sha256", "overwritten"),
            ("20250103-000000", "sha256", "longer"),
            ("20250104-000000", "two", "ok"),
        )
    ):
        tape = packed({"x": file(str(number) * 900)})
        name = f"store/acme/{id}.tar.gz"
        if kind == "-":
            tape, name = gzip.decompress(tape), f"store/acme/{id}.tar"
        if kind in ("md5", "-"):
            lines.append(old_line(id, tape, "/srv/www", "-" if kind == "-" else None))
        else:
            digest = hashlib.new("sha256" if kind == "sha256" else "md5", tape).hexdigest()
            lines.append(f"2\t{id}\t{len(tape)}\t{digest}\t/srv/www\n")
        changed = {
            "ok": tape,
            "cut": tape[:-1500],
            "longer": tape + b"\n",
            "overwritten": tape[:20] + b"\xff" * 40 + tape[60:],
        }
        if state != "missing":
            files[name] = changed[state]
    return {"store/acme/catalogue": "".join(lines), **files}


STATES = {
    "20200501": "ok",
    "20200502": "damaged",
    "20200503": "damaged",
    "20200504": "missing",
    "20230101-000000": "ok",
    "20230102-000000": "damaged",
    "20230103-000000": "missing",
    "20250101-000000": "ok",
    "20250102-000000": "damaged",
    "20250103-000000": "damaged",
    "20250104-000000": "ok",
}


@pytest.mark.requirement("verify", kind="core")
def test_verify(bench):
    """Every backup is judged by what its line has: ok, damaged or missing, and status 3."""
    everything, good, bad = bench.run(
        "call verify acme\ncall verify acme 20230101-000000\ncall verify acme 20200504", store()
    )
    assert (everything.status, everything.rows) == (3, [list(each) for each in STATES.items()])
    assert (good.status, good.out, good.err) == (0, "20230101-000000\tok\n", "")
    assert (bad.status, bad.out) == (3, "20200504\tmissing\n")


@pytest.mark.requirement("verify", kind="boundary")
def test_all_is_well(bench):
    """Where all is whole the status is 0; what is no directory of a customer has nothing that could be."""
    calls = "call take acme src\ncall verify acme\ncall verify empty"
    _, verified, empty = bench.run(calls, {**below({"x": "1"}, "src"), "store/empty": file()})
    assert (verified.status, verified.out) == (0, "20260401-023000\tok\n")
    assert empty == complaint(1, "no such customer: empty")


@pytest.mark.requirement("restore-whole", kind="core")
def test_restore_of_what_is_not_whole(bench):
    """Only what is whole is restored; for all else no TARGET is made."""
    tried = {id: state for id, state in STATES.items() if id not in ("20200503", "20230103-000000", "20250102-000000")}
    answers = bench.run("".join(f"call restore acme {id} out{id}\n" for id in tried) + "call ls", store())
    for (id, state), answer in zip(tried.items(), answers[:-1], strict=True):
        if state == "ok":
            assert (answer.status, answer.out) == (0, "")
        else:
            assert answer.told == complaint(3, f"{state}: {id}")
    assert [name[3:] for name in answers[-1].out.split() if name.startswith("out")] == [
        id for id, state in tried.items() if state == "ok"
    ]


@pytest.mark.requirement("restore-whole", kind="error")
def test_restore_that_fails(bench):
    """What cannot be unpacked is told, such as an archive that was never one."""
    noise = b"no archive" * 9
    files = {
        "store/acme/catalogue": old_line("20230101-000000", noise, "/srv"),
        "store/acme/20230101-000000.tar.gz": noise,
    }
    calls = "call restore acme 20230101-000000 out\ncall verify acme"
    never, verified = bench.run(calls, files)
    assert verified.out == "20230101-000000\tok\n"
    assert (never.status, never.out, "nightsafe: not restored: 20230101-000000\n" in never.err) == (1, "", True)


@pytest.mark.requirement("restore-whole", kind="error", retired="round-6")
def test_target_that_is_a_file(bench):
    """Into a file nothing is restored."""
    script = "call take acme src\ncall restore acme 20260401-023000 file\ncall cat file"
    taken, over, kept = bench.run(script, {"file": "kept", **below({"x": "1"}, "src")})
    assert (over.status, over.out, "nightsafe: not restored: 20260401-023000\n" in over.err) == (1, "", True)
    assert (taken.out, kept.out) == ("20260401-023000\n", "kept")


@pytest.mark.requirement("broken-lines", kind="core")
def test_broken_lines(bench):
    """Lines that are none are told by number, beside all that is there, with status 3, and stay as they are."""
    archive = packed({"x": file("1")})
    good = old_line("20230101-000000", archive, "/srv/www")
    catalogue = f"garbage\n{good}\n20230102-000000 12\n3\n2\t20230103-000000\t5"
    files = {"store/acme/catalogue": catalogue, "store/acme/20230101-000000.tar.gz": archive}
    script = (
        "call list acme\ncall verify acme\ncall restore acme 20230101-000000 out\ncall take acme src\ncall list acme"
    )
    listed, verified, back, taken, after = bench.run(script, {**files, **below({"x": "1"}, "src")})
    complaints = "".join(f"nightsafe: catalogue: line {number}\n" for number in (1, 3, 4, 5, 6))
    assert (listed.status, listed.ids, listed.err) == (3, ["20230101-000000"], complaints)
    assert (verified.status, verified.out, verified.err) == (3, "20230101-000000\tok\n", complaints)
    assert (back.status, taken.status, after.status) == (0, 0, 3)
    assert (after.ids, after.err) == (["20230101-000000", "20260401-023000"], complaints)
    assert bench.read("store/acme/catalogue").startswith(f"{catalogue}\n".encode())


@pytest.mark.requirement("output", kind="error")
def test_output_that_cannot_be_written(bench):
    """A list that nobody gets is a failure."""
    script = "call take acme src\n" + "".join(
        f"call bash -c '{command} > /dev/full'\n" for command in ("list acme", "verify acme", "report")
    )
    _, *answers = bench.run(script, below({"x": "1"}, "src"))
    assert [(answer.status, "nightsafe: cannot write\n" in answer.err) for answer in answers] == [(1, True)] * 3
