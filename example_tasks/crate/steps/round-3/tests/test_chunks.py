"""Edition 3: the checksum as it should have been, chunks and runs."""

import random

import pytest
from model import (
    Table,
    archive,
    archive_2_as_it_was,
    chunk,
    chunks,
    directory,
    end,
    entry,
    file,
    header,
    in_order,
    link,
    listed,
    number,
    one_file,
    sealed,
    string,
)

SHELF = [(b"b", file(b"second", 0o600)), (b"t", directory(0o750)), (b"t/f", file(b"-" * 200)), (b"t/l", link(b"f"))]


def row(length: int) -> bytes:
    return b"x" * length


CONTENTS = {
    b"one": b"x",
    b"two": b"xx",
    b"three": b"xxx",
    b"four": b"aaaabbc",
    b"not-smaller": b"abxxx",
    b"row-130": row(130),
    b"row-131": row(131),
    b"row-132": row(132),
    b"row-133": row(133),
    b"literal-128": bytes(range(128)) + row(9),
    b"literal-129": bytes(range(129)) + row(9),
    b"literal-then-pair": bytes(range(127)) + b"zz" + row(9),
    b"row-in-the-middle": bytes(range(100)) + row(3) + bytes(range(100)),
    b"chunk": row(65536),
    b"chunk-and-one": row(65537),
    b"across": bytes(range(250)) * 262 + row(300) + b"end",
    b"two-chunks": b"ab" * 65536,
    b"nothing": b"",
}


@pytest.mark.requirement("pack-3", kind="core", retired="round-4")
def test_bytes(crate):
    """What is packed is what edition 3 says, byte for byte."""
    tree = dict(SHELF) | {path: file(content) for path, content in CONTENTS.items()}
    assert crate.pack(tree) == archive(3, in_order(tree))


@pytest.mark.requirement("runs", kind="boundary")
def test_chunks_of_files(crate, reader):
    """Runs, what is between them and whole chunks are packed as the document says, and come back."""
    tree = {name: file(content) for name, content in CONTENTS.items()}
    packed = crate.pack(tree)
    for name, content in CONTENTS.items():
        assert chunks(content) in packed, name
    assert reader.trees(packed) == [tree]


@pytest.mark.requirement("runs", kind="integration")
def test_any_content(crate):
    """Contents with rows of all lengths come back as they were, from both programs."""
    chance = random.Random(3)
    tree = {}
    for index in range(6):
        pieces = [bytes([chance.randrange(3)]) * chance.choice([1, 1, 2, 3, 129, 131, 400]) for _ in range(300)]
        tree[b"%d" % index] = file(b"".join(pieces))
    packed = crate.pack(tree)
    for program in crate.both:
        assert program.trees(packed) == [tree]


@pytest.mark.requirement("read-3", kind="core")
def test_read(reader):
    """Archives of edition 3 are listed and unpacked."""
    [contents] = reader.contents(archive(3, SHELF))
    assert contents.tree == dict(SHELF)
    assert contents.lines == listed(SHELF)


@pytest.mark.requirement("read-3", kind="boundary")
def test_chunks_of_others(reader):
    """Others cut chunks as they like, and code what does not become smaller."""
    runs = number(5) + b"\x01" + string(b"\x80x\x00y\x00z")
    rest = chunk(b"abc", 0) + chunk(b"d" * 700, 0) + runs + chunk(b"e", 1) + number(0)
    assert reader.trees(one_file(3, rest)) == [{b"a": file(b"abc" + b"d" * 700 + b"xxxyze")}]


@pytest.mark.requirement("checksum", kind="core")
def test_checksum_of_edition_2(reader):
    """In edition 2, too, the checksum is that of the whole entry, and directories have one."""
    [contents] = reader.contents(archive(2, SHELF))
    assert contents.tree == dict(SHELF)
    assert contents.lines == listed(SHELF)


@pytest.mark.requirement("checksum", kind="error")
@pytest.mark.parametrize("kind", ["F", "D", "L"])
def test_archives_by_the_wrong_document(crate, kind):
    """What was made as edition 2 had it is damaged."""
    items = [(path, item) for path, item in SHELF if item.kind == kind and b"/" not in path] or [(b"l", link(b"f"))]
    for program in crate.both:
        program.refuses({kind: archive_2_as_it_was(items)}, sound=archive(2, items))


@pytest.mark.requirement("checksum", kind="error")
@pytest.mark.parametrize("edition", [2, 3])
def test_every_byte_counts(crate, edition):
    """Modes and targets are under the checksum as contents are."""
    items = [(b"b", file(b"second", 0o644)), (b"t", directory(0o750)), (b"l", link(b"*target"))]
    whole = archive(edition, items)
    wrong = {}
    for was in (b"\xe8\x03", b"second", b"\xa4\x03", b"*target"):
        wrong[repr(was)] = whole.replace(was, bytes([was[0] ^ 1]) + was[1:])
        assert wrong[repr(was)] != whole
    for program in crate.both:
        program.refuses(wrong, sound=whole)


CHUNKS = {
    "too-long": number(65537) + b"\0" + b"x" * 65537 + number(0),
    "method": number(3) + b"\x02" + string(b"\x80x") + number(0),
    "no-end": chunk(b"abc", 0),
    "short": number(3) + b"\x01" + string(b"\x01ab") + number(0),
    "long": number(1) + b"\x01" + string(b"\x01ab") + number(0),
    "nothing": number(1) + b"\x01" + string(b"") + number(0),
    "literal-cut": number(3) + b"\x01" + string(b"\x02ab") + number(0),
    "literal-cut-at-its-length": number(2) + b"\x01" + string(b"\x02ab") + number(0),
    "run-cut": number(3) + b"\x01" + string(b"\x80") + number(0),
    "run-too-long": number(129) + b"\x01" + string(b"\xffx") + number(0),
    "size": number(3) + b"\x01" + number(2**62) + b"\x80x" + number(0),
}


@pytest.mark.requirement("chunks", kind="error")
def test_damaged_chunks(reader):
    """Chunks that are not as the document says are damage, although the checksum is right."""
    longest = one_file(3, chunk(b"x" * 65536, 1) + number(0))
    reader.refuses({name: one_file(3, rest) for name, rest in CHUNKS.items()}, sound=longest)


@pytest.mark.requirement("link-escape", kind="error")
def test_nothing_goes_through_a_link(crate):
    """A link is no directory: what an archive has below one is damage, and nothing is written where it leads."""
    outside = f"{crate.place}/outside"
    crate.ask(crate.shell(f"mkdir {outside}"))
    items = [(b"a", link(outside.encode())), (b"a/evil", file(b"evil"))]
    for program in crate.both:
        program.refuses({f"edition {each}": archive(each, items) for each in (2, 3)}, sound=archive(3, SHELF))
    assert crate.ask(crate.shell(f"ls {outside}"))[0].stdout == ""


@pytest.mark.requirement("table", kind="error")
def test_names_that_are_not_there(crate):
    """An index beyond the table, a path of no name and a target that is empty or too long are damage."""
    table = Table([b"a"]).bytes()
    sound = header(3) + table + entry(3, number(1) + number(0), directory()) + end(1)
    longest = header(3) + table + entry(3, number(1) + number(0), link(b"t" * 4095)) + end(1)
    wrong = [
        entry(3, number(1) + number(1), directory()),
        entry(3, number(0), directory()),
        entry(3, number(2**62) + number(0), directory()),
        sealed(b"L" + number(1) + number(0) + string(b"")),
        sealed(b"L" + number(1) + number(0) + string(b"a\0b")),
        sealed(b"L" + number(1) + number(0) + string(b"t" * 4096)),
    ]
    for program in crate.both:
        assert program.lists(longest) == [["L - - - a -> " + "t" * 4095]]
        program.refuses({repr(each): header(3) + table + each + end(1) for each in wrong}, sound)


@pytest.mark.requirement("long-paths", kind="error")
def test_a_path_that_is_too_long(crate):
    """A path of 65536 bytes is damage, although all directories on the way are there."""
    names = [b"n" * 255] * 255 + [b"n" * 254, b"n"]
    items = [(b"/".join(names[:depth]), directory()) for depth in range(1, 258)]
    assert len(items[-1][0]) == 65536
    for program in crate.both:
        program.refuses({"65536 bytes": archive(3, items)}, sound=archive(3, items[:2]))


@pytest.mark.requirement("agree", kind="integration")
def test_any_byte(crate):
    """Whatever byte of an entry is another one, with a checksum that fits, both say the same about it."""
    chance = random.Random(5)
    table = Table([b"t", b"ab"])
    wrong = []
    for index in range(0, 44, 3):
        inner = bytearray(entry(3, table.path(b"ab"), file(b"x" * 9 + b"abc"))[:-4])
        inner[index % len(inner)] ^= 1 << chance.randrange(8)
        wrong.append(header(3) + table.bytes() + sealed(bytes(inner)) + end(1))
    answers = crate.c.answers([archive(3, SHELF), *wrong])
    assert answers[0] == (0, b"", "", dict(SHELF))
    assert answers == crate.python.answers([archive(3, SHELF), *wrong])
