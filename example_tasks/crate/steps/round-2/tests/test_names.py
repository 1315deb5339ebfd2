"""Edition 2: links, and the table of names."""

import pytest
from model import (
    Table,
    archive_1,
    archive_2_as_it_was,
    directory,
    end,
    file,
    header,
    in_order,
    link,
    listed,
    number,
    string,
)

TREE = {
    b"z": directory(0o700),
    b"z/a": directory(),
    b"z/a/z": file(b"zaz"),
    b"z/b": link(b"a/z"),
    b"a": link(b"z"),
    b"z-a": file(b"", 0o600),
    b"dead": link(b"no where/\xc3\xa4"),
}


@pytest.mark.requirement("pack-2", kind="core", retired="round-3")
def test_bytes(crate):
    """Each name is stored once, in order, and links are packed as links."""
    assert crate.pack(TREE) == archive_2_as_it_was(in_order(TREE))


@pytest.mark.requirement("pack-2", kind="boundary", retired="round-3")
def test_nothing(crate):
    """An archive with no entry has a table with no name."""
    assert crate.pack({}) == b"CRATE\x02\x00E\x00"


@pytest.mark.requirement("links", kind="core")
def test_there_and_back(crate, reader):
    """Links come back as they were, dead ones too, beside all else."""
    # Some disks have links of 1023 bytes at most.
    tree = TREE | {b"z/up": link(b"../z-a"), b"long": link(b"t" * 1023), b"n" * 255: file(b"")}
    [contents] = reader.contents(crate.pack(tree))
    assert contents.tree == tree
    assert "L - - z/b -> a/z" in contents.lines


@pytest.mark.requirement("links", kind="boundary", retired="round-3")
def test_list_of_links(reader):
    """A link is listed with its target, and both are escaped."""
    archive = archive_2_as_it_was([(b"a\n", link(b"b\\c -> \xff")), (b"b", link(b"."))])
    [lines] = reader.lists(archive)
    assert lines == [r"L - - - a\x0a -> b\x5cc -> \xff", "L - - - b -> ."]


@pytest.mark.requirement("links", kind="boundary")
def test_names_of_links_are_escaped(crate, reader):
    """Both sides of the arrow are escaped."""
    [lines] = reader.lists(crate.pack({b"a\n": link(b"b\\c -> \xff"), b"b": link(b".")}))
    assert lines == [r"L - - - a\x0a -> b\x5cc -> \xff", "L - - - b -> ."]


@pytest.mark.requirement("read-2", kind="integration", retired="round-3")
def test_archive_of_edition_2(reader):
    """An archive of edition 2 is read, in whatever order, with names that nothing uses."""
    items = [(path, TREE[path]) for path in (b"z-a", b"z", b"z/b", b"a", b"z/a", b"z/a/z")]
    unused = Table([b"a", b"b"])
    contents, nothing = reader.contents(archive_2_as_it_was(items), header(2) + unused.bytes() + end(0))
    assert contents.tree == dict(items)
    assert contents.lines == listed(items)
    assert nothing.lines == []


@pytest.mark.requirement("read-1", kind="integration")
def test_archive_of_edition_1_with_slashes(reader):
    """An archive of edition 1 has no table, and no links."""
    items = [(b"d", directory()), (b"d/e", directory()), (b"d/e/f", file(b"f"))]
    assert reader.trees(archive_1(items)) == [dict(items)]
    reader.refuses({"link": header(1) + b"L" + string(b"a") + string(b"b") + end(1)}, sound=archive_1(items))


def with_table(names, entries=b"", count=0):
    return header(2) + number(len(names)) + b"".join(map(string, names)) + entries + end(count)


DAMAGED = {
    "unsorted": with_table([b"b", b"a"]),
    "unsorted-later": with_table([b"a", b"c", b"b"]),
    "twice": with_table([b"a", b"a"]),
    "empty-name": with_table([b""]),
    "slash": with_table([b"a/b"]),
    "dots": with_table([b".."]),
    "zero": with_table([b"a\0"]),
    "long": with_table([b"n" * 256]),
    "many": header(2) + number(2**62) + string(b"a") + end(0),
    "no-table": header(2)[:6],
}


@pytest.mark.requirement("table", kind="error")
def test_damaged_tables(reader):
    """Names that are none, twice there or out of order are damage, and so are more than the archive can have."""
    reader.refuses(DAMAGED, sound=with_table([b"-", b"B", b"a", b"\xc3"]))


@pytest.mark.requirement("link-escape", kind="error", retired="round-3")
def test_nothing_goes_through_a_link(crate):
    """A link is no directory: what an archive has below one is damage, and nothing is written where it leads."""
    outside = f"{crate.place}/outside"
    crate.ask(crate.shell(f"mkdir {outside}"))
    sound = archive_2_as_it_was([(b"a", link(b"b"))])
    for program in crate.both:
        wrong = archive_2_as_it_was([(b"a", link(outside.encode())), (b"a/evil", file(b"evil"))])
        program.refuses({"below a link": wrong}, sound)
    assert crate.ask(crate.shell(f"ls {outside}"))[0].stdout == ""
