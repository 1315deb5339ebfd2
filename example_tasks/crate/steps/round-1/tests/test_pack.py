"""Packing: the bytes of edition 1, and the same bytes for the same tree."""

import pytest
from model import SECOND, archive_1, directory, file, in_order

TREE = {
    b"tents": directory(),
    b"tents/prices.txt": file(b"tent 100\nlarge 250\n", 0o640, 1_234_567_890 * SECOND),
    b"tents/empty": file(b"", 0o600),
    b"tents-old": directory(0o700),
    b"tents.txt": file(bytes(range(256)) * 40, 0o755),
    b"a": directory(),
    b"a/z": directory(),
    b"a/z/deep": file(b"x"),
    b"\xc3\xa4pfel": file(b"apples"),
}


@pytest.mark.requirement("build", kind="core")
def test_build(workspace, built):
    """make builds the program, and the compiler has nothing to say."""
    assert built.exit_code == 0
    assert "warning" not in built.stdout + built.stderr
    assert "-Wall -Wextra" in built.stdout
    assert workspace.run("./crate").exit_code == 2


@pytest.mark.requirement("pack", kind="core", retired="round-2")
def test_bytes(crate):
    """The archive is what edition 1 says, byte for byte, in the order of paths as bytes."""
    assert crate.pack(TREE) == archive_1(in_order(TREE))


@pytest.mark.requirement("pack", kind="boundary", retired="round-2")
def test_nothing(crate):
    """A directory with nothing in it is an archive with no entry."""
    assert crate.pack({}) == b"CRATE\x01E\x00"


@pytest.mark.requirement("pack", kind="boundary", retired="round-2")
def test_fractions_and_old_times(crate):
    """Fractions of a second are cut off, and what is older than 1970 has the time 0."""
    times = {b"a": 5 * SECOND + 999_999_999, b"b": -5 * SECOND, b"c": 0, b"d": 2**33 * SECOND}
    tree = {path: file(b"", time=time) for path, time in times.items()}
    assert crate.pack(tree) == archive_1(in_order(tree))


@pytest.mark.requirement("deterministic", kind="integration")
def test_same_tree(crate):
    """The order in which the system lists a directory, the place and the umask change nothing."""
    tree = {f"{name:03x}".encode(): file(str(name).encode()) for name in range(0, 4000, 37)} | TREE
    one, other = crate.packed(crate.packing(tree), crate.packing(tree, backwards=True, umask=0o077))
    assert one == other
    assert [len(lines) for lines in crate.c.lists(one)] == [len(tree)]


@pytest.mark.requirement("round-trip", kind="core")
def test_there_and_back(crate, reader):
    """What was packed is listed and unpacked: contents, permissions, times."""
    [contents] = reader.contents(crate.pack(TREE))
    assert contents.tree == TREE
    assert [line.split(" ")[0] for line in contents.lines] == [item.kind for _, item in in_order(TREE)]


@pytest.mark.requirement("pack-fails", kind="error")
def test_what_has_no_entry(crate):
    """Where a tree has something that no edition knows, the old archive stays, and there is no other new file."""
    packing = crate.packing(TREE)
    where, items = packing["where"], packing["items"]
    pack, look = crate.c.request("pack", "out/a.crate", where), crate.shell("ls out; cat out/a.crate")
    made, done, left, _, again, listing, found = crate.ask(
        crate.shell(f"mkfifo {where}/tents/pipe && mkdir out && echo old > out/a.crate", where=where, items=items),
        pack,
        look,
        crate.shell(f"rm {where}/tents/pipe"),
        pack,
        crate.c.request("list", "out/a.crate"),
        crate.shell("ls out"),
    )
    assert made.exit_code == 0
    assert (done.exit_code, done.stdout, done.stderr[:14]) == (1, "", "crate: system:")
    assert left.stdout == "a.crate\nold\n"
    assert (again.exit_code, listing.exit_code, found.stdout) == (0, 0, "a.crate\n")


@pytest.mark.requirement("system", kind="error")
def test_pack_of_nothing(crate):
    """A directory that is missing is not packed."""
    done, left = crate.ask(crate.c.request("pack", "a.crate", "missing"), crate.shell("ls -a"))
    assert (done.exit_code, done.stderr[:14], done.stderr.count("\n")) == (1, "crate: system:", 1)
    assert left.stdout.split() == [".", ".."]


@pytest.mark.requirement("usage", kind="error")
def test_usage(crate):
    """A command line that is none has status 2; only one of the two packs."""
    wrong = [[], ["list"], ["list", "a", "b"], ["unpack", "a"], ["pack", "a"], ["show", "a"]]
    for program in crate.both:
        commands = [*wrong, *([["pack", "a", "b"]] if program is crate.python else [])]
        for arguments, done in zip(commands, program.runs(*commands), strict=True):
            assert (done.exit_code, done.stdout, done.stderr[:13]) == (2, "", "crate: usage:"), (
                program.name,
                arguments,
            )
