"""Reading archives of edition 1, sound ones and others."""

import random

import pytest
from bench import without_times
from model import NOON, SECOND, archive_1, crc, directory, end, entry_1, file, header, number, string

SHELF = [
    (b"b", file(b"second", 0o600)),
    (b"t", directory(0o750)),
    (b"t/a b", file(b"x" * 300, 0o444, 5 * SECOND)),
    (b"a", file(b"", 0o000)),
]
ARCHIVE = archive_1(SHELF)


@pytest.mark.requirement("read-1", kind="core")
def test_unpack(reader):
    """Archives of edition 1 are unpacked, whatever the order of their entries."""
    assert reader.trees(ARCHIVE) == [dict(SHELF)]


@pytest.mark.requirement("list", kind="core", retired="round-5")
def test_list(reader):
    """A line for each entry in the order of the archive, with its time in seconds."""
    lines = [f"F 600 6 {NOON} b", "D 750 - - t", "F 444 300 5 t/a b", f"F 000 0 {NOON} a"]
    assert reader.lists(ARCHIVE) == [lines]


@pytest.mark.requirement("list", kind="core")
def test_list_in_order(reader):
    """A line for each entry in the order of the archive."""
    lines, closed = reader.lists(ARCHIVE, archive_1([(b"c", directory(0o007))]))
    assert without_times(lines) == ["F 600 6 b", "D 750 - t", "F 444 300 t/a b", "F 000 0 a"]
    assert closed == ["D 007 - - c"]


@pytest.mark.requirement("escape", kind="boundary")
def test_escaped_names(reader):
    """A backslash and what does not print are escaped."""
    names = [b"a\\b", b"a\nb\x1b[2J", b"~ \x7f", b"\xff"]
    lines = [r"F 644 0 a\x5cb", r"F 644 0 a\x0ab\x1b[2J", r"F 644 0 ~ \x7f", r"F 644 0 \xff"]
    [found] = reader.lists(archive_1([(name, file()) for name in names]))
    assert without_times(found) == lines


@pytest.mark.requirement("escape", kind="boundary", retired="round-7")
def test_umlauts_are_escaped(reader):
    """What is above 126 is escaped byte by byte."""
    [lines] = reader.lists(archive_1([(b"\xc3\xa4", file())]))
    assert without_times(lines) == [r"F 644 0 \xc3\xa4"]


@pytest.mark.requirement("permissions", kind="boundary")
def test_closed_directory(reader):
    """A directory that nobody may write to has its contents all the same."""
    items = [(b"d", directory(0o555)), (b"d/e", directory(0o500)), (b"d/e/f", file(b"f", 0o400))]
    assert reader.trees(archive_1(items)) == [dict(items)]


@pytest.mark.requirement("permissions", kind="boundary")
@pytest.mark.parametrize("umask", ["000", "077"])
def test_umask(crate, umask):
    """Permissions are those of the entries, whatever the umask."""
    items = [(b"d", directory(0o775)), (b"d/f", file(b"f", 0o666)), (b"d/g", file(b"g", 0o604))]
    for program in crate.both:
        command = " ".join(program.command)
        script = f"umask {umask}; {command} unpack a.crate to && stat -c %a to/d to/d/f to/d/g"
        archive = archive_1(items).decode("latin-1")
        [done] = crate.ask(crate.shell(script, file="a.crate", archive=archive, made=f"{crate.place}/to"))
        assert (done.exit_code, done.stdout.split()) == (0, ["775", "666", "604"]), f"{program.name}: {done.stderr}"


@pytest.mark.requirement("long-paths", kind="boundary")
def test_long_paths(crate):
    """A path is longer than what the system takes at once: it is packed, listed and unpacked."""
    name = "n" * 250
    walk = f"for i in $(seq 20); do cd -P {name} || exit 1; done"
    down = f"mkdir deep && cd deep; for i in $(seq 20); do mkdir {name} && cd -P {name} || exit; done; echo deep > f"
    made, packed = crate.ask(
        crate.shell(down),
        crate.c.request("pack", "deep.crate", "deep"),
    )
    assert (made.exit_code, packed.exit_code) == (0, 0)
    last = "/".join([name] * 20) + "/f"
    for program in crate.both:
        listing, unpacking, found = crate.ask(
            program.request("list", "deep.crate"),
            program.request("unpack", "deep.crate", f"to-{program.name}"),
            crate.shell(f"cd to-{program.name} && {walk}; cat f"),
        )
        lines = without_times(listing.stdout.splitlines())
        assert (len(lines), lines[-1]) == (21, f"F 644 5 {last}")
        assert (unpacking.exit_code, found.stdout) == (0, "deep\n")


@pytest.mark.requirement("unpack-into", kind="boundary")
def test_into_an_empty_directory(crate):
    """An empty directory is filled; one that is not, and a file, stay as they are."""
    archive = ARCHIVE.decode("latin-1")
    for program in crate.both:
        into = f"into-{program.name}"
        _, filled, found, *refused, left = crate.ask(
            crate.shell(f"mkdir {into}", file="a.crate", archive=archive),
            program.request("unpack", "a.crate", into),
            crate.shell(f"ls {into}; rm -r {into}/*; echo > {into}/own"),
            *(program.request("unpack", "a.crate", place) for place in (into, f"{into}/own", f"{into}/own/below")),
            crate.shell(f"ls {into}"),
        )
        assert (filled.exit_code, found.stdout.split()) == (0, ["a", "b", "t"]), program.name
        for done in refused:
            assert (done.exit_code, done.stdout, done.stderr[:14]) == (1, "", "crate: system:"), program.name
        assert left.stdout.split() == ["own"]


@pytest.mark.requirement("system", kind="error")
def test_missing_archive(reader):
    """An archive that is missing, or a directory, is the system's matter."""
    for done in reader.runs(["list", "none"], ["unpack", "none", "to"], ["list", "."]):
        assert (done.exit_code, done.stdout, done.stderr[:14]) == (1, "", "crate: system:")


START = header(1)
DAMAGED = {
    "empty": b"",
    "short": b"CRAT",
    "magic": b"CRATF" + ARCHIVE[5:],
    "edition-0": b"CRATE\x00E\x00",
    "edition-99": b"CRATE\x63E\x00",
    "kind": START + b"X" + end(1),
    "no-end": ARCHIVE[:-2],
    "count": ARCHIVE[:-1] + b"\x05",
    "behind": ARCHIVE + b"\n",
    "checksum": ARCHIVE.replace(b"second", b"fecond"),
    "long-number": START + b"E\x80\x00",
    "large-number": START + b"E" + b"\x80" * 9 + b"\x01",
    "size": START + b"F" + string(b"a") + number(0o644) + number(1) + number(2**62) + b"x" + crc(b"x") + end(1),
    "path-size": START + b"D" + number(2**62) + b"x" + end(1),
    "mode": START + b"D" + string(b"a") + number(0o1000) + end(1),
    "no-directory": archive_1([(b"a/b", file())]),
    "directory-later": archive_1([(b"a/b", file()), (b"a", directory())]),
    "in-a-file": archive_1([(b"a", file()), (b"a/b", file())]),
}


@pytest.mark.requirement("damaged", kind="error")
def test_damaged(reader):
    """What is not as the document says is refused by both, and nothing comes of it."""
    reader.refuses(DAMAGED, sound=ARCHIVE)


NO_PATHS = [b"", b"..", b".", b"/etc", b"t/../../x", b"t//x", b"t/", b"t/.", b"t/a\0b"]
TOO_LONG = [b"n" * 256, b"t/" * 32767 + b"tt"]


@pytest.mark.requirement("twice", kind="error", retired="round-4")
def test_a_path_twice(reader):
    """No path occurs twice."""
    reader.refuses({"twice": archive_1([(b"a", file(b"1")), (b"a", file(b"2"))])}, sound=ARCHIVE)


@pytest.mark.requirement("names", kind="error")
def test_names_that_lead_away(reader):
    """What is no path is refused, so that nothing is written anywhere else."""
    evil = {repr(path[:20]): archive_1([(b"t", directory()), (path, file(b"evil"))]) for path in NO_PATHS + TOO_LONG}
    reader.refuses(evil, sound=ARCHIVE)


@pytest.mark.requirement("names", kind="boundary")
def test_odd_names(reader):
    """Names of 255 bytes, of three dots and of any other bytes are names."""
    names = [b"n" * 255, b"...", b"..a", b" ", b"-rf", b"\xff\xfe", b"a\nb", b"\\"]
    items = [(name, file(name)) for name in names]
    assert reader.trees(archive_1(items)) == [dict(items)]


@pytest.mark.requirement("agree", kind="integration")
def test_any_byte(crate):
    """Whatever byte of an archive is another one, both say and do the same about it."""
    chance = random.Random(11)
    items = [(b"t", directory(0o750)), (b"t/ab", file(b"x" * 9, 0o444, 5 * SECOND))]
    whole = header(1) + b"".join(entry_1(*each) for each in items) + end(2)
    wrong = []
    for at in range(0, len(whole), 4):
        wrong.append(bytearray(whole))
        wrong[-1][at] ^= 1 << chance.randrange(8)
    answers = crate.c.answers([whole, *wrong])
    assert answers[0] == (0, b"", "", dict(items))
    assert answers == crate.python.answers([whole, *wrong])
